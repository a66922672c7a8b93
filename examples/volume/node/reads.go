package node

import (
	"bytes"
	"encoding/binary"

	"go.etcd.io/raft/v3"

	"godat/examples/nvmeof/target"
)

// read lets a read wait for the next round of heartbeats.
func (n *Node) read(r *target.Read) {
	if err := n.refusal(); err != nil {
		r.Done(err)
		return
	}
	n.reign.reads = append(n.reign.reads, r)
}

// askReaders begins a round for all reads that wait, unless one is under way.
func (n *Node) askReaders() {
	r := n.reign
	if r == nil || r.asked != nil || len(r.reads) == 0 {
		return
	}
	r.round++
	r.asked, r.reads = r.reads, nil
	n.raft.ReadIndex(n.roundName(r))
}

// roundName names a round of heartbeats, for ever.
func (n *Node) roundName(r *reign) []byte {
	b := binary.LittleEndian.AppendUint64(nil, r.term)
	return binary.LittleEndian.AppendUint64(b, r.round)
}

// confirm ends a round: this node led when it was begun, and all that was acknowledged then is at or
// below an index.
func (n *Node) confirm(s raft.ReadState) {
	r := n.reign
	if r == nil || !bytes.Equal(s.RequestCtx, n.roundName(r)) {
		return
	}
	r.reading = append(r.reading, reading{s.Index, r.asked})
	r.asked = nil
	n.finishApplied()
	n.askReaders()
}
