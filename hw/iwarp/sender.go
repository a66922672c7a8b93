package iwarp

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// sender is the sending half of a connection: the send queue, the message being cut into
// FPDUs, and the responses to the peer's requests. The token's holder owns it, except for
// the parts that the writer's job uses. The methods assert the owner, except those that
// run for each message or FPDU.
type sender struct {
	// Immutable.
	link *link
	mem  soft.View
	sq   *sendQueue // the poster fills it
	sink hw.SeriesSink

	// Immutable once begun.
	port port

	// Owned by the token's holder.
	writer writer
	out    outbox

	// The send queue.
	head, next uint64 // the oldest request not completed, and the first not begun
	failAt     uint64 // the request that fails, when all before it have completed
	failStatus hw.Status
	failed     bool // failAt is valid
	stop       bool // begin no more requests: one has failed, or the connection ends
	bindWaits  bool // a bind waits for accesses by its old key, and the holder may not wait
	doomed     bool // a request has failed; the requests behind it are flushed
	wc         [1]hw.WC
	mark       *mark         // the owner writes it before it sets marked; nil before the first
	users      []soft.Access // scratch of awaitUsers

	// The message being cut into FPDUs.
	cur          message
	active       bool // cur is a message
	immediate    bool // immediate data follows the write in cur
	one          [1]hw.SGE
	msn, readMSN uint32 // numbers of the last messages
	atomicMSN    uint32
	answer       uint64 // position of the next response
	turns        int    // responses since the last request

	// The messages beside requests and responses.
	rtr      wire.Opcode // opcode of a ready-to-receive, nudge, probe or farewell
	rtrDue   bool
	farewell bool    // the farewell is sent, or due
	last     *ending // unless nil, ends the connection when all before it is written

	// The state of writing.
	mayBlock    bool // the holder is the writer
	resumed     bool // the outbox is from before a wait: write looks its keys up again
	writeFailed bool // the socket takes nothing more
	dropped     bool // dropOutbox has run
	marking     bool // mark is to be reported

	present soft.Presence // in the set of accessors of the queue pair's zone
}

func (s *sender) init(l *link, mem soft.View, depth int) {
	s.link, s.mem, s.sq = l, mem, newSendQueue(depth)
	s.sink = soft.SeriesSink(l.qp.Cfg.SendSink)
	s.writer.link, s.writer.port, s.writer.out = l, &s.port, &s.out
	s.present.Init(l.qp.Zone, s, &l.attention, sendAbsent)
}

// fairShare is the most responses sent in a row while a request waits.
const fairShare = 4
