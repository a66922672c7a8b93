package nodes

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"godat/examples/nvmeof/target"
	"godat/examples/volume/node"
	"godat/examples/volume/registers"
)

// Registers are ranges of blocks that several clients write and read, at any node that serves.

// extent is a register, in blocks. Short ones are in the log's entries, long ones in slots.
type extent struct{ first, count int }

// shared are behind the blocks of writers.
var shared = [...]extent{{shares, 1}, {shares + 1, 1}, {shares + 2, 3}, {shares + 5, 8}, {shares + 16, 40}, {shares + 64, 48}}

// words are the places in a register that have a history.
func (x extent) words() [2]int { return [...]int{0, x.count*block - 8} }

// reader reads at a node as its target does.
type reader struct {
	read   *target.Read
	answer func() error
	b      []byte
}

func newReader() *reader {
	r := &reader{b: make([]byte, block*64)}
	r.read, r.answer = target.NewRead()
	return r
}

// at reads a register's words at a node.
func (r *reader) at(n *node.Node, x extent) (values [2]uint64, err error) {
	d := n.Device()
	r.read.Offset, r.read.Len = x.first*block, x.count*block
	d.Gate(r.read)
	if err := r.answer(); err != nil {
		return values, err
	}
	return r.now(d, x)
}

// now is what a device has there, in pieces as a target copies them.
func (r *reader) now(d *node.Device, x extent) (values [2]uint64, err error) {
	const piece = 4096
	for at := 0; at < x.count*block; at += piece {
		if err := d.Copy(r.b[at:min(at+piece, x.count*block)], x.first*block+at); err != nil {
			return values, err
		}
	}
	for i, at := range x.words() {
		values[i] = binary.LittleEndian.Uint64(r.b[at:])
	}
	return values, nil
}

// access reads and writes registers until some time, at a node that takes it.
func (v *volume) access(number int, until time.Time) {
	draw := v.w.Draw(v.draws + 50 + uint64(number))
	who := fmt.Sprintf("%s: client %d", v.name, number)
	tw, answer := target.NewWrite()
	tw.From.Host = hostOf(writers + number)
	r := newReader()
	at := v.reached(number, draw)
	for serial := uint64(1); time.Now().Before(until); serial++ {
		pause(draw, v.pace)
		a := registers.Access{Register: draw.IntN(len(shared)), Write: draw.IntN(2) == 0, Value: serial<<8 | uint64(number)}
		if !v.accessOnce(at, who, number, a, r, tw, answer) {
			at = v.reached(number, draw)
		}
	}
}

// accessOnce does one access at a node, and reports whether the node took it.
func (v *volume) accessOnce(at *member, who string, number int, a registers.Access, r *reader, tw *target.Write, answer func() error) bool {
	x, n := shared[a.Register], at.up()
	if n == nil {
		return false
	}
	begun := time.Now().UnixNano()
	if !a.Write {
		values, err := r.at(n, x)
		if err == nil && at.up() == n { // else its power was cut meanwhile, and nobody hears of it
			v.history.Add(number, a, begun, time.Now().UnixNano(), values[:])
			v.w.Step(who, "%d has read %x of register %d", at.id, values, a.Register)
		}
		return err == nil
	}
	began, err := writeOnce(n, tw, answer, x.first, x.count, a.Value, nil)
	if began {
		end := int64(registers.Never)
		if err == nil {
			end = time.Now().UnixNano()
		}
		v.history.Add(number, a, begun, end, make([]uint64, 2))
		v.w.Step(who, "%d has written %x to register %d: %v", at.id, a.Value, a.Register, err)
	}
	return err == nil
}

// readAll reads all registers of a disk at the end.
func (v *volume) readAll(n *node.Node) {
	r := newReader()
	for i, x := range shared {
		begun := time.Now().UnixNano()
		values, err := r.now(n.Device(), x)
		if err != nil {
			v.w.Wrong("%s: register %d can't be read at the end: %v", v.name, i, err)
			return
		}
		v.history.Add(99, registers.Access{Register: i}, begun, time.Now().UnixNano(), values[:])
	}
}

// any is any member.
func (v *volume) any(draw *rand.Rand) *member {
	all := v.list()
	return all[draw.IntN(len(all))]
}

// reached is a member that a writer or client reaches: the first ones reach no leader, if there is another node.
func (v *volume) reached(number int, draw *rand.Rand) *member {
	m := v.any(draw)
	if number != 0 {
		return m
	}
	all := v.list()
	at := slices.Index(all, m)
	for i := range all {
		m := all[(max(at, 0)+i)%len(all)]
		if n := m.up(); n != nil {
			if s := n.Status(); !s.Serves() {
				return m
			}
		}
	}
	return m
}
