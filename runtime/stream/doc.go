// Package stream carries byte streams over any provider: a [Conn] is a net.Conn, a
// [Listener] a net.Listener, and a [Dialer] gives an http.Transport its DialContext. So a
// server that is written for net runs over loop, iwarp or a verbs device unchanged:
//
//	ln, err := stream.Listen(ctx, ia, "127.0.0.1:0", stream.Config{})
//	…
//	err = http.Serve(ln, handler)
//
// A program that has no adapter of its own passes a nil one, and its streams share one that
// is opened for them (Config.Adapter):
//
//	ln, err := stream.Listen(ctx, nil, ":8080", stream.Config{})
//	conn, err := new(stream.Dialer).DialContext(ctx, "tcp", "server:8080")
//
// # How it works
//
// Each end of a connection has a ring of memory for what the peer sends. A writer copies
// its bytes into registered memory, the image, sends them from there by RDMA write into
// the peer's ring, and posts a message behind the write that says how far the ring is
// filled. If the bytes are few, they are in the message itself. A Write of 16 KiB or more
// lends its bytes to the device until it returns, and does not copy them (lend.go); only
// a provider that accesses memory from this process can do that, as loop and iwarp do. A
// reader copies out of its ring, and tells the peer by a message of the other direction
// how far it has read. ReadFrom reads into the image and WriteTo writes out of the ring,
// so neither copies.
//
// A Read of 64 KiB or more that finds nothing to read offers its buffer to the peer, on the
// same providers. The writer then writes its next bytes there instead of into the ring, if
// the buffer was offered for these bytes (offer.go). So nothing is copied between a large
// Write and a large Read that waits for it. The writer never waits for an offer, and the
// reader never waits until its offer is used. If such Reads follow each other at once, the
// offer of each also reports what the one before has read (hold.go).
//
// A connection begins with a ring of 4 KiB. When half of it or more waits to be read, the
// reading end makes a ring of Config.Ring bytes and offers that to the peer. A writer's
// image, of up to 512 KiB, is made by the first Write that neither fits into a message nor
// lends its bytes. It has room for two such Writes, and doubles when a Write has waited for it.
//
// A connection has no goroutine of its own. The goroutine that completes a receive
// records what its message says (arrive.go): it counts, and wakes a Read or Write that
// waits. It takes no lock and posts nothing. The calls of Read and Write post the receives
// again and report what was read. While the program is in no call, a timer does that within a
// millisecond or two (hold.go): it grants receives, and sends a report for which there was no
// credit when the program read. So a Write waits for the program at the other end only
// while the ring has less room than the Write needs, or than half of the ring if it needs
// more. A goroutine makes the larger ring, offers it to the peer, and ends.
//
// How a call waits depends on the provider (waiter.go). It sleeps until a completion wakes it.
// Where the program has one processor it first lets other goroutines run. On an adapter
// without a pinned thread (dat.PollerConfig), and over iwarp, it first polls a few times, as
// evd.Dispatcher.Wait does, and then leaves the device to the adapter. Over iwarp, where the
// program has several processors, a Read often sleeps in the socket itself, as a Read of a
// net.Conn does.
//
// # What it costs
//
// A Read copies each byte once, except those that the peer wrote into its buffer, and a
// Write copies each byte once, except those that it lends. The provider copies, too: once
// on loop, and in the system over TCP. `go run ./bench peers --only net` compares
// streams with net.Conn and net.Pipe.
//
// An idle end, which has carried a question and an answer of a kilobyte, takes 25 to 29 KB
// of heap on loop and no goroutine; over iwarp 35 to 41 KB of heap and stack, one goroutine
// and one descriptor (10 000 connections, `go run ./bench idle --streams`, with --ia loop
// too). An end that has carried more keeps its larger ring and image until it is closed.
//
// # The wire format, version 3
//
// All numbers are little-endian. The private data of the connection request is a hello, and
// so is that of the accept:
//
//	 0       4         6       8         16        20       24         28     32
//	+-------+---------+-------+---------+---------+--------+----------+------+
//	| magic | oldest  | newest| address | context | size   | receives |  0   |
//	+-------+---------+-------+---------+---------+--------+----------+------+
//
// magic is "DATS". oldest and newest are the versions that the sender speaks; a newest of 0 says that it
// speaks the oldest alone. Both ends use the newest version that both speak, which each message names. Each
// release speaks the version of the release before, so a service is renewed one process after the other. A hello
// has these fields in all versions. address, context and size name the first ring that the peer may write
// to; the size is a power of two from 4 KiB to 1 GiB. receives is how many messages of 256
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
//	          bit 1, RING: the 16 bytes behind the header are address, context and size of
//	                 a second ring, as in a hello, which is larger than the first; inline is 0
//	          bit 2, MOVED: the bytes that this message counts are the first in that ring
//	          bit 3, BUFFER: the 16 bytes behind the header are address, context and size of
//	                 a buffer, of 4 KiB or more, for the bytes of the other direction behind
//	                 consumed; inline is 0
//	          bit 4, DIRECT: the bytes that this message counts are in the buffer that the
//	                 peer has offered for them, from its beginning on; inline is 0
//
// RING and BUFFER do not come together, nor do MOVED and DIRECT.
//
// A RING comes at most once in each direction. The peer need not use the ring; once it has
// said MOVED, which also comes once, it uses no other.
//
// Byte n of a stream lies at n modulo the size of its ring, unless a DIRECT counts it. When
// a message counts bytes in the ring, at most the ring's size of bytes is produced and not
// consumed. So an end overwrites no byte that the peer has not consumed.
//
// A BUFFER says that its sender has consumed all that had come. So it is of use only to a peer
// that has produced no more meanwhile. The first message that counts bytes beyond the BUFFER's
// consumed ends the offer. Either it is a DIRECT, whose bytes one RDMA write has put into the
// buffer; or its bytes are in the ring, and the peer does not use the buffer any more. For each
// value of consumed there is one BUFFER at most.
//
// The bytes of a DIRECT may be more than the ring has room for. They count as unread like
// all others, so the bytes behind them go to the ring when the reader has consumed enough, or
// into another buffer.
//
// An end sends no message without a receive that the peer has granted for it. Of those
// granted, it leaves some for the messages that must not wait:
//
//	a FIN                                      leaves none
//	a report that grants half of the receives  leaves one, for the FIN
//	any other message                          leaves two, one of them for such a report
//
// An end that has sent its FIN leaves one less. So a FIN never waits, and two ends whose
// buffers are full never wait for each other's grants (send.go).
//
// An end that closes sends a FIN and then disconnects gracefully. A stream that ends
// without a FIN was cut: its reader gets the bytes that came, and then an error.
//
// # What a peer can't do
//
// An end believes no counter. It ends the connection with [ErrProtocol] when produced or
// consumed or granted go back, when produced passes what the ring has room for, when consumed
// passes what was sent, when granted passes the receives that there can be, when bytes follow a
// FIN, when the peer uses a ring or a buffer that was not offered, or offers an impossible one,
// and when a message is too short or says what this version does not know. The rings, and the
// buffer that a Read has offered until that Read returns, are the only memory that the peer can
// write to, and their zone belongs to the connection alone. A peer may still write into its own
// stream's bytes before they are read. [Conn.Read] copies them once, or has them in its buffer,
// which nobody writes any more when it returns. The writer that [Conn.WriteTo] calls reads them
// in the ring, where a second look at a byte may find another value. If that writer is another
// Conn, it copies them first: otherwise over iwarp with CRCs the peer could end that
// connection, too.
package stream
