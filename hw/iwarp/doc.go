// Package iwarp is RDMA over any TCP connection, in pure Go: standard iWARP (MPA,
// DDP and RDMAP; RFC 5044, 6581, 5041, 5040), and between two of its own ends the
// immediate data and atomics of RFC 7306. It needs no device, kernel module or
// privilege.
//
// Importing it registers the provider "iwarp". Its devices are local addresses;
// the default one listens on all of them. An address is an IP address or a host
// name, and a connection qualifier is a TCP port. [New] makes a provider with the
// caller's own functions to dial and listen, for TLS, unix sockets or net.Pipe between
// two ends of this package. Settings are in [Config.Params].
//
// # How it works
//
// A queue pair's connection (connection.go) sets up and ends two halves, a sender and
// a receiver. Neither reaches into the other: their common state is in the link
// (link.go).
//
// The receiver (receive.go) has a goroutine. It parses the octets of the socket, and
// reads large payloads without a CRC straight into registered memory. Its placer
// (place.go) places the segments and completes receives.
//
// The sender (sender.go) has no goroutine. It belongs to the holder of the connection's
// token (package token): the poster if the token is free, or the receiver's goroutine
// after a read request or a read's response, or the writer (writer.go). The writer is a
// second goroutine for calls that block: it waits until the socket takes more, writes to
// a connection without a descriptor, and closes. Its first job starts it. A connection
// has buffers only while octets are in them.
//
//	PostSend   queue, take the token, cut into FPDUs (request.go, segment.go), one writev
//	           for all of them (step.go); octets that the socket does not take wait
//	receiver   FPDU → memory or receive queue (consume.go, inplace.go, place.go, tagged.go, untagged.go);
//	           read requests queue for the sender (respond.go)
//	the end    the first call of die sets why the connection is over. The token's holder
//	           then flushes and ends both queues (over.go). The writer sends the
//	           Terminate, closes this end's half and, when the receiver has read to the
//	           end of the stream, the connection
//
// The code of a Terminate is the Term of the wire.Error that a check returns; wire/errors.go
// has all codes. The checks are:
//
//	length and CRC of an FPDU      consume (consume.go), finish (inplace.go); with markers the codec
//	form, and what wraps           the codec (wire)
//	keys and bounds                remoteFault and tagged (memory.go)
//	a key that dies under way      storeFault and change (tagged.go)
//	sequence, length               the functions begin… and finish… (tagged.go, untagged.go)
//	a read response's STag         the same
//	the STag that a send kills     the same
//
// receive.go queues the Terminate behind the responses that are due, and the writer sends it.
// segment.go, step.go, connection.go and connect.go end connections with Terminates of their
// own.
//
// # What a completion means
//
// A send or write completes with success when TCP has taken its bytes: the program may
// use the memory again. The success does not mean that the peer has read the bytes, and
// the peer may still refuse them; the provider then reports Down(ReasonBroken) after the
// success. A read or atomic completes when its response has been placed, and by then the
// peer has placed all writes before it. So a program knows that a write is in the peer's
// memory when a read behind it succeeds, or when the peer answers a message behind it.
// That answer can be received before the message itself completes here: the receiver
// may run before the poster goes on (meaning_test.go).
//
// The receivers wait in Go's network poller, which runs when a processor has nothing else
// to do. On Linux a consumer that polls reads the sockets itself ([hw.Progresser]). When
// such consumers on other systems, or other loops, keep all processors busy, each message
// comes up to 10 ms late, when the runtime's monitor looks at the sockets. Such a program
// should sleep until a completion comes (a channel, Wait), or leave a processor free.
//
// # What is particular to this provider
//
// A send that finds no receive breaks the connection at once. Memory is checked per FPDU,
// by key, zone, bounds and privilege, and again when a socket that was full takes more; a
// half-written FPDU is finished from a copy. With CRCs, the sender copies a payload and
// computes the CRC of the copy, and the receiver places a payload after it has checked the
// CRC, because others may use the memory meanwhile. The sender does not copy memory that is
// lent for reading alone ([hw.Remapper]), which nobody may change. In memory that is lent
// for a peer's writes alone the receiver places a payload before it checks the CRC (ahead.go). A
// region's local and remote keys differ, and a send with invalidate kills the remote one
// only.
//
// An end of this package that leaves in order sends a farewell first, a write of no octets
// (cause.go). So if its stream ends without one, its process counts as dead, and the
// connection as broken. The end of the stream of another implementation is an orderly
// end, unless requests to the peer are outstanding or its message is incomplete.
//
// # Linux's soft-iWARP as the peer
//
// Four of its faults are worth knowing (Linux 6.1). First, its kernel stops (BUG in iwcm.c)
// when an initiator that promised a ready-to-receive leaves too early, so by default an
// initiator promises none to other implementations: the parameter peer2peer. Between ends
// of this package that costs nothing: the initiator sends a ready-to-receive without a
// promise. If extensions or big is false it sends none, and the accepting end waits for its
// first message, or for the time grace. Intel's adapters refuse a request without the
// promise and close the connection; the initiator asks them again with MPA's revision 1,
// which does not negotiate the number of reads at a time.
//
// Second, siw misreads a CRC that comes in two TCP segments, because it stores the second
// part over the first (siw_get_trailer): it logs "crc error" and ends the connection,
// and again after each new attempt. A network that cuts the stream into new segments
// causes this, such as the user-mode network of QEMU. siw itself asks for no CRCs; to
// have none, set crc=false here, whichever side connects.
//
// Third, siw answers a read of no octets with the octets of its last message, if it is
// sending when the request comes (siw_activate_tx). The answer is longer than the read, so
// it ends the connection. Don't post such a read to siw, to learn that writes before it have
// arrived; read an octet of the peer's memory. This package sends one unasked to its own
// ends only (pulse.go).
//
// Fourth, siw may never answer a connection that comes while its program is inside
// rdma_listen: the socket listens before siw's state says so (siw_create_listen). So
// don't find out by attempts whether such a program listens; have it say so.
//
// # What a peer can't do
//
// Each line has its tests, in the files named.
//
//	guess a key                      all 32 bits of an STag are drawn at random, so the STags that a peer
//	                                 has seen tell it nothing of others (internal/keys)
//	reach what is not offered        key, zone or queue pair, privilege and bounds are checked, in this
//	                                 order, for each FPDU (memory.go; errors_test.go,
//	                                 abuse_extended_test.go), after the codec has refused ranges that
//	                                 wrap; a peer's read stops when its key dies (window_test.go)
//	kill another's keys              an invalidation needs a remote key of the same zone (errors_test.go)
//	overrun a receive                a message is checked against its receive (errors_test.go)
//	lie about a length               a completion counts the bytes placed, atomics are aligned by address
//	                                 (abuse_extended_test.go, room_unix_test.go)
//	break a connection by writing    a CRC is computed over a copy, or over memory that no peer can write
//	where others read or write       to, and checked before the payload is placed (live_test.go, full_test.go)
//	have anything placed out of turn sequence numbers and offsets are exact (errors_test.go)
//	force allocations by a length    private data is at most 512 octets, an FPDU fits the buffer that a
//	                                 connection has while it receives, and reads of gigabytes are sent a
//	                                 buffer at a time (limits_test.go); a larger buffer, for what a read
//	                                 ahead did not expect, is given back before the next read
//	                                 (ahead_unix_test.go)
//	ask without end                  reads whose responses wait for a place in the outbox are bounded by the
//	                                 agreement (errors_test.go, abuse_extended_test.go); empty messages do not keep the program from
//	                                 sending (limits_test.go)
//	keep others out by silence       a listener keeps at most halfopen connections without a request, at most
//	                                 halfopenip of them per address, for the time mpa; the oldest gives way
//	                                 to a new one (startups_test.go, deadline_test.go). A device keeps at most
//	                                 halfopen refused connections that the peer does not close, for the
//	                                 time linger
//	take all descriptors             a listener keeps a spare one, with which it closes what it can't serve, at
//	                                 once, and reports it (spare_unix_test.go)
//	be slow, or stuck, or gone       mpa, reply, grace, stall, linger and keepalive bound each wait for a peer
//	                                 (deadline_test.go, pulse_test.go, stopped_unix_test.go, gone_linux_test.go). A
//	                                 slow peer is not dead (slow_linux_test.go), and a pause of this process
//	                                 is no fault of the peer's (judge_test.go, late_test.go; for the timers of
//	                                 the packages loop and ep, watch_test.go and connect_test.go there). Nobody
//	                                 notices that a peer of another kind is stuck if it owes no answer and its
//	                                 kernel goes on
//	crash a parser                   each parser has a fuzz target, and the live engine two (fuzz_test.go)
//
// The rate of start-ups is limited only by how many may be in progress, and by how many
// requests a service point has room for.
//
// iWARP itself has neither authentication nor secrecy. Between ends of this package TLS
// provides both ([Config]); with other peers, use a tunnel of the system's. A service
// point that listens at the address of one interface can't be reached through the
// others. A program can send its own credentials in a request's private data, which the
// peer's program sees before it accepts. For peers that do not trust each other make a
// zone for each, or windows of one queue pair: a region is open to all connections of its
// zone.
package iwarp
