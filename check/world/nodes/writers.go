package nodes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/node"
)

// A writer has blocks of its own, to which it writes at any node that serves.

const (
	writers = 3
	share   = 64              // blocks of a writer
	shares  = writers * share // of all writers
	// patience is the most time without a write that succeeds, while a majority is there.
	patience = 2 * time.Minute
)

// mark is what the judge knows of a block: the last write that was acknowledged, and the last one begun.
type mark struct{ sure, last uint64 }

// hand is how a writer brings a value to blocks of its own. It says by which node.
type hand interface {
	bring(first, count int, value uint64) (at uint64, err error)
	end()
}

// hand is that of a writer: one of the first volume's is a host of its own.
func (v *volume) hand(number int, draw *rand.Rand) (hand, error) {
	if number == writers-1 {
		return v.initiator(number)
	}
	u := &near{v: v, number: number, draw: draw, marks: v.marks[number], at: v.reached(number, draw)}
	u.write, u.answer = target.NewWrite()
	u.write.From.Host = hostOf(number)
	return u, nil
}

// near is a writer that is on the nodes' machines.
type near struct {
	v      *volume
	number int
	draw   *rand.Rand
	marks  []mark
	at     *member
	write  *target.Write
	answer func() error
}

// bring implements hand.
func (u *near) bring(first, count int, value uint64) (at uint64, err error) {
	at, err = u.at.id, errors.New("it is down")
	if n := u.at.up(); n != nil {
		_, err = writeOnce(n, u.write, u.answer, u.number*share+first, count, value, u.marks[first:first+count])
	}
	if err != nil {
		u.at = u.v.reached(u.number, u.draw)
	}
	return at, err
}

func (u *near) end() {}

// write writes to blocks of its own, at a node that takes it.
func (v *volume) write(number int, until time.Time, draw *rand.Rand, by hand) {
	defer by.end()
	who, marks, failed := fmt.Sprintf("%s: writer %d", v.name, number), v.marks[number], time.Time{}
	for serial := uint64(1); time.Now().Before(until); serial++ {
		pause(draw, v.pace)
		count := 1 + draw.IntN([]int{2, 8, share - 1}[draw.IntN(3)])
		first := draw.IntN(share - count)
		at, err := by.bring(first, count, serial)
		switch {
		case err == nil:
			for k := range count {
				marks[first+k].sure = serial
			}
			v.w.Step(who, "%d has written %d to %d and %d behind it", at, serial, first, count-1)
			failed = time.Time{}
		case failed.IsZero():
			v.w.Step(who, "%d: %v", at, err)
			failed = time.Now()
		case time.Since(failed) > patience:
			v.w.Wrong("%s has written nothing for %v: %v", who, patience, err)
			return
		}
	}
}

// hostOf is the host that a writer or client is.
func hostOf(number int) identity.ID { return identity.ID{1, byte(number)} }

// writeOnce writes a value to blocks. began says that the node has got it, whatever became of it.
func writeOnce(n *node.Node, tw *target.Write, answer func() error, first, count int, value uint64, marks []mark) (began bool, err error) {
	d := n.Device()
	tw.Offset, tw.Len = first*block, count*block
	d.Place(tw)
	if err := answer(); err != nil {
		return false, err
	}
	room := d.Data(tw)
	for k := range marks {
		marks[k].last = value
	}
	for o := 0; o < len(room); o += 8 {
		binary.LittleEndian.PutUint64(room[o:], value)
	}
	d.Take(tw)
	return true, answer()
}

// judge compares the disks with each other, and with what writers and clients were told. All nodes have applied the same.
func (v *volume) judge() {
	all := v.list()
	disk := all[0].up().Device().Memory()
	for _, m := range all[1:] {
		if !bytes.Equal(m.up().Device().Memory(), disk) {
			v.w.Wrong("%s: the disks of nodes %d and %d differ", v.name, all[0].id, m.id)
		}
	}
	for number := range v.marks {
		for k, is := range v.marks[number] {
			b := disk[(number*share+k)*block:][:block]
			got := binary.LittleEndian.Uint64(b)
			if got < is.sure || got > is.last || !bytes.Equal(b, bytes.Repeat(b[:8], block/8)) {
				v.w.Wrong("%s: writer %d, block %d: %d is there, and not %d to %d", v.name, number, k, got, is.sure, is.last)
			}
		}
	}
	v.readAll(all[0].up())
	if err := v.history.Check(0); err != nil {
		v.w.Wrong("%s: %v", v.name, err)
		return
	}
	v.w.Step(v.name, "%d answered reads and writes of registers have an order", v.history.Answered())
}
