// Package bytestream is a stream of bytes in some 400 lines: what a program writes at one end it
// reads at the other, in order. It is for a reader who wants a transport of their own on
// godat, and uses only what any program may. Programs take package stream, which also has
// deadlines, addresses and versions, and copies less.
//
// Three things of the library make it short:
//
//   - evd.Config.Func (ModeFunc): the goroutine that completes an operation calls
//     [Conn.hear], which counts, and wakes a Read or a Write that waits.
//   - PZ.NewLoan: a Write of some length lends its argument to the device and copies nothing.
//   - Endpoint.Watcher: over TCP a Read that waits reads the socket itself, and no goroutine has
//     to wake it.
//
// # The protocol
//
// Each end posts depth receives of slotSize bytes. A message is a header of 8 bytes and what comes of
// the stream next. The header says how many receives its sender has posted so far, so the peer knows how
// many messages it may send: more would break the connection. One is kept for a message
// without bytes, by which an end that writes nothing grants half of its receives or more. An orderly disconnect
// ends the stream: it comes behind all messages.
package bytestream
