package node

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// hold is a call of another node's that waits for what this node's engine answers to its appends or heartbeats, so
// that such an answer needs no call of its own. Consensus owns it.
type hold struct {
	from uint64
	kind pb.MessageType // of the answers
	want int
	got  []*pb.Message
	done chan []*pb.Message // has room for got
}

// newHold is for a call with messages of a node's, or nil if none of them is answered in its call.
func newHold(from uint64, messages []*pb.Message) *hold {
	h := &hold{from: from, done: make(chan []*pb.Message, 1)}
	for _, m := range messages {
		switch m.GetType() {
		case pb.MsgApp:
			h.kind = pb.MsgAppResp
			h.want++
		case pb.MsgHeartbeat:
			h.kind = pb.MsgHeartbeatResp
			h.want++
		default:
		}
	}
	if h.want == 0 {
		return nil
	}
	return h
}

// mostHeld is how long a call waits. What a slow disk keeps back goes by the lane.
const mostHeld = 10 * time.Millisecond

// holds are the calls that wait, the eldest first.
type holds []*hold

// give gives an answer to a call that waits for it, and reports whether there is one.
func (q *holds) give(m *pb.Message) bool {
	for _, h := range *q {
		if h.from == m.GetTo() && h.kind == m.GetType() {
			if h.got = append(h.got, m); len(h.got) == h.want {
				q.letGo(h)
			}
			return true
		}
	}
	return false
}

// letGo lets a call go with the answers that are there.
func (q *holds) letGo(h *hold) {
	if i := slices.Index(*q, h); i >= 0 {
		*q = slices.Delete(*q, i, i+1)
		h.done <- h.got
	}
}

// take takes from a call the answers that are there.
func (q *holds) take(h *hold) []*pb.Message {
	q.letGo(h)
	return <-h.done
}
