package ep

import (
	"godat/ep/internal/line"
	"godat/hw"
	"godat/mem"
)

// PostRDMAReadToRMR is PostRDMARead into local memory that is named as a peer would
// name it: by the context that a window was bound under, or by a region's remote
// context. On transports that show the sink to the peer, such a read exposes no
// more memory than the window does. The memory needs RemoteWrite, and belongs to
// this endpoint's zone or to a window of its own.
//
// Whether local may be written is known only when the read is executed: if not, the
// read completes with LOCAL_PROTECTION and the connection breaks.
// It answers to dat_ep_post_rdma_read_to_rmr.
func (e *Endpoint) PostRDMAReadToRMR(cookie uint64, flags hw.Flags, local, remote mem.RemoteSegment) error {
	if e == nil {
		return line.NilEndpoint(hw.OpReadToRMR)
	}
	return e.box.PostReadToRMR(cookie, flags, local, remote)
}
