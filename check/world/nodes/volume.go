// Package nodes is a program of the seeded world: a volume of three to five nodes whose writers go on while nodes
// are stopped, lose power, have slow or full disks, and the network between them has troubles; beside it there may
// be another volume, one of whose nodes knows a wrong address.
package nodes

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"godat/check/world/program"
	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
)

// Name is that of the program.
const Name = "volume"

const (
	writers = 3
	share   = size / block / writers // blocks of a writer
	// patience is the most time without a write that succeeds, while a majority is there.
	patience = 2 * time.Minute
)

// Volume is the program. Its rounds are two seconds each.
type Volume struct{ program.Size }

// Named returns the program, for program.Main.
func Named(name string, size program.Size) (program.Program, error) {
	if name != Name {
		return nil, fmt.Errorf("no program %q: %s", name, Name)
	}
	return Volume{size}, nil
}

// mark is what the judge knows of a block: the last write that was acknowledged, and the last one begun.
type mark struct{ sure, last uint64 }

// Run runs the program.
func (p Volume) Run(w *program.World) error {
	draw := w.Draw(500)
	hosts := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"}[:3+draw.IntN(3)]
	all, err := found(w, identity.ID{1}, hosts, 7001, nil)
	if err != nil {
		return err
	}
	var beside []*member
	if draw.IntN(2) == 0 {
		wrong := all[len(all)-1]
		beside, err = found(w, identity.ID{2}, []string{"10.0.2.1", "10.0.2.2", "10.0.2.3"}, 7101, func(peers raftlog.Members) {
			peers[3] = raftlog.Member{Addr: wrong.peers[wrong.id].Addr}
			if len(all) == 3 {
				return
			}
			delete(peers, 3) // and means it by its own number there
			peers[wrong.id] = raftlog.Member{Addr: wrong.peers[wrong.id].Addr}
		})
		if err != nil {
			return err
		}
	}
	until := time.Now().Add(time.Duration(p.Rounds) * 2 * time.Second)
	var working sync.WaitGroup
	marks := make([][]mark, writers)
	for i := range marks {
		marks[i] = make([]mark, share)
		working.Go(func() { write(w, all, i, marks[i], until) })
	}
	working.Go(func() { p.troubles(w, all, beside) })
	working.Wait()
	if settle(w, all) {
		judge(w, all, marks)
	}
	for _, m := range append(all, beside...) {
		m.end(false, nil)
	}
	return nil
}

// write writes to blocks of its own, at a node that takes it.
func write(w *program.World, all []*member, number int, marks []mark, until time.Time) {
	draw := w.Draw(600 + uint64(number))
	who := fmt.Sprintf("writer %d", number)
	tw, answer := target.NewWrite()
	at, failed := 0, time.Time{}
	for serial := uint64(1); time.Now().Before(until); serial++ {
		pause(draw, 400*time.Millisecond)
		count := 1 + draw.IntN([]int{2, 8, 31}[draw.IntN(3)])
		first := draw.IntN(share - count)
		err := errors.New("it is down")
		if n := all[at].up(); n != nil {
			err = writeOnce(n, tw, answer, number*share+first, count, serial, marks[first:first+count])
		}
		switch {
		case err == nil:
			for k := range count {
				marks[first+k].sure = serial
			}
			w.Step(who, "%d has written %d to %d and %d behind it", at+1, serial, first, count-1)
			failed = time.Time{}
			continue
		case failed.IsZero():
			w.Step(who, "%d: %v", at+1, err)
			failed = time.Now()
		case time.Since(failed) > patience:
			w.Wrong("%s has written nothing for %v: %v", who, patience, err)
			return
		}
		at = draw.IntN(len(all))
	}
}

func writeOnce(n *node.Node, tw *target.Write, answer func() error, first, count int, serial uint64, marks []mark) error {
	d := n.Device()
	tw.Offset, tw.Len = first*block, count*block
	d.Place(tw)
	if err := answer(); err != nil {
		return err
	}
	room := d.Room()[tw.At:][:count*block]
	for k := range marks {
		marks[k].last = serial
	}
	for o := 0; o < len(room); o += 8 {
		binary.LittleEndian.PutUint64(room[o:], serial)
	}
	d.Take(tw)
	return answer()
}

// troubles brings a trouble after the other, one at a time, so a majority is there.
func (p Volume) troubles(w *program.World, all, beside []*member) {
	script := w.Draw(1)
	for i := range p.Troubles {
		kind := []string{"stop", "cut", "cut", "slow", "full", "hold", "reset", "slip"}[script.IntN(8)]
		before, lasts := time.Duration(script.Int64N(int64(6*time.Second))), time.Duration(script.Int64N(int64(8*time.Second)))
		at, other, own := script.IntN(len(all)), script.IntN(len(all)), rand.New(rand.NewPCG(script.Uint64(), 6))
		if p.leftOut(i) || w.Network == nil && (kind == "hold" || kind == "reset") {
			continue
		}
		time.Sleep(before)
		if kind == "slip" {
			w.Trouble(kind, "node %d", at+1)
			all[at].slip(beside)
			continue
		}
		w.Trouble(kind, "node %d, %d, for %v", at+1, other+1, lasts)
		p.trouble(w, kind, all[at], all[other], lasts, own)
	}
}

func (p Volume) leftOut(i int) bool {
	for _, n := range p.Without {
		if n == i {
			return true
		}
	}
	return false
}

func (p Volume) trouble(w *program.World, kind string, m, other *member, lasts time.Duration, draw *rand.Rand) {
	switch kind {
	case "stop", "cut":
		m.end(kind == "cut", draw)
		time.Sleep(lasts)
		m.again()
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
	case "hold":
		if m != other {
			w.Network.Hold(m.host, other.host)
			time.Sleep(lasts)
			w.Network.Release(m.host, other.host)
		}
	case "reset":
		if m != other {
			w.Network.Reset(m.host, other.host)
		}
	}
}

// slip is what an operator does who takes the wrong directory: an empty one, or one of another volume. The node says
// so, and comes back with its own.
func (m *member) slip(beside []*member) {
	m.end(false, nil)
	own := m.file
	wrong := []*file{newFile()}
	for _, other := range beside {
		wrong = append(wrong, other.file.copied())
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

// again begins a further life.
func (m *member) again() {
	if err := m.start(); err != nil {
		m.w.Wrong("a node does not come back: %v", err)
	}
}

// settle waits until all nodes have applied the same.
func settle(w *program.World, all []*member) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		same, text := true, ""
		var last uint64
		for i, m := range all {
			n := m.up()
			if n == nil {
				w.Wrong("node %d is down at the end", m.id)
				return false
			}
			s := n.Status()
			if i == 0 {
				last = s.Last
			}
			same = same && s.Last == last && s.Applied == last && last != 0
			text += fmt.Sprintf(" %d: %d of %d;", m.id, s.Applied, s.Last)
		}
		if same {
			return true
		}
		time.Sleep(100 * time.Millisecond)
		if ctx.Err() != nil {
			w.Wrong("the nodes have not applied the same:%s", text)
		}
	}
	return false
}

// judge compares the disks with each other, and with what writers were told.
func judge(w *program.World, all []*member, marks [][]mark) {
	disk := all[0].up().Device().Memory()
	for _, m := range all[1:] {
		if !bytes.Equal(m.up().Device().Memory(), disk) {
			w.Wrong("the disks of nodes 1 and %d differ", m.id)
		}
	}
	for number := range marks {
		for k, is := range marks[number] {
			b := disk[(number*share+k)*block:][:block]
			got := binary.LittleEndian.Uint64(b)
			if got < is.sure || got > is.last || !bytes.Equal(b, bytes.Repeat(b[:8], block/8)) {
				w.Wrong("writer %d, block %d: %d is there, and not %d to %d", number, k, got, is.sure, is.last)
			}
		}
	}
}
