package loop

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw"
	"godat/internal/token"
)

// Uneven segments on both sides, of sends, writes and reads: every byte lands
// where it must and no other changes.
func TestUnevenSegmentsPutEachByteInItsPlace(t *testing.T) {
	a, b := pair(t, nil)
	fill := rand.NewChaCha8([32]byte{1})
	rapid.Check(t, func(t *rapid.T) {
		fill.Read(a.mem[:4096])
		fill.Read(b.mem[:4096])
		wantA, wantB := slices.Clone(a.mem[:4096]), slices.Clone(b.mem[:4096])
		op := rapid.SampledFrom([]hw.Op{hw.OpSend, hw.OpWrite, hw.OpRead}).Draw(t, "op")
		local, nLocal := drawSegments(t, a, "local")
		remote, nRemote := drawSegments(t, b, "remote")
		w := hw.SendWR{ID: 1, Op: op, Flags: hw.WRSignaled, SGL: sgl(a, local)}
		switch op {
		case hw.OpSend:
			if nRemote < nLocal { // a receive that is long enough
				remote = append(remote, extent{nRemote, nLocal - nRemote})
			}
			b.recv(1, sgl(b, remote)...)
			model(wantB, remote, wantA, local, nLocal)
		case hw.OpWrite:
			remote = []extent{{rapid.IntRange(0, 4096-nLocal).Draw(t, "at"), nLocal}}
			model(wantB, remote, wantA, local, nLocal)
		case hw.OpRead:
			remote = []extent{{rapid.IntRange(0, 4096-nLocal).Draw(t, "at"), nLocal}}
			model(wantA, local, wantB, remote, nLocal)
		}
		if op != hw.OpSend {
			w.RKey, w.RemoteAddr = b.mr.RKey(), b.addr(remote[0].off)
		}
		a.post(w)
		require.Equal(t, []hw.WC{{ID: 1, Len: uint32(nLocal), Op: op}}, a.sends.all())
		if op == hw.OpSend {
			require.Equal(t, []hw.WC{{ID: 1, Len: uint32(nLocal), Op: hw.OpRecv}}, b.recvs.all())
		}
		require.True(t, bytes.Equal(wantA, a.mem[:4096]))
		require.True(t, bytes.Equal(wantB, b.mem[:4096]))
		a.sends.forget()
		b.recvs.forget()
	})
}

// extent is part of a side's memory.
type extent struct{ off, n int }

// drawSegments draws segments that do not overlap, some of them empty.
func drawSegments(t *rapid.T, s *side, label string) (segments []extent, n int) {
	size := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 300))
	for _, n := range rapid.SliceOfN(size, 0, 7).Draw(t, label) {
		segments = append(segments, extent{n: n})
	}
	off := 0
	for _, i := range rapid.Permutation(indexes(len(segments))).Draw(t, label+" order") {
		off += rapid.IntRange(0, 20).Draw(t, "gap")
		segments[i].off = off
		off += segments[i].n
		n += segments[i].n
	}
	return segments, n
}

func indexes(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// sgl makes segments of the extents; empty extents become segments with garbage
// addresses.
func sgl(s *side, segments []extent) (list []hw.SGE) {
	for _, e := range segments {
		sge := s.sge(e.off, e.n)
		if e.n == 0 {
			sge = hw.SGE{Addr: 5, LKey: 7}
		}
		list = append(list, sge)
	}
	return list
}

// model is the expected result: it copies n bytes from one list of extents to another,
// and reads all before it writes any.
func model(dst []byte, to []extent, src []byte, from []extent, n int) {
	var flat []byte
	for _, e := range from {
		flat = append(flat, src[e.off:e.off+e.n]...)
	}
	for _, e := range to {
		k := copy(dst[e.off:e.off+e.n], flat[:n])
		flat, n = flat[k:], n-k
	}
}

// longPair is a pair whose sides have 16 MiB more each.
func longPair(t *testing.T) (a, b *side, x, y *area) {
	a, b = pair(t, nil)
	return a, b, newArea(t, a), newArea(t, b)
}

type area struct {
	mem []byte
	mr  hw.MR
}

const areaLen = 16 << 20

func newArea(t *testing.T, s *side) *area {
	x := &area{mem: make([]byte, areaLen)}
	var err error
	x.mr, err = s.dev.Register(s.zone, x.mem, all)
	require.NoError(t, err)
	t.Cleanup(func() { x.mr.Deregister() }) //nolint:errcheck // a test may have done it
	return x
}

func (x *area) sge(s *side, off, n int) hw.SGE {
	return hw.SGE{Addr: s.dev.(*device).Keys.Lookup(x.mr.LKey()).Addr + uint64(off), Len: uint32(n), LKey: x.mr.LKey()}
}

func TestALongMessageArrivesWhole(t *testing.T) {
	for _, op := range []hw.Op{hw.OpSend, hw.OpWrite, hw.OpRead, hw.OpWriteImm} {
		t.Run(op.String(), func(t *testing.T) {
			a, b, x, y := longPair(t)
			const n = 3<<20 + 12345
			src, dst := x.mem, y.mem
			if op == hw.OpRead {
				src, dst = dst, src
			}
			rand.NewChaCha8([32]byte{2}).Read(src)
			b.recv(5, y.sge(b, 1, 300001), y.sge(b, 1<<20, n))
			a.post(
				hw.SendWR{
					ID: 1, Op: op, Flags: hw.WRSignaled,
					SGL:  []hw.SGE{x.sge(a, 3, 700), x.sge(a, 4096, n-700)},
					RKey: y.mr.RKey(), RemoteAddr: y.sge(b, 1000, 0).Addr,
				},
				hw.SendWR{ID: 2, Op: hw.OpWrite, Flags: hw.WRSignaled},
			)
			wcs := a.sends.wait(2)
			assert.Equal(t, []hw.WC{{ID: 1, Op: op, Len: n}, {ID: 2, Op: hw.OpWrite}}, wcs)
			local := []extent{{3, 700}, {4096, n - 700}}
			want := make([]byte, areaLen)
			switch op {
			case hw.OpSend:
				model(want, []extent{{1, 300001}, {1 << 20, n - 300001}}, src, local, n)
				assert.EqualValues(t, n, b.recvs.all()[0].Len)
			case hw.OpRead:
				model(want, local, src, []extent{{1000, n}}, n)
			default:
				model(want, []extent{{1000, n}}, src, local, n)
			}
			assert.True(t, bytes.Equal(want, dst))
		})
	}
}

// spinUntil waits without sleeping.
func spinUntil(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		require.True(t, time.Now().Before(end))
	}
}

// A copy that is in progress when the connection breaks ends with its chunk.
func TestABreakEndsALongCopy(t *testing.T) {
	for attempt, caught := 0, 0; caught < 5; attempt++ {
		require.Less(t, attempt, 200, "never in time")
		a, b, x, y := longPair(t)
		b.recv(1, y.sge(b, 0, areaLen))
		p := a.qp.(*queuePair).out.Load()
		start := accesses(p)
		a.post(hw.SendWR{
			ID: 1, Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{x.sge(a, 0, areaLen)},
			RKey: y.mr.RKey(), RemoteAddr: y.sge(b, 0, 0).Addr,
		})
		spinUntil(t, func() bool { return accesses(p) > start })
		b.qp.Break(true)
		if accesses(p) > start+areaLen/maxChunk/2 {
			continue // too late to tell
		}
		caught++
		assert.Equal(t, hw.StatusFlushed, a.sends.wait(1)[0].Status)
		require.Eventually(t, func() bool { return a.facts.isDown() == hw.ReasonPeer }, time.Minute, time.Millisecond)
		require.Eventually(t, b.recvs.ended, time.Minute, time.Millisecond)
		assert.Equal(t, append(flushed(hw.OpRecv, 1), endOf(recvEnd)), b.recvs.all())
	}
}

// The workers are kept from working meanwhile, so that what is handed over stays so.
func TestACallCopiesUpToTheHandoverByItself(t *testing.T) {
	for params, limit := range map[string]int{"": maxChunk, "65536": 65536, "1": 1, "0": 0} {
		set := map[string]string{"handover": params}
		if params == "" {
			set = nil
		}
		for _, op := range []hw.Op{hw.OpWrite, hw.OpRead, hw.OpSend} {
			t.Run(op.String()+" of a device with handover="+params, func(t *testing.T) {
				dev := openWith(t, uniqueName(), set)
				a, b := newSide(t, dev, nil), newSide(t, dev, nil)
				connect(t, a, b)
				x, y := newArea(t, a), newArea(t, b)
				p, workers := a.qp.(*queuePair).out.Load(), dev.(*device).workers
				workers.Lock()
				unlock := sync.OnceFunc(workers.Unlock)
				defer unlock()
				post := func(n int) {
					sge := x.sge(a, 0, n)
					b.recv(1, y.sge(b, 0, n))
					rkey, addr := y.mr.RKey(), y.sge(b, 0, 0).Addr
					if n == 0 || a.qp.(hw.Runner).PostRun(op, hw.WRSignaled, 1, &sge, 0, 1, rkey, addr) == 0 {
						a.post(hw.SendWR{ID: 1, Op: op, Flags: hw.WRSignaled, SGL: []hw.SGE{sge}, RKey: rkey, RemoteAddr: addr})
					}
				}
				post(limit)
				assert.Len(t, a.sends.all(), 1, "the call has copied %d bytes", limit)
				done := make(chan struct{})
				go func() {
					defer close(done)
					post(limit + 1)
				}()
				spinUntil(t, func() bool { return p.token.Load()&token.Parked != 0 || len(a.sends.all()) > 1 })
				assert.Len(t, a.sends.all(), 1, "the call has not copied %d bytes", limit+1)
				unlock()
				<-done
				a.sends.wait(2)
			})
		}
	}
}

func TestALongBatchIsHandedOverAndKeepsItsOrder(t *testing.T) {
	a, b := pair(t, nil)
	var wrs []hw.SendWR
	var ids []uint64
	for id := range uint64(64) {
		w := wr(hw.OpWrite, a, 0, handover/4, b.mr.RKey(), b.addr(0))
		w.ID = id
		wrs = append(wrs, w)
		ids = append(ids, id)
	}
	a.post(wrs...)
	got := make([]uint64, 0, 64)
	for _, wc := range a.sends.wait(64) {
		require.Equal(t, hw.StatusSuccess, wc.Status)
		got = append(got, wc.ID)
	}
	assert.Equal(t, ids, got)
}

// One receive sets a long queue of sends free: its poster executes only a part of them.
func TestAReceiveUnblocksALongQueue(t *testing.T) {
	a, b := pair(t, func(cfg *hw.QPConfig) { cfg.SendDepth = 1000 })
	a.post(send(0))
	for id := uint64(1); id < 1000; id++ {
		a.post(hw.SendWR{ID: id, Op: hw.OpWrite, Flags: hw.WRSignaled})
	}
	assert.Empty(t, a.sends.all())
	b.recv(1)
	a.sends.wait(1000)
}

func TestPipesTakeTurnsAtTheWorkers(t *testing.T) {
	dev := open(t, uniqueName())
	var all []*side
	for range 3 * runtime.GOMAXPROCS(0) {
		a, b := newSide(t, dev, nil), newSide(t, dev, nil)
		connect(t, a, b)
		all = append(all, a)
		for range 20 {
			a.post(wr(hw.OpWrite, a, 0, memLen, b.mr.RKey(), b.addr(0)))
		}
	}
	for _, a := range all {
		a.sends.wait(20)
	}
}
