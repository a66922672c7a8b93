package nodes

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"godat/check/world/program"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
)

// kinds are those of all troubles, some of them more often.
var kinds = [...]string{
	"stop", "cut", "cut", "slow", "full", "hold", "reset", "slip", "blackout", "flip", "forget", "replace", "join", "remove", "transfer",
	"rot", "misread", "strange", "cutoff", "cutoff",
}

// wholes are those that a volume with a majority goes on through, or comes out of as it was.
var wholes = []string{"slip", "full", "flip", "forget", "replace", "join", "remove", "rot", "misread"}

// troubles brings a trouble after the other, one at a time, so a majority is there. Beside them a host may be cut off.
func (p Volume) troubles(w *program.World, all []*volume) {
	script := w.Draw(1)
	var beside sync.WaitGroup
	defer beside.Wait()
	for i := range p.Troubles {
		kind := kinds[script.IntN(len(kinds))]
		before, lasts := time.Duration(script.Int64N(int64(6*time.Second))), time.Duration(script.Int64N(int64(8*time.Second)))
		own := rand.New(rand.NewPCG(script.Uint64(), 6))
		if slices.Contains(p.Without, i) || w.Network == nil && slices.Contains([]string{"hold", "reset", "cutoff"}, kind) {
			continue
		}
		time.Sleep(before)
		v := all[own.IntN(2)%len(all)]
		if kind == "cutoff" {
			v = all[0] // which has a host
		}
		m := v.any(own)
		if v.lame && slices.Contains(wholes, kind) {
			v = all[0]
			m = v.any(own)
		}
		w.Trouble(kind, "%s, node %d, for %v", v.name, m.id, lasts)
		switch kind {
		case "stop", "cut", "blackout", "slow", "full":
			v.ail(kind, m, lasts, own)
		case "hold", "reset":
			v.apart(kind, m, v.any(own), lasts)
		case "flip", "forget":
			v.damage(kind, m, own)
		case "rot", "misread":
			v.rot(kind, m, own)
		case "slip":
			v.slip(m, all)
		case "strange":
			v.strange(m, own)
		case "cutoff":
			beside.Go(func() { v.cutoff(m, lasts, own) })
		default:
			v.change(kind, m, own)
		}
	}
}

// ail is a trouble of a node's, or of all nodes' power.
func (v *volume) ail(kind string, m *member, lasts time.Duration, draw *rand.Rand) {
	switch kind {
	case "stop", "cut":
		m.end(kind == "cut", draw)
		time.Sleep(lasts)
		m.again()
	case "blackout":
		all := v.list()
		for _, m := range all {
			m.lose(draw)
		}
		for _, m := range all {
			m.end(false, nil)
		}
		time.Sleep(lasts)
		for _, m := range all {
			m.again()
		}
	case "slow":
		m.file.set(time.Duration(1+draw.IntN(400))*time.Millisecond, false)
		time.Sleep(lasts)
		m.file.set(0, false)
	case "full":
		m.doom()
		m.file.set(0, true)
		time.Sleep(lasts)
		m.end(false, nil)
		m.file.set(0, false)
		m.again()
	}
}

// apart is a trouble of the network between two nodes.
func (v *volume) apart(kind string, m, other *member, lasts time.Duration) {
	switch {
	case m == other:
	case kind == "hold":
		v.w.Network.Hold(m.host, other.host)
		time.Sleep(lasts)
		v.w.Network.Release(m.host, other.host)
	default:
		v.w.Network.Reset(m.host, other.host)
	}
}

// damage flips a bit of a slot of a node that does not run, or makes it forget when its chunks were written. That may cost the
// node the last that it acknowledged, so all others have what the leader has, and one of them leads, before it is back.
func (v *volume) damage(kind string, m *member, draw *rand.Rand) {
	if !v.settleBehind() {
		return
	}
	m.end(false, nil)
	if !v.leads(m) {
		return
	}
	if kind == "flip" {
		m.journal.Flip(4096 + draw.IntN(len(m.journal.Memory())-4096))
	} else {
		at := state.Size(size) - 512 + draw.IntN(512)
		m.disk.Flip(at)
	}
	m.again()
	v.settleBehind()
}

// settleBehind waits until all nodes have what the leader had a moment ago.
func (v *volume) settleBehind() bool {
	want := uint64(0)
	for end := time.Now().Add(settled); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		all := true
		for _, m := range v.list() {
			n := m.up()
			if n == nil {
				all = false
				continue
			}
			s := n.Status()
			if s.Serves() && want == 0 {
				want = s.Last
			}
			all = all && want != 0 && s.Applied >= want && !s.Rotten
		}
		if all {
			return true
		}
	}
	v.w.Wrong("%s: not all nodes have what the leader had %v ago", v.name, settled)
	return false
}

// slip is what an operator does who takes the wrong directory: an empty one, or one of another volume, whose node has
// just been made or has written much. The node says so, and comes back with its own. Or he starts a node that was removed.
func (v *volume) slip(m *member, all []*volume) {
	v.mu.Lock()
	gone := slices.Clone(v.gone)
	v.mu.Unlock()
	if len(gone) > 0 {
		v.forgotten(gone[len(gone)-1])
	}
	m.end(false, nil)
	own := m.file
	wrong := []*file{newFile()}
	for _, other := range all {
		if other != v {
			young := newFile()
			if _, err := raftlog.Open("", raftlog.Config{Medium: young, Volume: other.all[0].volume}); err != nil {
				v.w.Wrong("a log that nothing ails can't be made: %v", err)
			}
			wrong = append(wrong, young, other.all[0].file.copied())
		}
	}
	for _, m.file = range wrong {
		if err := m.start(); err == nil {
			m.w.Wrong("node %d began with a log that is not its own", m.id)
			m.end(false, nil)
		} else {
			m.w.Step(m.host, "refused: %v", err)
		}
	}
	m.file = own
	m.again()
}

// change changes the members, or who leads.
func (v *volume) change(kind string, m *member, draw *rand.Rand) {
	switch n := len(v.list()); {
	case kind == "replace":
		if v.join() {
			v.remove(m)
		}
	case kind == "join" && n < 5:
		v.join()
	case kind == "remove" && n > 3:
		v.remove(m)
	case kind == "transfer":
		v.transfer(m)
	}
	pause(draw, time.Second)
}
