// Package server keeps blocks for clients.
//
// The server is one goroutine and one select: over completions, new
// connections and the end. It reads like a program without concurrency, since
// what is concurrent, the moving of bytes, is the library's work.
//
//	         ┌────────────── events      ◄── connections of all sessions
//	select ──┼────────────── requests    ◄── the listener
//	         └────────────── ctx.Done
//	  │
//	  ├─ PUT: gather; commit when nothing else waits, or enough is gathered
//	  ├─ GET: from the store into the client's slot of the window
//	  └─ connection over: free its session
//
// Each client has a session: a connection, and a window that it may write and read
// by RDMA. The window is in the connection's own protection zone, so that one client
// cannot reach another's window even if it guesses its key. An answer goes out in the
// buffer that its request came in; those that are ready go out together.
//
// A block is stored as it was when the server copied it from the window, and
// only if that copy has the name that the client gave it: a client that goes on
// writing to the window hurts nobody.
package server
