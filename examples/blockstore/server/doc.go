// Package server stores blocks for clients.
//
// The server is one goroutine with one select: over completions, new connections and
// the end. It reads like a program without concurrency, because the concurrent part,
// moving bytes, is the library's work.
//
//	         ┌────────────── events      ◄── connections of all sessions
//	select ──┼────────────── requests    ◄── the listener
//	         └────────────── ctx.Done
//	  │
//	  ├─ PUT: gather; commit when nothing else waits, or enough is gathered
//	  ├─ GET: from the store into the client's slot of the window
//	  └─ connection over: free its session
//
// Each client has a session: a connection, and a window that the client may write and
// read by RDMA. The window is in the connection's own protection zone, so that one
// client cannot reach another's window even if it guesses its key. An answer goes out
// in the buffer that its request came in; answers that are ready go out together.
//
// The server copies a block from the window, and stores the copy only if it has the
// name that the client gave. So a client that goes on writing to the window harms no
// other client.
package server
