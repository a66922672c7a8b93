package nodes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"godat/examples/volume/node"
)

// Rot is what a disk has changed without an error: a bit of a block, or of a record of the log. An operator checks the
// volume then, and replaces the node that is the odd one, as README says.

// rot flips a bit of a node that does not run, in a block of a writer or in a record of its log. Of a block, the check tells the
// node. A record has a sum of what it says: the node does not come back with it, or goes on, and gives it to nobody. If a
// node is not the same any more another one takes its place. All other judges stay: what was acknowledged is there, and
// all disks are equal in the end.
func (v *volume) rot(kind string, m *member, draw *rand.Rand) {
	if !v.settleBehind() || !v.spare() {
		return
	}
	m.end(false, nil)
	if !v.leads(m) {
		return
	}
	where := ""
	if kind == "rot" {
		at := draw.IntN(shares * block)
		m.disk.Flip(at)
		where = fmt.Sprintf("byte %d of its disk", at)
	} else {
		where = m.file.flip(draw)
	}
	v.w.Step(m.host, "a bit flips in %s", where)
	err := m.start()
	if err != nil {
		v.w.Step(m.host, "refused: %v", err)
	}
	if err != nil || v.odd(m) {
		if v.join() {
			v.remove(m)
		}
	}
}

// spare reports whether there is a number for one more node.
func (v *volume) spare() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.all)+len(v.gone)+1 <= layout(v.id).Nodes
}

// odd lets all nodes check their disks, and reports whether that of a node differs from the leader's, which did not rot.
func (v *volume) odd(m *member) bool {
	ctx, cancel := context.WithTimeout(context.Background(), settled)
	defer cancel()
	var before, at uint64 // the last record before the check, and the check's
	var want uint32
	v.until("to check", func(leader node.Status) (node.Command, bool) {
		if before == 0 {
			before = leader.Last
		}
		switch {
		case leader.Checked.Index > before:
			at, want = leader.Checked.Index, leader.Checked.CRC
			return node.Command{}, true
		case leader.Checking > before:
			return node.Command{Do: "status"}, false
		}
		return node.Command{Do: "check"}, false
	})
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		s, err := node.Ask(ctx, v.operator, m.addr, node.Command{Do: "status"})
		switch {
		case err != nil:
			v.w.Step(m.host, "a check hears nothing: %v", err)
			if m.up() == nil { // it has ended by itself
				return true
			}
		case s.Checked.Index == at:
			v.w.Step(m.host, "the check has found its disk different: %v", s.Checked.CRC != want)
			return s.Checked.CRC != want
		case s.Checked.Index > at:
			return false
		}
	}
	v.w.Wrong("%s: node %d has not checked its disk in %v", v.name, m.id, settled)
	return false
}
