package ep

import (
	"math"
	"weak"

	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/internal/memory"
	"godat/mem"
)

// recvStates and requestStates are the states in which posting is no error. The poster looks once, at
// a snapshot of the state; work that arrives after the state has moved on is flushed, never lost.
// What is posted in DISCONNECTED is flushed at once, or refused (Config.EndIsLast). On receives in
// TENTATIVE_CONNECTION_PENDING, where there may be no zone, whyNot decides.
const (
	recvStates uint32 = 1<<Unconnected | 1<<Reserved | 1<<PassiveConnectionPending |
		1<<ActiveConnectionPending | 1<<CompletionPending |
		1<<Connected | 1<<DisconnectPending | 1<<Disconnected
	requestStates uint32 = 1<<Connected | 1<<Disconnected
)

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

// callOf names the call that posts op.
func callOf(op hw.Op) string {
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

// illegalFlags returns, for each operation, the bits that make posting it an error.
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

// rules are what posts to a queue are checked against. They are never changed, only
// replaced, so a post is checked against one set of them.
type rules struct {
	pz                *mem.PZ
	zone              *memory.Zone         // the pz's
	evd               *evd.Dispatcher      // nil: completions of this direction are dropped
	queues            *delivery.Dispatcher // what is behind evd
	admits            uint32               // states in which posting is no error, as bits
	shared            bool                 // receives come from a shared queue
	longest           uint64               // the most bytes of a message that goes the short way; 0 for none
	longestRDMA       uint64               // the most bytes of a write or read that goes the short way; 0 for none
	timed             bool                 // how long the operations take is measured
	iov               int                  // segments
	readIOV, writeIOV int
	dev               *hw.Attr
	maxMessage        uint64
	maxRDMA           uint64
	illegal           [len(operations)]uint32 // see illegalFlags
}

// setRules replaces the rules of both queues by those for p.
func (f fitting) setRules(p *parts) {
	e, a := f.e, &p.attr
	r := rules{
		pz: p.pz, zone: p.pz.Zone(door.Key{}), dev: &e.adapter.attr, readIOV: a.MaxReadIOV, writeIOV: a.MaxWriteIOV,
		maxMessage: a.MaxMessageSize, maxRDMA: a.MaxRDMASize,
		illegal: illegalFlags(postable(e.adapter.attr.Ops), a),
	}
	var refused uint32
	if e.endIsLast {
		refused = 1 << Disconnected
	}
	f.setQueueRules(&e.box.requests, r, requestStates&^refused, p.request, a.MaxRequestIOV, a.MaxMessageSize)
	r.shared = e.box.recvs.srq != nil
	states := recvStates &^ refused
	if r.shared {
		states = 0
	}
	f.setQueueRules(&e.box.recvs, r, states, p.recv, a.MaxRecvIOV, math.MaxUint32)
}

func (f fitting) setQueueRules(q *queue, r rules, states uint32, d *evd.Dispatcher, iov int, longest uint64) {
	r.admits, r.evd, r.queues, r.iov = states, d, wiring(d), iov
	f.e.record.mu.Lock() // latency.tell writes rules, too
	defer f.e.record.mu.Unlock()
	f.e.store(q, &r, longest)
}

// bound says what goes the short way, given the most bytes of a message.
func (r *rules) bound(longest uint64) {
	r.longest, r.longestRDMA = 0, 0
	if r.iov > 0 && r.evd != nil && r.admits>>Connected&1 != 0 && !r.timed {
		r.longest = longest
		if min(r.readIOV, r.writeIOV) > 0 {
			r.longestRDMA = r.maxRDMA
		}
	}
}

// sharedRules returns the rules of the last endpoint that had the same ones, or a copy
// of r: the posts of many endpoints that are alike then read the same cache lines.
func (a *Adapter) sharedRules(plain hw.Op, r *rules) *rules {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.rules[plain].Value()
	if last == nil || *last != *r {
		last = new(rules)
		*last = *r
		a.rules[plain] = weak.Make(last)
	}
	return last
}
