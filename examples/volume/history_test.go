package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
	"godat/examples/volume/node"
)

var (
	seeds    = flag.Int("seeds", 2, "histories of TestHistoriesAreLinearizable")
	seedFrom = flag.Uint64("seed", 1, "the first one's seed")
)

// registers is how many blocks have a history, and words which words of each. A Read at the same time as
// a Write of its block may see both, so each word is a register.
const registers = 5

var words = [...]int{0, 1024, blockLen - 16}

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
	begun time.Time

	mu  sync.Mutex
	all []porcupine.Operation
}

// add adds an operation on all words of a register. One that has not returned may still have its effect.
func (h *history) add(client int, a access, begun time.Duration, returned bool, values [len(words)]uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := int64(math.MaxInt64)
	if returned {
		end = int64(time.Since(h.begun))
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
	version := uint64(0)
	for {
		select {
		case <-stop:
			return
		default:
		}
		a := access{register: r.IntN(registers), write: r.IntN(2) == 0}
		off := a.register * blockLen * 3
		b := make([]byte, blockLen)
		op := nvme.IORead
		if a.write {
			version++
			a.value = version<<8 | uint64(number)
			op, b = nvme.IOWrite, placed(off, blockLen, a.value)
		}
		begun := time.Since(h.begun)
		never, err := host.try(op, b, off)
		switch {
		case err == nil && a.write:
			h.add(number, a, begun, true, [len(words)]uint64{})
		case err == nil:
			h.add(number, a, begun, true, seen(host.t, b, off))
		case a.write && !never:
			h.add(number, a, begun, false, [len(words)]uint64{})
		}
		if err != nil {
			time.Sleep(5 * time.Millisecond) // until the next try of a node that may not serve yet
		}
	}
}

// seen are the values of a block's words. A block that was written has its place.
func seen(t testing.TB, b []byte, off int) (values [len(words)]uint64) {
	for i, at := range words {
		values[i] = binary.LittleEndian.Uint64(b[at:])
		if place := binary.LittleEndian.Uint64(b[at+8:]); values[i] != 0 && place != uint64(off+at) {
			t.Errorf("block at %d has at %d what was written to %d", off, at, place)
		}
	}
	return values
}

// load fills slots with writes of 64 KiB beside the registers, so that slots are used again.
func load(host *multipath, r *rand.Rand, stop <-chan struct{}) {
	for version := uint64(1); ; version++ {
		select {
		case <-stop:
			return
		default:
		}
		off := (1 + r.IntN(15)) * 128 << 10
		_, _ = host.try(nvme.IOWrite, placed(off, 64<<10, version), off) // which may fail at any time
	}
}

// trouble is what befalls a volume: one thing at a time, of which it survives each.
func (c *cluster) trouble(r *rand.Rand, pause func()) {
	id := 1 + r.IntN(3)
	if r.IntN(2) == 0 {
		id = c.leader()
	}
	switch what := r.IntN(4); what {
	case 0, 1:
		c.Logf("kill %d", id)
		c.kill(id)
		pause()
		c.start(id)
	case 2:
		c.Logf("stop %d", id)
		c.signal(id, syscall.SIGSTOP)
		pause()
		c.signal(id, syscall.SIGCONT)
	default:
		c.Logf("transfer to %d", id)
		_, _ = c.ask(c.leader(), node.Command{Do: "transfer", ID: uint64(id)}) // it may be the leader
	}
	pause()
}

func TestHistoriesAreLinearizable(t *testing.T) {
	for i := range *seeds {
		t.Run(fmt.Sprint(*seedFrom+uint64(i)), func(t *testing.T) { runHistory(t, *seedFrom+uint64(i)) })
	}
}

func runHistory(t *testing.T, seed uint64) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	h := &history{begun: time.Now()}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	hosts := []*multipath{c.host(), c.host()}
	for number := range 4 {
		clients.Go(func() { h.client(hosts[number%2], number, rand.New(rand.NewPCG(seed, uint64(number))), stop) })
	}
	clients.Go(func() { load(hosts[0], rand.New(rand.NewPCG(seed, 99)), stop) })
	r := rand.New(rand.NewPCG(seed, 100))
	c.leader()
	for range 4 {
		c.trouble(r, func() { time.Sleep(time.Duration(500+r.IntN(2500)) * time.Millisecond) }) // of load
	}
	close(stop)
	clients.Wait()
	last := c.host()
	for register := range registers {
		b := make([]byte, blockLen)
		off := register * blockLen * 3
		begun := time.Since(h.begun)
		last.must(nvme.IORead, b, off)
		h.add(5, access{register: register}, begun, true, seen(t, b, off))
	}
	c.same()
	t.Logf("%d operations", len(h.all))
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(model, h.all, time.Minute))
}
