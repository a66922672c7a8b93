package line

import "godat/hw"

// operation says how one kind of work may be posted.
type operation struct {
	call     string // for errors
	flags    hw.Flags
	local    hw.Privileges // what its local segments must allow
	rdma     bool          // it names remote memory, and MaxRDMASize bounds it
	atomic   bool          // it moves 8 bytes
	special  bool          // rdma or atomic
	extended bool          // it has an extra
}

// The flags of requests, and of those that take a receive of the peer.
const (
	requestFlags = hw.Suppress | hw.Unsignalled | hw.BarrierFence
	sendFlags    = requestFlags | hw.SolicitedWait
)

// operations are the operations that can be posted, by hw.Op; the others have no
// call.
var operations = [32]operation{
	hw.OpSend:           {call: "ep.PostSend", local: hw.LocalRead, flags: sendFlags},
	hw.OpWrite:          {call: "ep.PostRDMAWrite", local: hw.LocalRead, flags: requestFlags, rdma: true, special: true},
	hw.OpRead:           {call: "ep.PostRDMARead", local: hw.LocalWrite, flags: requestFlags, rdma: true, special: true},
	hw.OpReadToRMR:      {call: "ep.PostRDMAReadToRMR", flags: requestFlags}, // its sink is no segment
	hw.OpSendInvalidate: {call: "ep.PostSendInvalidate", local: hw.LocalRead, flags: sendFlags, extended: true},
	hw.OpWriteImm:       {call: "ep.PostRDMAWriteImmediate", local: hw.LocalRead, flags: sendFlags, rdma: true, special: true, extended: true},
	hw.OpFetchAdd:       {call: "ep.PostFetchAdd", local: hw.LocalWrite, flags: requestFlags, atomic: true, special: true, extended: true},
	hw.OpCompareSwap:    {call: "ep.PostCompareSwap", local: hw.LocalWrite, flags: requestFlags, atomic: true, special: true, extended: true},
	hw.OpBind:           {call: "ep.PostBind", flags: requestFlags, extended: true},
	hw.OpRecv:           {call: "ep.PostRecv", local: hw.LocalWrite, flags: hw.Unsignalled},
}

// CallOf names the call that posts op.
func CallOf(op hw.Op) string {
	if int(op) < len(operations) && operations[op].call != "" {
		return operations[op].call
	}
	return "ep.PostBatch"
}

// postable returns the operations that endpoints take on a device with these operations.
func postable(dev hw.OpSet) (s hw.OpSet) {
	for op, o := range operations {
		if o.call != "" && (dev.Has(hw.Op(op)) || hw.Op(op) == hw.OpRecv) {
			s |= hw.Ops(hw.Op(op))
		}
	}
	return s
}

// always is a bit beyond the flags that every post carries; it is illegal for an operation that
// can't be posted at all.
const always = 1 << 16
