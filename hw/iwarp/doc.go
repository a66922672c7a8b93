// Package iwarp is RDMA over any TCP connection, in pure Go: standard iWARP (MPA,
// DDP and RDMAP; RFC 5044, 6581, 5041, 5040), and between two of its own ends the
// immediate data and atomics of RFC 7306. It needs no device, kernel module or
// privilege.
//
// Importing it registers the provider "iwarp". Its devices are local addresses;
// the default one listens on all of them. An address is an IP address or a host
// name, and a connection qualifier is a TCP port. [New] makes a provider with
// dial and listen functions of the caller's own, for TLS, unix sockets or
// net.Pipe between two of our own ends. Settings are in [Config.Params].
//
// # How it works
//
// A queue pair's connection (connection.go) sets up and ends two halves, a sender and
// a receiver. Neither reaches into the other: what both know is in the link (link.go).
//
// The receiver (receive.go) has a goroutine. It parses what the socket gives, and has
// large payloads without a CRC read straight into registered memory. The sender
// (sender.go) has none. It belongs to the holder of the connection's token (token.go):
// the poster if the token is free, or the receiver's goroutine after a read request or
// a read's response, or the writer (writer.go). The writer is a second goroutine for
// what blocks: it waits until the socket takes more, writes to a connection without a
// descriptor, and closes. Its first job starts it. A connection has buffers only while
// octets are in them.
//
//	PostSend   queue, take the token, cut into FPDUs (request.go, segment.go), one writev
//	           for all of them (step.go); what the socket does not take waits
//	receiver   FPDU → memory or receive queue (receive.go, direct.go, tagged.go, untagged.go);
//	           read requests queue for the sender (respond.go)
//	the end    die says once why the connection is over, whatever happened. The token's
//	           holder then flushes and ends both queues (over.go). The writer sends the
//	           Terminate, closes our half and, when the receiver has read to the end of
//	           the stream, the connection
//
// # What a completion means
//
// A send or write completes with success when TCP has taken its bytes: the memory is
// the program's again. It says nothing of the peer, which may not have read them yet,
// and may refuse them; that is heard as Down(ReasonBroken), behind the success. A read
// or atomic completes when its response has been placed, and the peer has placed all
// writes before it by then. So what says that a write is in the peer's memory is the
// success of a read behind it, or the peer's answer to a message behind it. That answer
// can be received before the message itself completes here: the receiver may run
// before the poster goes on (meaning_test.go).
//
// The receivers wait in Go's network poller, which runs when a processor has nothing
// else to do. A program that polls for completions on all its processors gets each
// message up to 10 ms late, when the runtime's monitor looks at the sockets; it should
// sleep for them (a channel, Wait), or leave a processor free.
//
// # What else it does its own way
//
// A send that finds no receive breaks the connection at once. Memory is checked per
// FPDU, by key, zone, bounds and privilege, and again when a socket that was full
// takes more; an FPDU that is half written is finished from a copy. With CRCs, a
// payload is copied before it is summed and sent, and placed after its CRC has been
// checked: others may use the memory meanwhile. A region's local and remote keys
// differ, and a send with invalidate kills the remote one only.
//
// The end of a peer's stream is an orderly end, unless requests to it are outstanding
// or its message is incomplete: then it is taken for a process that died. An end of our
// own kind therefore says farewell first, by a write of no octets (cause.go).
//
// # Linux's soft-iWARP as the peer
//
// Two of its faults are worth knowing (Linux 6.1). Its kernel stops (BUG in iwcm.c)
// when an initiator that promised a ready-to-receive leaves too early, so by default
// none is promised to peers of another kind: the parameter peer2peer. That costs
// nothing between ends of this package, which have a ready-to-receive without a
// promise, unless extensions or big is false: then the accepting end waits for the
// initiator's first message, or for the time grace. Intel's adapters refuse a request
// without the promise and hang up; they are asked again with MPA's revision 1, which
// does not negotiate how many reads there are at a time.
//
// And it misreads a CRC that comes in two TCP segments, since it stores the second
// part over the first (siw_get_trailer): it logs "crc error" and ends the connection,
// and again after each new attempt. What cuts the stream anew on its way brings this
// about, such as the user-mode network of QEMU. siw itself asks for no CRCs; to have
// none, set crc=false here, whichever side connects.
//
// # What a peer can't do
//
// Each line has its tests, in the files named.
//
//	guess a key                      all 32 bits of an STag are drawn at random, so those that a peer has
//	                                 seen tell it nothing of others (internal/keys)
//	reach what is not offered        key, zone or queue pair, privilege, wrap and bounds are checked, in
//	                                 this order, for each FPDU (memory.go; errors_test.go,
//	                                 abuse_extended_test.go); what is read ends with the key (window_test.go)
//	kill another's keys              an invalidation needs a remote key of the same zone (errors_test.go)
//	overrun a receive                a message is held against its receive (errors_test.go)
//	lie about a length               what completes is what was placed, atomics are aligned by address
//	                                 (abuse_extended_test.go, room_unix_test.go)
//	break a connection by writing    what a CRC covers is summed from a copy, and checked before it is
//	where others read or write       placed (live_test.go)
//	have anything placed out of turn sequence numbers and offsets are exact (errors_test.go)
//	have us allocate by a length     private data is at most 512 octets, an FPDU fits the buffer that a
//	                                 connection has while it receives, and reads of gigabytes are sent a
//	                                 buffer at a time (limits_test.go)
//	ask without end                  reads outstanding are bounded by what was agreed on (errors_test.go,
//	                                 abuse_extended_test.go); messages of nothing keep nobody from sending
//	                                 (limits_test.go)
//	keep others out by silence       of connections without a request at most halfopen per listener are
//	                                 kept, of them halfopenip per address, for the time mpa, and the oldest
//	                                 gives way to a new one (startups_test.go, deadline_test.go); of refused
//	                                 ones that don't hang up halfopen per device, for the time linger
//	be slow, or stuck, or gone       mpa, grace, stall, linger and keepalive bound each wait for a peer
//	                                 (deadline_test.go, pulse_test.go, stopped_unix_test.go); one that has
//	                                 agreed to no read may be stuck, if its kernel is not
//	upset a parser                   each has a fuzz target, and the live engine two (fuzz_test.go)
//
// There is no limit to the rate of set-ups but those on how many are in progress,
// and how many requests a service point has room for.
//
// iWARP itself has neither authentication nor secrecy. Between our own ends TLS has
// both ([Config]); with other peers, use a tunnel of the system's. A service point
// that listens at the address of an interface is not reached by the others; a
// request's private data is there for the program's own credentials, and is seen
// before anything is accepted. For peers that do not trust each other make a zone
// for each, or windows of one queue pair: a region is open to all connections of its
// zone.
package iwarp
