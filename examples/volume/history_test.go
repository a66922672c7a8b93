package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
)

// shared are registers that all clients write. The first ones are so short that their data is in the entries of
// the log, the last ones have it in slots.
var shared = [...]extent{
	{0, blockLen}, {3 * blockLen, blockLen}, {6 * blockLen, blockLen}, {9 * blockLen, blockLen}, {64 << 10, 64 << 10}, {192 << 10, 32 << 10},
}

type extent struct{ off, len int }

// loads is how many registers only one client writes.
const loads = 14

// extentOf is where a register is on the disk.
func extentOf(register int) extent {
	if register < len(shared) {
		return shared[register]
	}
	return extent{(2 + register - len(shared)) * 256 << 10, 64 << 10}
}

// words says which words of a register have a history. A Read at the same time as a Write of its blocks may
// see both, so each word is a register by itself.
func words(register int) [3]int {
	n := extentOf(register).len
	return [...]int{0, n / 4, n - 16}
}

// access is a read or a write of a register.
type access struct {
	register, word int
	write          bool
	value          uint64
}

// model is a register. The output of a read is the value that it returned.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := make(map[[2]int][]porcupine.Operation)
		for _, o := range history {
			in := o.Input.(access)
			key := [2]int{in.register, in.word}
			by[key] = append(by[key], o)
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
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %v", input, output) },
}

// decided is the history of a register, in which writes without an answer have an end or are left out.
// All values differ. A write that some read saw has had its effect by the end of the first such read;
// one that no read saw explains none. So the verdict is the same, and porcupine finds it soon.
func decided(part []porcupine.Operation) (all []porcupine.Operation) {
	seen := make(map[uint64]int64) // up to when a value was read first
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

// history is what clients saw.
type history struct {
	begun    time.Time
	answered chan struct{} // has a value when there was an answer

	mu  sync.Mutex
	all []porcupine.Operation
}

func newHistory() *history { return &history{begun: time.Now(), answered: make(chan struct{}, 1)} }

// wait waits for answers, but not for longer than some time: troubles may leave no majority to give any.
func (h *history) wait(answers int, most time.Duration) {
	late := time.After(most)
	for range answers {
		select {
		case <-h.answered:
		case <-late:
			return
		}
	}
}

// add adds an operation on all words of a register. One that has not returned may still have its effect.
func (h *history) add(client int, a access, begun time.Duration, returned bool, values [3]uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := int64(math.MaxInt64)
	if returned {
		end = int64(time.Since(h.begun))
		select {
		case h.answered <- struct{}{}:
		default:
		}
	}
	for i, value := range values {
		a.word = i
		if a.write {
			value = a.value
		}
		h.all = append(h.all, porcupine.Operation{ClientId: client, Input: a, Output: value, Call: int64(begun), Return: end})
	}
}

// client reads and writes registers until stop is closed.
func (h *history) client(host *multipath, number int, r *rand.Rand, stop <-chan struct{}) {
	for version := uint64(1); ; version++ {
		select {
		case <-stop:
			return
		default:
		}
		a := access{register: r.IntN(len(shared)), write: r.IntN(2) == 0, value: version<<8 | uint64(number)}
		h.try(host, number, a)
	}
}

// try reads or writes a register.
func (h *history) try(host *multipath, client int, a access) {
	x := extentOf(a.register)
	b := make([]byte, x.len)
	op := nvme.IORead
	if a.write {
		op, b = nvme.IOWrite, placed(x.off, x.len, a.value)
	}
	begun := time.Since(h.begun)
	never, err := host.try(op, b, x.off)
	switch {
	case err == nil && a.write:
		h.add(client, a, begun, true, [3]uint64{})
	case err == nil:
		h.add(client, a, begun, true, seen(host.t, b, a.register))
	case a.write && !never:
		h.add(client, a, begun, false, [3]uint64{})
	}
	if err != nil {
		time.Sleep(5 * time.Millisecond) // until the next try of a node that may not serve yet
	}
}

// during has clients for as long as f runs.
func (h *history) during(c *cluster, seed uint64, f func()) {
	stop := make(chan struct{})
	var clients sync.WaitGroup
	defer clients.Wait()
	defer close(stop)
	hosts := []*multipath{c.host(), c.host()}
	for number := range 4 {
		clients.Go(func() { h.client(hosts[number%2], number, rand.New(rand.NewPCG(seed, uint64(number))), stop) })
	}
	clients.Go(func() { h.load(hosts[0], rand.New(rand.NewPCG(seed, 99)), stop) })
	f()
}

// seen are the values of a register's words. Whatever was written has its place.
func seen(t testing.TB, b []byte, register int) (values [3]uint64) {
	off := extentOf(register).off
	for at := 0; at < len(b); at += 16 {
		if place := binary.LittleEndian.Uint64(b[at+8:]); binary.LittleEndian.Uint64(b[at:]) != 0 && place != uint64(off+at) {
			t.Errorf("register %d has at %d what was written to %d", register, off+at, place)
			break
		}
	}
	for i, at := range words(register) {
		values[i] = binary.LittleEndian.Uint64(b[at:])
	}
	return values
}

// load uses slots again and again: it writes ranges of 64 KiB that nobody else writes, and reads them.
func (h *history) load(host *multipath, r *rand.Rand, stop <-chan struct{}) {
	const number = 5
	for version := uint64(1); ; version++ {
		select {
		case <-stop:
			return
		default:
		}
		a := access{register: len(shared) + r.IntN(loads), write: r.IntN(4) != 0, value: version<<8 | number}
		h.try(host, number, a)
	}
}

// end reads all registers once more.
func (h *history) end(t testing.TB, host *multipath) {
	for register := range len(shared) + loads {
		x := extentOf(register)
		b := make([]byte, x.len)
		begun := time.Since(h.begun)
		host.must(nvme.IORead, b, x.off)
		h.add(9, access{register: register}, begun, true, seen(t, b, register))
	}
}

// pause is the longest time without an answer.
func (h *history) pause() (longest time.Duration) {
	var ends []int64
	for _, o := range h.all {
		if o.Return != math.MaxInt64 {
			ends = append(ends, o.Return)
		}
	}
	slices.Sort(ends)
	for i := 1; i < len(ends); i++ {
		longest = max(longest, time.Duration(ends[i]-ends[i-1]))
	}
	return longest
}

var (
	seeds    = flag.Int("seeds", 5, "histories of TestHistoriesAreLinearizable")
	seedFrom = flag.Uint64("seed", 1, "the first one's seed")
)

// TestHistoriesAreLinearizable torments volumes while clients keep histories of registers, and says what
// befell them.
func TestHistoriesAreLinearizable(t *testing.T) {
	var mu sync.Mutex
	sum := tally{troubles: make(map[string]int)}
	t.Run("seed", func(t *testing.T) {
		for i := range *seeds {
			seed := *seedFrom + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				x := runHistory(t, seed)
				mu.Lock()
				defer mu.Unlock()
				sum.add(x)
				fmt.Printf("seed %d held, of %d: %v\n", seed, *seeds, &sum)
			})
		}
	})
}

func runHistory(t *testing.T, seed uint64) tally {
	c := newCluster(t)
	r := rand.New(rand.NewPCG(seed, 100))
	x := c.newTorment(r)
	h := newHistory()
	h.during(c, seed, func() { x.run(h, 10) })
	h.end(t, c.host())
	c.same()
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(model, h.all, time.Minute))
	x.tally.histories, x.tally.operations, x.tally.pause = 1, len(h.all)/3, h.pause()
	x.conclude()
	return x.tally
}
