package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
	"godat/examples/volume/registers"
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

// history is what clients saw.
type history struct {
	begun    time.Time
	answered chan struct{} // has a value when there was an answer

	registers.History
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

// add adds an access of a client, which began at some time. One that has not returned may still have its effect.
func (h *history) add(client int, a registers.Access, begun time.Duration, returned bool, values [3]uint64) {
	end := int64(registers.Never)
	if returned {
		end = int64(time.Since(h.begun))
		select {
		case h.answered <- struct{}{}:
		default:
		}
	}
	h.Add(client, a, int64(begun), end, values[:])
}

// client reads and writes registers until stop is closed.
func (h *history) client(host *multipath, number int, r *rand.Rand, stop <-chan struct{}) {
	for version := uint64(1); ; version++ {
		select {
		case <-stop:
			return
		default:
		}
		a := registers.Access{Register: r.IntN(len(shared)), Write: r.IntN(2) == 0, Value: version<<8 | uint64(number)}
		h.try(host, number, a)
	}
}

// try reads or writes a register.
func (h *history) try(host *multipath, client int, a registers.Access) {
	x := extentOf(a.Register)
	b := make([]byte, x.len)
	op := nvme.IORead
	if a.Write {
		op, b = nvme.IOWrite, placed(x.off, x.len, a.Value)
	}
	begun := time.Since(h.begun)
	never, err := host.try(op, b, x.off)
	switch {
	case err == nil && a.Write:
		h.add(client, a, begun, true, [3]uint64{})
	case err == nil:
		h.add(client, a, begun, true, seen(host.t, b, a.Register))
	case a.Write && !never:
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
		a := registers.Access{Register: len(shared) + r.IntN(loads), Write: r.IntN(4) != 0, Value: version<<8 | number}
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
		h.add(9, registers.Access{Register: register}, begun, true, seen(t, b, register))
	}
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
	if seed%4 == 1 {
		x.newNeighbour(seed)
	}
	h := newHistory()
	h.during(c, seed, func() {
		if seed <= 3 {
			x.narrow = c.hosts[1]
			x.count("narrow host")
		}
		x.run(h, 10)
	})
	h.end(t, c.host())
	c.same()
	x.beside.holds()
	require.NoError(t, h.Check(time.Minute))
	x.tally.histories, x.tally.operations, x.tally.pause = 1, h.Answered(), h.Pause()
	x.conclude()
	return x.tally
}
