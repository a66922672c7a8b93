// Package ibv is the provider for RDMA devices that the system's verbs library
// knows: InfiniBand, RoCE and iWARP adapters, and the kernel's soft-RoCE and
// soft-iWARP. Import it for its effect:
//
//	import _ "godat/hw/ibv"
//
// and open "ibv" for the first device, or "ibv:rxe0" by name. Open says what is
// missing when there is no library, device or address.
//
// # Building
//
// Nothing has to be installed to build it, and no build tag has to be given. With
// cgo on Linux the package loads libibverbs.so.1 and librdmacm.so.1 when a device
// is opened; elsewhere, and without a C compiler, Open says so. The other choice, a
// build tag and the distribution's headers, would have made every program that can
// use a device a program of its own, built on a machine with headers. The price is
// that abi.h declares what the headers would: the structures that both libraries
// promise not to change. testdata/abi_check.c compares them with the headers.
// What the headers define inline calls through the context's table of operations,
// and so does this package.
//
// # The data path
//
// One crossing into C posts a list of requests with one doorbell, and one moves the
// completions of all queues out. Requests are written straight into rings that C
// owns; no Go pointer is ever stored there. A send that fits goes inline. What a
// completion says is made from the ring: the device's word for lengths and
// operations is only good on success, and not always then. [CountersOf] counts.
//
// # What a completion means
//
// On InfiniBand and RoCE a send or write completes with success when the peer's adapter
// has acknowledged it, and a request that the peer refuses completes with the error.
// The adapter may acknowledge a write before the peer's processor can see it. On iWARP
// (soft-iWARP, too) it completes when the transport has taken it, and a refusal is
// heard as a broken connection. On both, the bytes of a write are visible to the peer's
// program when a later message has completed there; on this side the peer's answer
// says so, or the success of a read that was posted behind the write. Each queue is
// polled by itself: the answer to a message may be delivered before the message's own
// completion.
//
// # Connections
//
// One goroutine per device takes the events of the connection manager and of the
// device, and an attempt to connect has a goroutine until it is decided: some
// drivers block in it. Facts are told from those, never from the poller's thread.
//
// Verbs flush a queue pair in their own time, and what succeeded without being
// signaled leaves no trace, so the end of a send queue is a marker's completion. On
// iWARP markers don't work; there every send is signaled, the silent ones are
// dropped, and what is left when the queue pair is in error is flushed here. What
// is posted after a queue pair's death never reaches the device.
//
// # Private data
//
// InfiniBand's messages carry a fixed number of bytes. Eight of them at the end, in
// a request for a connection and in the answer to such a request, hold the length
// of the private data and where to write one byte when the connection ends in
// order; a peer that is not godat sees zeros and then these. It is how the peer
// tells an orderly end from a broken one, which verbs don't. The byte may be stuck behind
// a send that waits for a receive; so a peer that has none posted, and was not told,
// reads from the other side whether its end is an orderly one. The parameter tail=off
// leaves them out: then private data arrives with the padding, and every end that
// the peer announces is an orderly one. iWARP keeps the length, so the default
// there is off; tail=on appends sixteen bytes.
//
// A consumer's reject begins with the four bytes that the C library of uDAPL sends; on
// iWARP only when it has no private data. A reject of a provider's own, for want of
// room, carries bytes that say so, which hw/iwarp knows too. Every other reject with the
// reason of a consumer's is one: a C program's plain rdma_reject, with data or without.
// The kernel sends the same for a process that ended before it answered, and soft-iWARP
// says the same of a peer that hung up.
//
// # What verbs don't have
//
// Any region may be sent from, and one that peers may write may be received into. No
// completion says that it was solicited, so all receives say so: whoever waits for
// solicited ones is woken too often, never too seldom. A completion queue made for
// solicited ones alone does wake the poller for those only, except on soft-iWARP.
// An inline send has read its memory when it is posted.
//
// What is left in a shared receive queue is not known, so its low watermark goes by what
// has completed as well as by the device's word. Nor is it known whether a window is
// bound; there is no read into a window.
//
// Soft-iWARP completes sends before the peer has looked at them, reports a read that
// the peer refused as flushed, lets peers read any region that has a remote key, and
// takes as many reads at a time as the peer asks for.
// An attempt to connect can't be given up before the peer's transport has answered;
// what it uses is free only then. It looks at a region when a request begins and not
// again, so Deregister ends the connections that have a request outstanding which
// names the region; the first such request fails with a protection error.
//
// A send can invalidate a key of the peer's (hw.OpSendInvalidate) where the device says
// that it has the memory management extensions, as soft-RoCE, soft-iWARP and the
// adapters do; elsewhere the post is refused with errors.ErrUnsupported, and a plain send is to
// do, behind which the peer invalidates the key itself. It is for keys of the peer's
// program, such as those that a Linux storage initiator registers per request. Keys
// of regions of this package are another matter: soft-RoCE breaks a connection whose
// peer invalidates one, and soft-iWARP does it without saying so with the receive; so
// the device has hw.OpSendInvalidate, and not hw.OpRecvInvalidate.
//
// # When the device goes
//
// A device that is removed is reported as such (hw.AsyncDeviceFatal) to all who have it
// open, connected or not, and their connections end with what is outstanding flushed.
// Drivers of hardware then let go of it. Those in software wait until no process has it
// open, and librdmacm keeps it open for itself as long as the process lives: rdma link
// delete returns when the processes that used the device have ended.
//
// # Parameters
//
//	address      the device's own address to use, when it has several
//	tail         on or off; see above
//	inline       most bytes of an inline send (64)
//	ack_timeout  exponent of the transport's retry timer, as verbs have it (17)
//	port         the device's port (1)
//	windows      on or off: memory windows (off)
//
// Windows are off because soft-RoCE holds what comes through a window against the
// region's bounds and not against the window's (check_rkey in Linux 6.1's rxe_resp.c
// goes on with the window's region). No other device with windows has been tried.
package ibv
