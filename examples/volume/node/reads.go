package node

import (
	"bytes"
	"encoding/binary"

	"go.etcd.io/raft/v3"

	"godat/examples/nvmeof/target"
)

// read lets a read wait for the next round of heartbeats.
func (c *consensus) read(x *target.Read) {
	if err := c.refusal(); err != nil {
		x.Done(err)
		return
	}
	c.reign.reads = append(c.reign.reads, x)
}

// show lets a read see the disk. Zeros that are not written yet come first.
func (c *consensus) show(x *target.Read) {
	err := c.disk.Settle(x.Offset, x.Len)
	if err != nil {
		c.fail(err)
	}
	x.Done(err)
}

// askReaders begins a round for all reads that wait, unless one is under way.
func (r *reign) askReaders() {
	if r.asked != nil || len(r.reads) == 0 {
		return
	}
	r.round++
	r.asked, r.reads = r.reads, nil
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
	r.finish()
	r.askReaders()
}
