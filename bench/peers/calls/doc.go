// Package calls compares calls of godat/runtime/rpc with those of gRPC, net/http, net/rpc and a plain
// server on net. A row is one way to make calls. It has two processes, a server and a client, and
// all rows take turns. After each turn the row proves what it ran: both ends have counted calls,
// bytes and deadlines, and a count that is not what the row's name says refuses the row.
package calls
