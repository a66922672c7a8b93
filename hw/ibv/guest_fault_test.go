//go:build guest

package ibv

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"godat/hw"
)

// Each fault strikes while at least half of both queues is outstanding. The completions
// prove it: a request that was outstanding then did not succeed.

// tailed are the parameters of a device that tells an orderly end from a broken one.
var tailed = map[string]string{"tail": "on"}

// patiently makes sends wait for receives, where the device can.
func patiently(c *hw.QPConfig) { c.NotReady = time.Hour }

// pages maps n bytes of memory outside Go's heap.
func pages(t testing.TB, n int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return mem
}

// readSize is the size of each of the reads that fill a queue, large enough to keep the
// device busy. It is smaller on soft-RoCE, which cuts reads into packets of 1 KiB.
func readSize(t testing.TB) int {
	if onSIW(t) {
		return 8 << 20
	}
	return 1 << 20
}

// far is memory of the peer that an end reads.
type far struct {
	addr uint64
	rkey uint32
}

// load fills both queues of an end with requests that stay outstanding: receives for
// which the peer sends nothing, and sends for which the peer has no receive or, where
// sends don't wait, long reads from the peer.
func (e *benchEnd) load(from far) {
	e.b.t.Helper()
	for i := range benchDepth {
		e.recv(uint64(1000 + i))
	}
	if e.dev.Attr().NotReadyWait {
		for i := range benchDepth {
			e.send(hw.SendWR{ID: uint64(i), Op: hw.OpSend, Flags: hw.WRSignaled})
		}
		return
	}
	e.read(from, 0, benchDepth)
}

// read posts n reads of the peer's memory, whose identifiers begin with first.
func (e *benchEnd) read(from far, first, n int) {
	e.b.t.Helper()
	sink := e.sink()
	for i := range n {
		e.send(hw.SendWR{
			ID: uint64(first + i), Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{sink.sge(0, len(sink.buf))},
			RKey: from.rkey, RemoteAddr: from.addr,
		})
	}
}

// sink is memory to read into; shut deregisters it.
func (e *benchEnd) sink() *memory {
	m := &memory{buf: pages(e.b.t, readSize(e.b.t))}
	mr, err := e.dev.Register(e.zone, m.buf, hw.LocalWrite)
	require.NoError(e.b.t, err)
	m.MR = mr
	e.regions = append(e.regions, mr)
	return m
}

// target is memory that the peer reads.
func (e *benchEnd) target() far {
	m := &memory{buf: pages(e.b.t, readSize(e.b.t))}
	mr, err := e.dev.Register(e.zone, m.buf, hw.RemoteRead)
	require.NoError(e.b.t, err)
	m.MR = mr
	e.regions = append(e.regions, mr)
	return far{m.addr(), mr.RKey()}
}

// ended waits for OpEnd of both queues, and returns how many of the sends and of the
// receives succeeded. It checks that each posted request has completed exactly once.
func (e *benchEnd) ended(sends, recvs int) (sent, received int) {
	e.b.t.Helper()
	t := e.b.t
	ends := 0
	seen := map[uint64]int{}
	e.until("the ends of both queues", func() bool {
		for _, wc := range e.wcs {
			switch {
			case wc.ID == sendEnd || wc.ID == recvEnd:
				ends++
				continue
			case wc.Status != hw.StatusSuccess:
			case wc.ID >= 1000:
				received++
			default:
				sent++
			}
			seen[wc.ID]++
		}
		e.wcs = e.wcs[:0]
		return ends == 2
	})
	assert.Len(t, seen, sends+recvs, "each completes")
	for id, n := range seen {
		assert.Equal(t, 1, n, "request %d completes once", id)
	}
	return sent, received
}

// shut closes all objects of an end.
func (e *benchEnd) shut() {
	e.b.t.Helper()
	require.NoError(e.b.t, e.qp.Close())
	for _, mr := range e.regions {
		require.NoError(e.b.t, mr.Deregister())
	}
	require.NoError(e.b.t, e.cq.Close())
	require.NoError(e.b.t, e.zone.Close())
	require.NoError(e.b.t, e.dev.Close())
}

// struck breaks a connection after a fault and shuts the end. It checks that half the
// send queue was outstanding when the fault struck, and that no completion is lost.
func (e *benchEnd) struck() {
	e.b.t.Helper()
	e.qp.Break(false)
	sent, received := e.ended(benchDepth, benchDepth)
	assert.LessOrEqual(e.b.t, sent, benchDepth/2, "half the send queue was outstanding")
	assert.Zero(e.b.t, received)
	e.shut()
}

// awaitAsync waits for an asynchronous event of the kind.
func (e *benchEnd) awaitAsync(kind hw.AsyncKind) {
	e.b.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case a := <-e.async:
			if a.Kind == kind {
				return
			}
		case <-deadline:
			require.Fail(e.b.t, "no event", "%v", kind)
		}
	}
}

// newFaultBench makes a connected bench that the test itself closes. cqDepth is the
// completion queue depth of the first end.
func newFaultBench(t *testing.T, cqDepth int) *bench {
	t.Helper()
	b := &bench{t: t}
	b.ends[1] = b.open(tailed, patiently)
	b.cqDepth = cqDepth
	b.ends[0] = b.open(tailed, patiently)
	b.connect(nil)
	return b
}

func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

func TestLinkThatGoesDownIsReportedAndNothingIsLost(t *testing.T) {
	b := newFaultBench(t, 0)
	a, peer := b.ends[0], b.ends[1]
	a.load(peer.target())
	defer func() {
		require.NoError(t, command(t, "ip", "link", "set", "eth0", "up").Run())
		require.NoError(t, command(t, "ip", "-6", "addr", "add", guestAddress6+"/64", "dev", "eth0", "nodad").Run())
	}()
	require.NoError(t, command(t, "ip", "link", "set", "eth0", "down").Run())
	for _, e := range b.ends {
		e.awaitAsync(hw.AsyncPortDown)
	}
	peer.qp.Break(false)
	a.struck()
	peer.ended(0, 0)
	peer.shut()
}

// TestMemoryFreedUnderReadsFailsThemAndNothingIsLost frees memory when the first of
// many reads of it has completed. Soft-RoCE, connected to itself, executes reads while
// they are posted; so there a send that waits for its receive holds the reads back, and
// another one the second half of them until the memory is freed.
func TestMemoryFreedUnderReadsFailsThemAndNothingIsLost(t *testing.T) {
	b := newFaultBench(t, 0)
	a, peer := b.ends[0], b.ends[1]
	from := peer.target()
	for i := range benchDepth {
		a.recv(uint64(1000 + i))
	}
	held := a.dev.Attr().NotReadyWait
	if held {
		const half = benchDepth / 2
		a.send(hw.SendWR{ID: benchDepth - 1, Op: hw.OpSend, Flags: hw.WRSignaled})
		a.read(from, 0, half-2)
		a.send(hw.SendWR{ID: benchDepth - 2, Op: hw.OpSend, Flags: hw.WRSignaled})
		a.read(from, half-2, half)
		peer.recv(0)
	} else {
		a.read(from, 0, benchDepth)
	}
	a.until("a read", func() bool { return slices.ContainsFunc(a.wcs, func(wc hw.WC) bool { return wc.ID == 0 }) })
	began := time.Now()
	require.NoError(t, peer.regions[0].Deregister())
	assert.Less(t, time.Since(began), patience/2, "it waits for no peer")
	peer.regions = nil
	received := 0
	if held {
		peer.recv(1)
		received = 2
	}
	a.until("Down", func() bool { return a.down != hw.ReasonNone })
	peer.qp.Break(false)
	a.struck()
	peer.ended(0, received)
	peer.shut()
}

func TestCompletionQueueTooSmallIsReportedAndNothingIsLost(t *testing.T) {
	b := newFaultBench(t, 8)
	a, peer := b.ends[0], b.ends[1]
	for i := range benchDepth {
		a.recv(uint64(1000 + i))
		peer.recv(uint64(1000 + i))
	}
	for i := range benchDepth {
		wr := hw.SendWR{ID: uint64(i), Op: hw.OpSend, Flags: hw.WRSignaled}
		a.send(wr)
		peer.send(wr)
	}
	a.awaitAsync(hw.AsyncCQOverrun) // the test has not polled since the posts
	a.until("Down", func() bool { return a.down != hw.ReasonNone })
	for _, e := range b.ends {
		e.qp.Break(false)
		e.ended(benchDepth, benchDepth)
	}
	a.shut()
	peer.shut()
}
