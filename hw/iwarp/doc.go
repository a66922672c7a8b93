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
// A connection has two goroutines. One receives: it parses what the socket gives,
// and has large payloads read straight into registered memory. Everything about
// sending belongs to whoever holds the connection's token (token.go): the poster
// if it is free, the receiver that got a read request or a read's response, or
// the second goroutine, which does only what blocks: it waits until the socket
// takes more, writes to a connection without a descriptor, and closes.
//
//	PostSend   queue, take the token, cut into FPDUs (request.go, segment.go), one writev
//	           for all of them (step.go); what the socket does not take waits
//	receiver   FPDU → memory or receive queue (receive.go, direct.go, tagged.go, untagged.go);
//	           read requests queue for the token's holder (respond.go)
//	the end    whatever happened, die says why, once; the token's holder then
//	           flushes and ends both queues, and the second goroutine sends the
//	           Terminate, closes its half, and reads to the end (over.go)
//
// # What else it does its own way
//
// A send or write completes when the transport has taken it; what goes wrong at
// the target is heard as Down(ReasonBroken). A send that finds no receive breaks
// the connection at once. Memory is checked per FPDU, by key, zone, bounds and
// privilege, and again when a socket that was full takes more; an FPDU that is
// half written is finished from a copy. A region's local and remote keys differ,
// and a send with invalidate kills the remote one only.
package iwarp
