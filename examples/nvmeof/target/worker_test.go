package target

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	dat "godat/runtime"
)

// paced is a store each of whose calls waits until the test lets it go on.
type paced struct {
	store.Store
	calls chan string // gets each call that has begun
	goOn  chan struct{}
}

func (s *paced) Volatile() bool { return true }

func (s *paced) Flush(off, n int) error {
	s.calls <- fmt.Sprintf("flush %d+%d", off>>10, n>>10)
	<-s.goOn
	return s.Store.Flush(off, n)
}

func (s *paced) Zero(off, n int) error {
	s.calls <- fmt.Sprintf("zero %d+%d", off>>10, n>>10)
	<-s.goOn
	return s.Store.Zero(off, n)
}

// next lets the call that is under way go on, and returns the one that begins then.
func (s *paced) next() string {
	s.goOn <- struct{}{}
	return <-s.calls
}

// startPaced serves a paced store of 8 MiB, and returns two I/O queues without a host.
func startPaced(t *testing.T) (f *fixture, s *paced, one, two *dat.Conn) {
	memory, err := store.NewMemory(8 << 20)
	require.NoError(t, err)
	s = &paced{memory, make(chan string), make(chan struct{})}
	t.Cleanup(func() { require.NoError(t, memory.Close()) })
	f = start(t, "loop", func(cfg *Config) { cfg.Namespaces = []Namespace{{Store: s}} })
	f.admin = rawQueue(f, f.ia, f.target, 0)
	id := rawExchange(f, f.admin, rawConnect(0, nvme.DynamicController))
	require.Equal(f, nvme.Success, id.Status)
	rawExchange(f, f.admin, rawCommand(nvme.PropertySet(nvme.PropertyCC, nvme.ConfigEnable)))
	for i, q := range []**dat.Conn{&one, &two} {
		*q = rawQueue(f, f.ia, f.target, uint16(i+1))
		require.Equal(f, nvme.Success, rawExchange(f, *q, rawConnect(uint16(i+1), uint16(id.Result))).Status)
	}
	return f, s, one, two
}

// deallocation is a Dataset Management command that deallocates the whole disk so many times.
func deallocation(ranges int) []byte {
	c := nvme.Command{Opcode: nvme.IODataset, NSID: 1, Flags: nvme.UsesList, CDW10: uint32(ranges - 1), CDW11: nvme.DatasetDeallocate}
	c.Data = nvme.Descriptor{Type: nvme.InCapsule, Length: uint32(ranges * nvme.RangeLen)}
	capsule := rawCommand(c)
	for range ranges {
		capsule = nvme.Range{Blocks: 2048}.Append(capsule)
	}
	return capsule
}

// writeZeroes is a Write Zeroes of one block.
func writeZeroes(lba uint64, bits uint32) []byte {
	c := nvme.Command{Opcode: nvme.IOWriteZeroes, NSID: 1, Flags: nvme.UsesList, CDW12: bits}
	c.SetRange(lba, 1)
	return rawCommand(c)
}

func TestAFlushWaitsForOnePieceOfWhatOthersDeallocate(t *testing.T) {
	f, s, hog, other := startPaced(t)
	for range 30 {
		require.NoError(t, hog.SendBytes(deallocation(256)))
	}
	require.Equal(t, "zero 0+1024", <-s.calls)
	require.Eventually(t, func() bool { return waiting(f) == 29 }, patience, tick)
	for i := range 3 {
		require.NoError(t, other.SendBytes(rawCommand(flush)))
		require.Eventually(t, func() bool { return waiting(f) == 30 }, patience, tick)
		assert.Equal(t, "flush 0+8192", s.next(), "after one piece, however many wait")
		assert.Equal(t, fmt.Sprintf("zero %d+1024", (i+1)*1024), s.next())
		assert.Equal(t, nvme.Success, rawCompletion(t, other).Status)
	}
	require.NoError(t, hog.Close()) // which takes back what it wanted
	require.Eventually(t, func() bool { return waiting(f) == 0 }, patience, tick)
	s.goOn <- struct{}{}
	require.NoError(t, other.SendBytes(rawCommand(flush)))
	assert.Equal(t, "flush 0+8192", <-s.calls, "and no further piece")
	s.goOn <- struct{}{}
	assert.Equal(t, nvme.Success, rawCompletion(t, other).Status)
}

func TestQueuesHaveTheirBlocksZeroedByTurns(t *testing.T) {
	f, s, hog, other := startPaced(t)
	for range 3 {
		require.NoError(t, hog.SendBytes(deallocation(2)))
	}
	require.Equal(t, "zero 0+1024", <-s.calls)
	require.NoError(t, other.SendBytes(writeZeroes(3, 0)))
	require.NoError(t, other.SendBytes(writeZeroes(5, nvme.ForceUnitAccess)))
	require.Eventually(t, func() bool { return waiting(f) == 4 }, patience, tick)
	for _, want := range []string{"zero 12+4", "zero 1024+1024", "zero 20+4", "flush 20+4", "zero 2048+1024", "zero 3072+1024"} {
		assert.Equal(t, want, s.next())
	}
	for range 2 {
		assert.Equal(t, nvme.Success, rawCompletion(t, other).Status)
	}
	for range 3*2*8 - 4 {
		s.next()
	}
	s.goOn <- struct{}{}
	for range 3 {
		assert.Equal(t, nvme.Success, rawCompletion(t, hog).Status)
	}
}

func TestATargetThatStopsWaitsForNoMoreThanAPiece(t *testing.T) {
	f, s, hog, _ := startPaced(t)
	f.target.drain = time.Millisecond
	for range 30 {
		require.NoError(t, hog.SendBytes(deallocation(256)))
	}
	require.Equal(t, "zero 0+1024", <-s.calls)
	require.Eventually(t, func() bool { return waiting(f) == 29 }, patience, tick)
	stopped := make(chan error, 1)
	go func() { stopped <- f.stop() }()
	require.Eventually(t, func() bool { return waiting(f) == 0 }, patience, tick)
	s.goOn <- struct{}{}
	select {
	case call := <-s.calls:
		t.Fatal(call)
	case err := <-stopped:
		require.NoError(t, err)
	}
}

// stuck is a store whose memory can't be accessed before the test lets it.
type stuck struct {
	store.Store
	probing, goOn chan struct{}
}

func (s *stuck) Probe(int, int, bool) error {
	s.probing <- struct{}{}
	<-s.goOn
	return nil
}

func TestATargetThatStopsLeavesAQueueItsMemory(t *testing.T) {
	s := &stuck{newMemory(t, 1<<20).Store, make(chan struct{}), make(chan struct{})}
	f := start(t, "loop", func(cfg *Config) { cfg.Namespaces = []Namespace{{Store: s}} })
	q := rawHost(f)
	f.target.drain = time.Millisecond
	c := nvme.Command{Opcode: nvme.IOWrite, NSID: 1, Flags: nvme.UsesList}
	c.Data = nvme.Descriptor{Type: nvme.InCapsule, Length: 4096}
	require.NoError(t, q.SendBytes(append(rawCommand(c), make([]byte, 4096)...)))
	<-s.probing
	stopped, ended := make(chan error, 1), make(chan error, 1)
	go func() { stopped <- f.stop() }()
	go func() { ended <- drain(f.within(), q) }()
	select {
	case <-f.target.over:
	case err := <-ended:
		t.Error("the connection ended under its queue:", err)
	}
	close(s.goOn)
	require.NoError(t, <-stopped)
}

func TestADeallocationIsAbortedBetweenItsPieces(t *testing.T) {
	f, s, q, _ := startPaced(t)
	for range 2 {
		require.NoError(t, q.SendBytes(deallocation(1)))
	}
	require.Equal(t, "zero 0+1024", <-s.calls)
	require.Eventually(t, func() bool { return waiting(f) == 1 }, patience, tick)
	require.EqualValues(t, 0, rawExchange(t, f.admin, rawCommand(nvme.Abort(1, 0))).Result, "the second one is aborted")
	assert.Equal(t, nvme.AbortRequested, rawCompletion(t, q).Status)
	for at := 1; at < 8; at++ {
		assert.Equal(t, fmt.Sprintf("zero %d+1024", at*1024), s.next())
	}
	s.goOn <- struct{}{}
	assert.Equal(t, nvme.Success, rawCompletion(t, q).Status)
}

func TestOneFlushForManyCoversTheRangesOfAll(t *testing.T) {
	f, s, q, _ := startPaced(t)
	write := func(lba uint64) {
		c := nvme.Command{Opcode: nvme.IOWrite, NSID: 1, Flags: nvme.UsesList, CDW12: nvme.ForceUnitAccess}
		c.SetRange(lba, 1)
		c.Data = nvme.Descriptor{Type: nvme.InCapsule, Length: 4096}
		require.NoError(t, q.SendBytes(append(rawCommand(c), make([]byte, 4096)...)))
	}
	write(9)
	require.Equal(t, "flush 36+4", <-s.calls)
	for _, lbas := range [][]uint64{{2, 6, 4}, {6, 2}, {2, 6}, {7}} {
		for _, lba := range lbas {
			write(lba)
		}
		require.Eventually(t, func() bool { return waiting(f) == len(lbas) }, patience, tick)
		if len(lbas) == 1 {
			assert.Equal(t, "flush 28+4", s.next())
		} else {
			assert.Equal(t, "flush 8+20", s.next(), "%v", lbas)
		}
	}
	s.goOn <- struct{}{}
	for range 9 {
		assert.Equal(t, nvme.Success, rawCompletion(t, q).Status)
	}
}

// whole is a paced store that takes a range whole.
type whole struct{ *paced }

func (whole) ZeroPiece() int { return 1 << 30 }

func (w whole) ZeroFor(_ Origin, off, n int) error { return w.Zero(off, n) }

func TestAStoreThatIsAZeroerGetsARangeWhole(t *testing.T) {
	memory, err := store.NewMemory(8 << 20)
	require.NoError(t, err)
	s := &paced{memory, make(chan string), make(chan struct{})}
	w := newWorker(whole{s})
	t.Cleanup(func() { require.NoError(t, memory.Close()) })
	q := &queue{results: make(chan result, 1), controller: new(controller)}
	w.submit(job{from: q, n: 8 << 20, zero: true})
	go w.turn()
	require.Equal(t, "zero 0+8192", <-s.calls)
	s.goOn <- struct{}{}
	require.Equal(t, result{}, <-q.results)
}
