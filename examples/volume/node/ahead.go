package node

import (
	"bytes"
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"godat/runtime/rpc"
)

// A leader has all that was committed before its term, as long as a majority keeps what it acknowledged. When an older copy of a
// node's directory was put back, a majority may elect one that has not, and a node that has applied more is ahead of it: what
// it has was told to hosts, and is on no disk of the others. Nothing in the volume says which of both is wanted. So such a node
// follows nobody, tells why, and keeps its disk as it is until somebody decides.

// aheadOf is why a node that is ahead follows nobody.
type aheadOf struct {
	why    string // for other nodes
	advice string // for people
}

// aheadText has what to do.
const aheadText = ": an older copy of a node's directory was put back, or nodes have lost what they acknowledged. This node follows nobody, serves no host, and keeps its disk. " +
	"If its disk is the one that is wanted, end the other nodes and recover this one; if it is not, replace this node by one of another id"

// knows is up to where this node has applied, and the term of that, if nothing of it is being replaced already.
func (c *consensus) knows() (applied, term uint64) {
	applied, term = c.disk.Applied()
	if applied != 0 && c.disk.CatchingUp() {
		return 0, 0
	}
	return applied, term
}

// denies reports whether a leader's log has no place for what this node has applied, if it has a record of an index and a term.
func (c *consensus) denies(applied, at, index, term uint64) bool {
	switch r, err := c.log.Record(index); {
	case index >= applied:
		return term < at || index == applied && term != at
	case err == nil:
		return r.Term != term
	}
	return term > at
}

// agrees reports whether this node can follow by a message of another one, and follows nobody from then on if it can't. The
// messages are those of a leader of this term, or of a later one.
func (c *consensus) agrees(m *pb.Message) bool {
	if m.GetTerm() < c.term {
		return true
	}
	index, term := m.GetIndex(), m.GetLogTerm()
	switch m.GetType() {
	case pb.MsgApp:
	case pb.MsgSnap:
		index, term = m.GetSnapshot().GetMetadata().GetIndex(), m.GetSnapshot().GetMetadata().GetTerm()
	default:
		return true
	}
	applied, at := c.disk.Applied()
	denied := c.denies(applied, at, index, term)
	for _, e := range m.GetEntries() {
		if denied || e.GetIndex() > applied {
			break
		}
		r, err := c.log.Record(e.GetIndex())
		denied = c.denies(applied, at, e.GetIndex(), e.GetTerm()) || err == nil && !bytes.Equal(r.Data, e.GetData())
	}
	if denied {
		applied, at = c.knows()
	}
	if !denied || applied == 0 {
		return true
	}
	// The engine takes the term, and forgets who leads.
	_ = c.raft.Step(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(m.GetFrom()), To: new(c.cfg.ID), Term: new(m.GetTerm())})
	c.goAhead(applied, at, m.GetFrom(), m.GetTerm())
	return false
}

// goAhead has this node follow nobody.
func (c *consensus) goAhead(applied, at, lead, term uint64) {
	if c.ahead.Load() != nil {
		return
	}
	why := fmt.Sprintf("node %d has applied record %d, of term %d, which node %d, that leads in term %d, never had", c.cfg.ID, applied, at, lead, max(term, c.term))
	c.ahead.Store(&aheadOf{why, why + aheadText})
	c.cfg.Logger.Error("the node follows nobody", "node", c.cfg.ID, "why", why+aheadText)
	_ = c.raft.ForgetLeader()
	c.abdicate()
	c.corridor.finish()
	c.showState()
}

// stands is up to where this node has applied, in the term of a leader that it follows.
func (c *consensus) stands(lead uint64) (applied, at uint64) {
	if c.leader.Load() != lead {
		return 0, 0
	}
	return c.knows()
}

// beyond reports whether a leader never had what a node has applied that followed it before it said how it sees itself.
func beyond(applied, at uint64, leader *Progress) bool {
	last := leader.Match + leader.Behind
	return last < applied || leader.First != 0 && leader.First <= applied && at < leader.Term
}

// errAhead is the error of a node that is ahead of the leader.
var errAhead = errors.New("node: it is ahead of the leader")

// meets exchanges with a leader how both are, and says whether this node can follow. A leader of the version before does
// not know the question.
func (c *consensus) meets(client *rpc.Client, lead uint64) error {
	err := c.exchange(client, lead)
	if errors.Is(err, noMethod(methodHealth)) {
		return nil
	}
	return err
}
