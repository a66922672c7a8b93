// Package stream carries byte streams over any provider: a [Conn] is a net.Conn, a
// [Listener] a net.Listener, and a [Dialer] gives an http.Transport its DialContext. So a
// server that is written for net runs over loop, iwarp or a verbs device unchanged:
//
//	ln, err := stream.Listen(ctx, ia, "127.0.0.1:0", stream.Config{})
//	…
//	err = http.Serve(ln, handler)
//
// # How it works
//
// Each end of a connection has a ring of memory for what the peer sends. A writer copies
// its bytes into an image of the peer's ring, sends them by RDMA write to the same place
// of the ring itself, and posts a message behind the write that says how far the ring is
// filled. Few bytes travel in the message. A reader copies out of its ring, and tells the
// peer by a message of the other direction how far it has read.
//
// A connection has no goroutine of its own. The goroutine that completes a receive
// records what its message says (arrive.go): it counts, and wakes a Read or Write that
// waits. It takes no lock and posts nothing. The calls of Read and Write post the receives
// again and report what was read, so a peer whose partner calls neither is held up when
// the ring or the receives are used up, as on TCP. On an adapter whose consumers poll
// (dat.PollerConfig), a call that waits polls once and then leaves the device to the adapter,
// as dat.Dispatcher.Wait does.
//
// # The wire format, version 1
//
// All numbers are little-endian. The private data of the connection request is a hello, and
// so is that of the accept:
//
//	 0       4         6       8         16        20       24         28     32
//	+-------+---------+-------+---------+---------+--------+----------+------+
//	| magic | version |   0   | address | context | size   | receives |  0   |
//	+-------+---------+-------+---------+---------+--------+----------+------+
//
// magic is "DATS". address, context and size name the ring that the peer may write to;
// the size is a power of two from 4 KiB to 1 GiB. The rings of a connection are used as
// if both had the smaller one of the two sizes. receives is how many messages of 256
// bytes the sender of the hello has posted receives for, from 8 to 65536. An end rejects a
// request that is no such hello. The private data of the reject is the hello that it
// would have sent, with zeros for the ring, so that the peer can say which versions met.
//
// Each message begins with 32 bytes, and may have up to 224 bytes of the stream behind them:
//
//	 0          8          16        24       26      27        31        32
//	+----------+----------+---------+--------+-------+---------+---------+-- … --+
//	| produced | consumed | granted | inline | flags |    0    | version | bytes |
//	+----------+----------+---------+--------+-------+---------+---------+-------+
//
//	produced  how many bytes of the stream its sender has written, in all
//	consumed  how many bytes of the other direction its program has read, in all
//	granted   how many messages it has posted receives for, in all
//	inline    how many bytes of the stream are in this message: the last ones of produced
//	flags     bit 0, FIN: no bytes follow produced
//
// Byte n of a stream lies at n modulo the size of the ring. An end writes no byte before the
// peer has consumed the one that lay there before, and sends no message without a receive
// granted for it. Of the receives granted, a message with bytes leaves two, as does a report
// of bytes consumed alone; a report that grants half of the receives leaves one, and a FIN
// none. So a FIN never waits, and ends whose buffers are full never wait for each other's
// grants (send.go). An end that has sent its FIN leaves one less.
//
// An end that closes sends a FIN and then disconnects gracefully. A stream that ends
// without a FIN was cut: its reader gets the bytes that came, and then an error.
//
// # What a peer can't do
//
// An end believes no counter. It ends the connection with [ErrProtocol] when produced or
// consumed or granted go back, when produced passes what the ring has room for, when
// consumed passes what was sent, when granted passes the receives that there can be, when
// bytes follow a FIN, and when a message is too short or says what this version does not
// know. The ring is the only memory that the peer can write to, and its zone belongs to the
// connection alone. A peer may still write into its own stream's bytes before they are
// read. [Conn.Read] copies them once; a writer that [Conn.WriteTo] gives them to reads them
// in the ring, and must not read a byte twice if it trusts the first look.
package stream
