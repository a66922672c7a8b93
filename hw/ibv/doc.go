// Package ibv is the provider for RDMA devices that the system's verbs library
// knows: InfiniBand, RoCE and iWARP adapters, and the kernel's soft-RoCE and
// soft-iWARP. A program imports it for its effect:
//
//	import _ "godat/hw/ibv"
//
// and opens "ibv" for the first device, or "ibv:rxe0" for the device rxe0. When a
// library, a device or an address is missing, Open's error says which.
//
// # Building
//
// The package builds without installed libraries, headers or build tags. With
// cgo on Linux it loads libibverbs.so.1 and librdmacm.so.1 when a device is opened;
// on other systems, and without cgo, Open returns an error that says so. So one build of
// a program runs with and without a device, and needs no headers. In return abi.h declares
// the structures of the headers again. Both libraries promise not to change them, and
// testdata/abi_check.c compares them with the headers. The headers' inline functions call
// through the context's table of operations, and so does this package.
//
// # The data path
//
// One call into C posts a list of requests with one doorbell, and one call takes the
// completions of all queues. PostSend and PostRecv write the requests straight into
// rings in C's memory, which never hold a Go pointer. A send that fits goes inline.
// The length and the operation in a send's completion come from the ring, since a
// device reports them reliably only on success, and not always then.
//
// # What a completion means
//
// On InfiniBand and RoCE a send or write completes with success when the peer's adapter
// has acknowledged it, and a request that the peer refuses completes with the error.
// The adapter may acknowledge a write before the peer's processor can see it. On iWARP
// (soft-iWARP, too) it completes when the transport has taken it, and a request that
// the peer refuses breaks the connection. On both, the bytes of a write are visible to
// the peer's program when a later message has completed there; this side knows it from
// the peer's answer, or from the success of a read that was posted behind the write.
// The provider polls the queues one by one, so it may deliver the answer to a message
// before the message's own completion.
//
// # Connections
//
// One goroutine per device takes the events of the connection manager and of the
// device. Each attempt to connect has a goroutine until the attempt succeeds or fails,
// because some drivers block in rdma_connect. These goroutines call the methods of
// hw.Facts; Poll never does. PostSend and Drain call Established themselves when a
// receive has shown the owner that the connection is up before the event arrived.
//
// A device flushes a queue pair in its own time, and a send that succeeded without
// being signaled leaves no trace. So the provider posts a marker behind the last send
// of a dead queue pair: when the marker completes, the send queue is flushed. Markers
// don't work on iWARP; there the provider signals every send, drops the completions
// that were not asked for, and itself flushes what is left when the queue pair is in
// error. A request that is posted after a queue pair's death never reaches the device.
//
// # Pairs
//
// A queue pair that is paired goes into service without the connection manager, so nobody
// tells it of the peer's end. A request that fails shows the end: after ack_timeout and
// retries, some four seconds unless they are set. A pair probes its peer once in the time
// keepalive, by a write of no bytes, whose failure ends the connection. Between two
// ends of this package the values have a place for a farewell, which the peer writes when it ends
// the connection in order; this side finds it within a second.
//
// Another program's queue pair may refuse every write, as that of ibv_rc_pingpong does, and
// break over a probe. So without the parameter keepalive a pair probes only a peer that gives
// a place for a farewell, and notices the end of another peer when a request fails.
//
// A peer must pair within the time keepalive, and within ack_timeout and retries of the first
// request. Packet sequence numbers (PSNs) are drawn at random, so that a packet of an earlier connection finds no place in
// a later one. iWARP devices can't pair. The program examples/rdmaping is a peer of
// ibv_rc_pingpong, of ibv_srq_pingpong and of perftest without -R.
//
// On InfiniBand the peer's LID alone leads to it, unless the parameter gid has an index: then each
// packet has the GIDs, too. Devices in software have no LIDs. So testdata/pair_check.c compares
// what this package gives the verbs library with what ibv_rc_pingpong gives it, and no test shows
// that packets reach a LID.
//
// # Private data
//
// InfiniBand's messages carry a fixed number of bytes. In a request for a connection
// and in the answer to it, the last eight bytes, the tail, hold the length of the
// private data and the place where the peer writes one byte, its farewell, when it ends
// the connection in order. A peer that is not godat sees zeros and then the tail. The
// farewell tells an orderly end from a broken one, which verbs don't. The farewell may be
// stuck behind a send that waits for a receive. So an end that finds no farewell, and has
// no receive posted, fetches it from the peer's memory by an RDMA read. The
// parameter tail=off leaves the tail out: then private data arrives with the padding,
// and every end that the peer announces counts as orderly. iWARP's messages keep the
// length, so the default there is off; tail=on appends sixteen bytes.
//
// A consumer's reject begins with the four bytes that the C library of uDAPL sends; on
// iWARP only when it has no private data. When the provider itself rejects, for want of
// room, the reject carries bytes that say so, which hw/iwarp knows too. Every other
// reject with a consumer's reason code counts as a consumer's: so does a C program's
// plain rdma_reject, with data or without. The kernel sends the same code for a process
// that ended before it answered, and soft-iWARP reports it for a peer that hung up.
//
// # What verbs don't have
//
// A program may send from any region, and may receive into a region that peers may write.
// No completion of verbs says that it was solicited, so the provider says so of every
// receive: a goroutine that waits for solicited ones may wake for others, but never
// misses one. A completion queue made for solicited ones alone wakes the poller for those
// only, except on soft-iWARP. An inline send has read its memory when it is posted.
//
// Verbs don't tell how many receives are left in a shared receive queue, so its low
// watermark goes by the completions as well as by the device's event. Nor do they tell
// whether a window is bound; there is no read into a window.
//
// Soft-iWARP completes sends before the peer has read them, reports a read that the peer
// refused as flushed, lets peers read any region that has a remote key, and takes as many
// reads at a time as the peer asks for. It completes a send with an error although the peer
// has the message, if the peer ends the connection before the call that sends has returned.
// It may never answer a peer that connects before Listen has returned. It sets no keep-alive
// on its sockets: it notices that a peer's host is gone only when it sends something there
// and TCP gives up, after a quarter of an hour (the system's net.ipv4.tcp_retries2).
//
// On soft-iWARP an attempt to connect lasts until the peer's transport has answered, or
// for 10 s. The program may close the objects of the attempt earlier; they are freed when
// it ends, and the device's Close waits for that. An acceptor on soft-iWARP may leave the
// initiator's first message unread until more comes. So on that device an initiator sends
// some writes of no bytes, and an acceptor sends a read of no bytes if octets stay in its
// socket (nudge.go). Soft-iWARP answers a read of no bytes with the bytes of its last
// message, if it is sending when the request comes, and so breaks the connection: use a
// read of one byte if the peer may be on soft-iWARP. Soft-iWARP checks a region when a
// request begins and not again, so Deregister ends each connection with an outstanding
// request that names the region; the first such request fails with a protection error.
//
// A send can invalidate a key of the peer's (hw.OpSendInvalidate) where the device says
// that it has the memory management extensions, as soft-RoCE, soft-iWARP and the
// adapters do. Elsewhere the post fails with errors.ErrUnsupported; the program then
// uses a plain send, after which the peer invalidates the key itself. The operation is
// for keys that the peer's program registered, such as those that a Linux storage
// initiator registers per request. It is not for keys of regions of this package:
// soft-RoCE breaks a connection whose peer invalidates one, and soft-iWARP invalidates
// it without saying so in the receive's completion. So the device has
// hw.OpSendInvalidate, and not hw.OpRecvInvalidate.
//
// # When the device goes
//
// When a device is removed, every program that has it open gets hw.AsyncDeviceFatal,
// connected or not; its connections end, and their outstanding requests are flushed.
// Drivers of hardware then release the device. Drivers in software wait until no
// process has it open, and librdmacm keeps it open for itself as long as the process
// lives: rdma link delete returns when the processes that used the device have ended.
//
// # Parameters
//
//	address      the device's own address to use, when it has several
//	tail         on or off; see above
//	inline       most bytes of an inline send (64)
//	ack_timeout  exponent of the transport's retry timer, 4.096 µs << n (17)
//	port         the device's port (1)
//	windows      on or off: memory windows (off)
//	relaxed      on or off: the device may order its writes to memory as it likes, where it
//	             and the library know how (off)
//	retries      how often a packet that is not acknowledged is sent again, up to 7 (6);
//	             soft-RoCE takes 7 to mean without end
//	rnr_timer    verbs' code, 0 to 31, of how long a peer's send waits that finds no receive;
//	             unless given, as the queue pair's NotReady says
//	rnr_retries  how often a send that found no receive is sent again; 7 means without end;
//	             unless given, as NotReady says
//	keepalive    how often a pair probes its peer, as in 30s, at least 10ms; 0 means never;
//	             unless given, every 30s if the peer is of this package, and else never
//
// ack_timeout, retries, rnr_timer and rnr_retries are for this side of each connection,
// with or without the connection manager; the manager also tells the peer retries and
// rnr_retries.
//
// The parameters below are for queue pairs that connect by exchanged values
// ([hw.Pairer]). If the port does not have a given value, Open's error lists those it
// has.
//
//	gid            an index, or roce_v1 or roce_v2; unless given, the GID of the device's
//	               address for RoCE version 2, which the connection manager takes, too
//	mtu            the most bytes of a packet's payload; at most the port's, which is the default
//	pkey           the partition key (the port's first)
//	traffic_class  0 to 255 (0); also of a connection that this side requests
//	hop_limit      0 to 255 (64)
//	service_level  0 to 15 (0)
//	flow_label     0 to 0xfffff (0)
//
// Of these the connection manager takes traffic_class alone. It finds the GIDs by the parameter
// address and the peer's address, the partition key by the network interface, and the MTU by the
// port. Its library has no option for a hop limit, a service level or a flow label, except by a
// whole path record of InfiniBand.
//
// Windows are off because soft-RoCE checks an access through a window against the
// region's bounds and not against the window's (check_rkey in Linux 6.1's rxe_resp.c
// goes on with the window's region). The tests reach no other device with windows.
package ibv
