package conformance

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// operations maps the names of posts to their operations: that of a provider, and
// that in the completion's event, in DAT's numbers.
var operations = map[string]struct{ is, called hw.Op }{
	"post_recv": {hw.OpRecv, 3}, "post_send": {hw.OpSend, 0}, "send_invalidate": {hw.OpSendInvalidate, 0},
	"post_rdma_read": {hw.OpRead, 2}, "read_to_rmr": {hw.OpReadToRMR, 2}, "post_rdma_write": {hw.OpWrite, 1},
	"write_immed": {hw.OpWriteImm, 8}, "fetch_and_add": {hw.OpFetchAdd, 10}, "cmp_and_swap": {hw.OpCompareSwap, 11},
	"rmr_bind": {hw.OpBind, 5}, "rmr_unbind": {hw.OpBind, 5},
}

// lacks reports whether the device of an end says that it lacks an operation.
func (e *end) lacks(op string) bool {
	return op != "post_recv" && !e.node.ia.Attr().Ops.Has(operations[op].is)
}

// postOn posts an operation that takes a local segment, a remote one, or both.
func postOn(ep *ep.Endpoint, op string, cookie uint64, flags hw.Flags, local mem.Segment, remote mem.RemoteSegment) error {
	switch op {
	case "post_recv":
		return ep.PostRecv(cookie, flags, local)
	case "post_send":
		return ep.PostSend(cookie, flags, local)
	case "post_rdma_read":
		return ep.PostRDMARead(cookie, flags, remote, local)
	case "post_rdma_write":
		return ep.PostRDMAWrite(cookie, flags, remote, local)
	case "write_immed":
		return ep.PostRDMAWriteImmediate(cookie, flags, 1, remote, local)
	case "cmp_and_swap":
		return ep.PostCompareSwap(cookie, flags, 0, 0, remote, local)
	case "fetch_and_add":
		return ep.PostFetchAdd(cookie, flags, 0, remote, local)
	}
	return fmt.Errorf("no such operation: %s", op)
}

// post posts any operation of 8 bytes with valid arguments.
func (e *end) post(op string, cookie uint64, flags hw.Flags) error {
	const size = 8
	local, remote := e.mem.Segment(0, size), e.theirs(size)
	switch op {
	case "send_invalidate":
		return e.ep.PostSendInvalidate(cookie, flags, e.invalidatable(), local)
	case "read_to_rmr":
		return e.ep.PostRDMAReadToRMR(cookie, flags, e.mem.Remote(0, size), remote)
	case "rmr_bind", "rmr_unbind":
		if e.rmr == nil {
			w, err := e.node.pz.NewRMR()
			if err != nil {
				return err
			}
			e.rmr = w
			e.rig.later(w.Free)
			// The bind may wait behind posts that are outstanding, so the endpoint
			// is closed first.
			e.rig.later(func() error { _ = e.ep.Close(); return nil })
		}
		to := mem.Binding{Segment: local, Privileges: remoteBoth}
		if op == "rmr_unbind" {
			to = mem.Binding{}
		}
		_, err := e.ep.PostBind(cookie, flags, e.rmr, to)
		return err
	}
	return postOn(e.ep, op, cookie, flags, local, remote)
}

// postRecv posts a receive into the first n bytes of the end's memory.
func (e *end) postRecv(cookie uint64, n int) {
	require.NoError(e.rig, e.ep.PostRecv(cookie, 0, e.mem.Segment(0, n)))
}

// receives posts n receives of 64 bytes; their cookies count from 0.
func (e *end) receives(n uint64) {
	for cookie := range n {
		e.postRecv(cookie, 64)
	}
}

// postSend posts a send of the first n bytes of the end's memory.
func (e *end) postSend(cookie uint64, n int) {
	require.NoError(e.rig, e.ep.PostSend(cookie, 0, e.mem.Segment(0, n)))
}

// sends posts a send, and waits until it has succeeded.
func (e *end) sends(cookie uint64, n int) event.Event {
	return e.completes(cookie, e.ep.PostSend(cookie, 0, e.mem.Segment(0, n)))
}

// completes requires that a request was posted, and waits until it has succeeded.
func (e *end) completes(cookie uint64, err error) event.Event {
	require.NoError(e.rig, err)
	return e.done(e.req, cookie, hw.StatusSuccess)
}

// theirs returns memory of the peer that allows everything that its device
// supports; without a peer, an arbitrary segment.
func (e *end) theirs(size uint32) mem.RemoteSegment {
	if e.peer == nil {
		return mem.RemoteSegment{Addr: 4096, Len: size, Context: 1}
	}
	if e.peer.open == nil {
		e.peer.open = e.peer.node.region(e.peer.node.pz, 64, e.peer.node.allPrivileges())
	}
	return e.peer.open.Remote(0, int(size))
}

// invalidatable returns a context of the peer that may be invalidated; an arbitrary
// one if the end is not connected or its device lacks windows.
func (e *end) invalidatable() uint32 {
	if e.peer == nil || e.ep.State() != ep.Connected || e.lacks("rmr_bind") {
		return 42
	}
	remote, err := e.peer.ep.PostBind(77, 0, e.peer.node.window(), mem.Binding{Segment: e.peer.mem.Segment(0, 64), Privileges: hw.RemoteRead})
	require.NoError(e.rig, err)
	require.Equal(e.rig, hw.StatusSuccess, e.peer.rig.next(e.peer.req).Status)
	return remote.Context
}
