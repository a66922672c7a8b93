package nodes

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"godat/check/world/program"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/node"
)

// Registers are ranges of blocks that several clients write and read, at any node that serves. What they saw must have an
// order in which each read brings what was written last.

// extent is a register, in blocks. Short ones are in the log's entries, long ones in slots.
type extent struct{ first, count int }

// shared are behind the blocks of writers.
var shared = [...]extent{{shares, 1}, {shares + 1, 1}, {shares + 2, 3}, {shares + 5, 8}, {shares + 16, 40}, {shares + 64, 48}}

// access is a read or a write of a register, of which each word is one by itself: a read of more than 4 KiB may see
// parts of two writes.
type access struct {
	register, word int
	write          bool
	value          uint64
}

// words are the places in a register that have a history.
func (x extent) words() [2]int { return [...]int{0, x.count*block - 8} }

// model is a register.
var model = porcupine.Model{
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := make([][]porcupine.Operation, 2*len(shared))
		for _, o := range all {
			in := o.Input.(access)
			by[2*in.register+in.word] = append(by[2*in.register+in.word], o)
		}
		for _, part := range by {
			parts = append(parts, decided(part))
		}
		return parts
	},
	Init: func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(access); in.write {
			return true, in.value
		}
		return output.(uint64) == state.(uint64), state
	},
}

// decided leaves out writes without an answer that no read saw, and ends the others with the first read that saw them:
// all values differ, so the verdict stays, and is found soon.
func decided(part []porcupine.Operation) (all []porcupine.Operation) {
	seen := make(map[uint64]int64)
	for _, o := range part {
		if value := o.Output.(uint64); !o.Input.(access).write && (seen[value] == 0 || o.Return < seen[value]) {
			seen[value] = o.Return
		}
	}
	for _, o := range part {
		if o.Return == math.MaxInt64 {
			if o.Return = seen[o.Input.(access).value]; o.Return == 0 {
				continue
			}
		}
		all = append(all, o)
	}
	return all
}

// history is what clients saw of a volume's registers.
type history struct {
	mu  sync.Mutex
	all []porcupine.Operation
}

func (h *history) add(client int, a access, begun, end int64, values [2]uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a.word = range values {
		value := values[a.word]
		if a.write {
			value = a.value
		}
		h.all = append(h.all, porcupine.Operation{ClientId: client, Input: a, Output: value, Call: begun, Return: end})
	}
}

// judge looks for the order.
func (h *history) judge(w *program.World) {
	if result := porcupine.CheckOperationsTimeout(model, h.all, 0); result != porcupine.Ok {
		w.Wrong("registers: there is no order of %d reads and writes in which each read brings what was written last: %v", len(h.all)/2, result)
		return
	}
	w.Step("registers", "%d reads and writes have an order", len(h.all)/2)
}

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
	return r.now(d, x), nil
}

// now is what a device has there, in pieces as a target copies them.
func (r *reader) now(d *node.Device, x extent) (values [2]uint64) {
	const piece = 4096
	for at := 0; at < x.count*block; at += piece {
		d.Copy(r.b[at:min(at+piece, x.count*block)], x.first*block+at)
	}
	for i, at := range x.words() {
		values[i] = binary.LittleEndian.Uint64(r.b[at:])
	}
	return values
}

// access reads and writes registers until some time, at a node that takes it.
func (v *volume) access(number int, until time.Time) {
	draw := v.w.Draw(v.draws + 50 + uint64(number))
	who := fmt.Sprintf("%s: client %d", v.name, number)
	tw, answer := target.NewWrite()
	r := newReader()
	at := v.any(draw)
	for serial := uint64(1); time.Now().Before(until); serial++ {
		pause(draw, v.pace)
		a := access{register: draw.IntN(len(shared)), write: draw.IntN(2) == 0, value: serial<<8 | uint64(number)}
		if !v.accessOnce(at, who, number, a, r, tw, answer) {
			at = v.any(draw)
		}
	}
}

// accessOnce does one access at a node, and reports whether the node took it.
func (v *volume) accessOnce(at *member, who string, number int, a access, r *reader, tw *target.Write, answer func() error) bool {
	x, n := shared[a.register], at.up()
	if n == nil {
		return false
	}
	begun := time.Now().UnixNano()
	if !a.write {
		values, err := r.at(n, x)
		if err == nil && at.up() == n { // else its power was cut meanwhile, and nobody hears of it
			v.history.add(number, a, begun, time.Now().UnixNano(), values)
			v.w.Step(who, "%d has read %x of register %d", at.id, values, a.register)
		}
		return err == nil
	}
	began, err := writeOnce(n, tw, answer, x.first, x.count, a.value, nil)
	if began {
		end := int64(math.MaxInt64)
		if err == nil {
			end = time.Now().UnixNano()
		}
		v.history.add(number, a, begun, end, [2]uint64{})
		v.w.Step(who, "%d has written %x to register %d: %v", at.id, a.value, a.register, err)
	}
	return err == nil
}

// readAll reads all registers of a disk at the end.
func (v *volume) readAll(n *node.Node) {
	r := newReader()
	for i, x := range shared {
		begun := time.Now().UnixNano()
		v.history.add(99, access{register: i}, begun, time.Now().UnixNano(), r.now(n.Device(), x))
	}
}

// any is any member.
func (v *volume) any(draw *rand.Rand) *member {
	all := v.list()
	return all[draw.IntN(len(all))]
}
