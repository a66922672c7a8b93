package ep

import "godat/hw"

// recvStates and requestStates are the states in which posting is no error.
// Admission is decided once, in the poster, against a snapshot of the state: work
// that arrives when the state has moved on is flushed, never lost. What is posted
// in DISCONNECTED is flushed at once. Receives in TENTATIVE_CONNECTION_PENDING,
// where there may be no zone, go the long way: see whyNot.
const (
	recvStates uint32 = 1<<Unconnected | 1<<Reserved | 1<<PassiveConnectionPending |
		1<<ActiveConnectionPending | 1<<CompletionPending |
		1<<Connected | 1<<DisconnectPending | 1<<Disconnected
	requestStates uint32 = 1<<Connected | 1<<Disconnected
)

// operation is what the rules of posting say of one kind of work.
type operation struct {
	call     string // for errors
	flags    hw.Flags
	local    hw.Privileges // what its local segments must allow
	rdma     bool          // it names remote memory, and MaxRDMASize bounds it
	atomic   bool          // it moves 8 bytes
	special  bool          // rdma or atomic
	extended bool          // it has an extra
}

// operations are those that can be posted, by hw.Op; the others have no call.
var operations = [32]operation{
	hw.OpSend: {
		call: "ep.PostSend", local: hw.LocalRead,
		flags: hw.Suppress | hw.SolicitedWait | hw.Unsignalled | hw.BarrierFence,
	},
	hw.OpWrite: {
		call: "ep.PostRDMAWrite", local: hw.LocalRead, rdma: true, special: true,
		flags: hw.Suppress | hw.Unsignalled | hw.BarrierFence,
	},
	hw.OpRead: {
		call: "ep.PostRDMARead", local: hw.LocalWrite, rdma: true, special: true,
		flags: hw.Suppress | hw.Unsignalled | hw.BarrierFence,
	},
	hw.OpReadToRMR: { // its sink is no segment: see PostRDMAReadToRMR
		call:  "ep.PostRDMAReadToRMR",
		flags: hw.Suppress | hw.Unsignalled | hw.BarrierFence,
	},
	hw.OpSendInvalidate: {
		call: "ep.PostSendInvalidate", local: hw.LocalRead, extended: true,
		flags: hw.Suppress | hw.SolicitedWait | hw.Unsignalled | hw.BarrierFence,
	},
	hw.OpWriteImm: {
		call: "ep.PostRDMAWriteImmediate", local: hw.LocalRead, rdma: true, special: true, extended: true,
		flags: hw.Suppress | hw.SolicitedWait | hw.Unsignalled | hw.BarrierFence,
	},
	hw.OpFetchAdd: {
		call: "ep.PostFetchAdd", local: hw.LocalWrite, atomic: true, special: true, extended: true,
		flags: hw.Suppress | hw.Unsignalled | hw.BarrierFence,
	},
	hw.OpCompareSwap: {
		call: "ep.PostCompareSwap", local: hw.LocalWrite, atomic: true, special: true, extended: true,
		flags: hw.Suppress | hw.Unsignalled | hw.BarrierFence,
	},
	hw.OpBind: {
		call: "ep.PostBind", extended: true,
		flags: hw.Suppress | hw.Unsignalled | hw.BarrierFence,
	},
	hw.OpRecv: {call: "ep.PostRecv", local: hw.LocalWrite, flags: hw.Unsignalled},
}

// callOf names the call that posts op.
func callOf(op hw.Op) string {
	if int(op) < len(operations) && operations[op].call != "" {
		return operations[op].call
	}
	return "ep.PostBatch"
}

// postable are the operations that endpoints of a device with these ones take.
func postable(dev hw.OpSet) (s hw.OpSet) {
	for op, o := range operations {
		if o.call != "" && (dev.Has(hw.Op(op)) || hw.Op(op) == hw.OpRecv) {
			s |= hw.Ops(hw.Op(op))
		}
	}
	return s
}

// always is a bit beyond the flags that every post carries: the mask of an
// operation that can't be posted at all has it.
const always = 1 << 16

// illegalFlags are, for each operation, the bits that make posting it an error.
func illegalFlags(ops hw.OpSet, attr *Attr) (table [len(operations)]uint32) {
	for op, o := range operations {
		legal := o.flags &^ (hw.Unsignalled &^ attr.RequestFlags)
		if hw.Op(op) == hw.OpRecv {
			legal = o.flags & attr.RecvFlags
		}
		table[op] = ^uint32(0)
		if ops.Has(hw.Op(op)) {
			table[op] = ^(always | uint32(legal))
		}
	}
	return table
}

// setPlain prepares q for admitPlain of messages that are no longer than that.
func (q *queue) setPlain(longest uint64) {
	op := q.plain
	illegal := q.e.illegal[op].Load()
	q.refused.Store(illegal)
	if q.segs() == 0 || illegal&always != 0 {
		longest = 0
	}
	q.longest.Store(longest)
}
