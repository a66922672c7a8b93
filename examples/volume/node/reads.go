package node

import (
	"bytes"
	"encoding/binary"

	"go.etcd.io/raft/v3"

	"godat/examples/nvmeof/target"
)

// gate lets a read of a host at this node wait for what it may see.
func (c *consensus) gate(x *target.Read) {
	if c.refusal() != nil && c.corridor.open() {
		c.corridor.read(x)
		return
	}
	c.read(x)
}

// read lets a read wait for the next round of heartbeats.
func (c *consensus) read(x *target.Read) {
	if err := c.refusal(); err != nil {
		x.Done(err)
		return
	}
	c.reign.reads = append(c.reign.reads, x)
}

// question lets a follower wait for the next round of heartbeats, for what hosts read there. The heartbeats tell it that
// what went before is committed.
func (c *consensus) question(got func(index uint64, err error)) {
	if err := c.refusal(); err != nil {
		got(0, err)
		return
	}
	c.reign.questions = append(c.reign.questions, got)
}

// askReaders begins a round for all reads that wait, unless one is under way.
func (r *reign) askReaders() {
	if r.asked != nil || len(r.reads) == 0 && len(r.questions) == 0 {
		return
	}
	r.round++
	r.asked, r.reads = append([]*target.Read{}, r.reads...), r.reads[:0]
	r.questioned, r.questions = r.questions, nil
	r.c.raft.ReadIndex(r.roundName())
}

// roundName names a round of heartbeats, for ever.
func (r *reign) roundName() []byte {
	b := binary.LittleEndian.AppendUint64(nil, r.term)
	return binary.LittleEndian.AppendUint64(b, r.round)
}

// confirm ends a round: this node led when it was begun, and all that was acknowledged then is at or
// below an index.
func (r *reign) confirm(s raft.ReadState) {
	if !bytes.Equal(s.RequestCtx, r.roundName()) {
		return
	}
	r.reading = append(r.reading, reading{s.Index, r.asked})
	r.asked = nil
	for _, got := range r.questioned {
		got(s.Index, nil)
	}
	r.questioned = nil
	r.finish()
	r.askReaders()
}
