package loop

import (
	"bytes"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/internal/soft"
)

func newWindow(t testing.TB, s *side, qp hw.QP) *soft.Window {
	w, err := s.dev.(*device).NewWindow(s.zone, qp)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() }) //nolint:errcheck // a test may have done it
	return w.(*soft.Window)
}

// bindTo binds a window to n bytes of the side's own memory.
func bindTo(w *soft.Window, s *side, off, n int) hw.SendWR {
	return hw.SendWR{ID: 1, Op: hw.OpBind, Flags: hw.WRSignaled, Bind: &hw.Bind{
		Window: w, MR: s.mr, Addr: s.addr(off), Len: uint64(n), Priv: hw.RemoteRead | hw.RemoteWrite, Key: w.NextKey(),
	}}
}

func unbind(w *soft.Window) hw.SendWR {
	return hw.SendWR{ID: 2, Op: hw.OpBind, Flags: hw.WRSignaled, Bind: &hw.Bind{Window: w}}
}

func TestABindThatIsShortIsDoneWhenPostSendReturns(t *testing.T) {
	a, b := pair(t, nil)
	w := newWindow(t, b, b.qp)
	bind := bindTo(w, b, 8, 8)
	b.post(bind, unbind(w))
	assert.Equal(t, []hw.WC{{ID: 1, Op: hw.OpBind}, {ID: 2, Op: hw.OpBind}}, b.sends.all())
	a.post(wr(hw.OpWrite, a, 0, 8, bind.Bind.Key, b.addr(8)))
	assert.Equal(t, hw.StatusRemoteAccess, a.sends.all()[0].Status)
}

func TestNewWindowChecksItsArguments(t *testing.T) {
	dev, other := open(t, uniqueName()), open(t, uniqueName())
	a, b, far := newSide(t, dev, nil), newSide(t, dev, nil), newSide(t, other, nil)
	d := dev.(*device)
	_, err := d.NewWindow(far.zone, nil)
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = d.NewWindow(a.zone, far.qp)
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = d.NewWindow(a.zone, b.qp)
	require.ErrorIs(t, err, hw.ErrProtection)
	w := newWindow(t, a, a.qp)
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Close(), hw.ErrInvalidHandle)
	assert.Zero(t, w.NextKey())
}

// No key stays in the table, whatever the outcome of the bind that was to use it.
func TestWindowsLeaveNoKeysBehind(t *testing.T) {
	a, b := pair(t, nil)
	keys := &b.dev.(*device).Keys
	before := keys.Len()
	w, v := newWindow(t, b, nil), newWindow(t, b, b.qp)
	b.post(bindTo(w, b, 0, 8), bindTo(v, b, 0, 8))
	b.post(bindTo(w, b, 0, 8)) // binds it again
	w.NextKey()
	b.post(send(3)) // waits, and so does what follows
	b.post(bindTo(w, b, 0, 8), bindTo(v, b, 8, 8))
	b.post(bindTo(w, b, 0, 8))
	a.qp.Break(false)
	assert.Equal(t, hw.StatusFlushed, b.sends.all()[6].Status)
	assert.Equal(t, before+2, keys.Len(), "what they were bound under")
	require.NoError(t, w.Close())
	require.NoError(t, v.Close())
	assert.Equal(t, before, keys.Len())
}

// inTheMiddle writes the whole area through a window, and calls f while the write is in
// progress. It reports whether f came in time.
func inTheMiddle(t *testing.T, f func(b *side, w *soft.Window)) bool {
	a, b, x, y := longPair(t)
	w := newWindow(t, b, nil)
	bind := bindTo(w, b, 0, 0)
	bind.Bind.MR, bind.Bind.Addr, bind.Bind.Len = y.mr, y.sge(b, 0, 0).Addr, areaLen
	b.post(bind)
	p := a.qp.(*queuePair).out.Load()
	start := accesses(p)
	a.post(hw.SendWR{
		ID: 1, Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{x.sge(a, 0, areaLen)},
		RKey: bind.Bind.Key, RemoteAddr: bind.Bind.Addr,
	})
	spinUntil(t, func() bool { return accesses(p) > start }) // a chunk is moved
	f(b, w)
	fill := bytes.Repeat([]byte{0x55}, areaLen)
	copy(y.mem, fill)
	status := a.sends.wait(1)[0].Status
	require.True(t, bytes.Equal(fill, y.mem))
	if status == hw.StatusSuccess {
		return false
	}
	assert.Equal(t, hw.StatusRemoteAccess, status)
	return true
}

// When an unbind has completed, not a byte changes any more, as with Deregister.
func TestAnUnbindEndsALongCopy(t *testing.T) {
	// At least two workers: one copies, one unbinds.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	for name, f := range map[string]func(b *side, w *soft.Window){
		"unbind": func(b *side, w *soft.Window) { b.post(unbind(w)); b.sends.wait(2) },
		"bind again": func(b *side, w *soft.Window) {
			b.post(bindTo(w, b, 0, 8))
			b.sends.wait(2)
		},
		"close": func(b *side, w *soft.Window) { require.NoError(b.t, w.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			for attempt := 0; !inTheMiddle(t, f); attempt++ {
				require.Less(t, attempt, 50, "never in time")
			}
		})
	}
}

// inZoneOf makes a side's queue pair one of the other's zone.
func inZoneOf(other *side) func(*hw.QPConfig) {
	return func(cfg *hw.QPConfig) { cfg.Zone = other.zone }
}

// The poster of a bind does not wait for accesses through the old key: a worker does.
func TestABindWaitsForTheUsersOfItsOldKey(t *testing.T) {
	dev := open(t, uniqueName())
	a, b := newSide(t, dev, nil), newSide(t, dev, nil)
	c, d := newSide(t, dev, nil), newSide(t, dev, inZoneOf(b))
	connect(t, a, b)
	connect(t, c, d)
	w, own := newWindow(t, b, nil), newWindow(t, b, b.qp)
	b.post(bindTo(w, b, 0, 8), bindTo(own, b, 0, 8))
	b.sends.forget()

	other := hold(t, c)
	b.post(bindTo(own, b, 0, 8))
	b.sends.wait(1) // no other pipe leads to b
	b.post(bindTo(w, b, 0, 8))
	b.post(bindTo(w, b, 0, 8)) // behind it
	assert.Len(t, b.sends.all(), 1, "it may be in use by the one that is held")
	other.run()
	b.sends.wait(3)
	for _, wc := range b.sends.all() {
		assert.Equal(t, hw.StatusSuccess, wc.Status)
	}
}

// A send that invalidates waits likewise, and invalidates once.
func TestAnInvalidationWaitsForTheUsersOfTheKey(t *testing.T) {
	dev := open(t, uniqueName())
	a, b := newSide(t, dev, nil), newSide(t, dev, nil)
	c, d := newSide(t, dev, nil), newSide(t, dev, inZoneOf(b))
	connect(t, a, b)
	connect(t, c, d)
	w := newWindow(t, b, nil)
	bind := bindTo(w, b, 0, 8)
	b.post(bind)
	b.recv(1)
	b.recv(2)

	other := hold(t, c)
	a.post(hw.SendWR{ID: 1, Op: hw.OpSendInvalidate, Flags: hw.WRSignaled, Imm: bind.Bind.Key})
	a.post(send(2))
	assert.Empty(t, b.recvs.all())
	other.run()
	assert.Equal(t, []hw.WC{
		{ID: 1, Imm: bind.Bind.Key, Op: hw.OpRecvInvalidate, Flags: hw.WCInvalidated}, {ID: 2, Op: hw.OpRecv},
	}, b.recvs.wait(2))
	assert.Equal(t, []hw.WC{{ID: 1, Op: hw.OpSend}, {ID: 2, Op: hw.OpSend}}, a.sends.wait(2))
}

// Each of two workers that wait for the other's pipe steps, because it touches no
// memory.
func TestTwoWorkersThatQuiesceDoNotWaitForEachOther(t *testing.T) {
	dev := open(t, uniqueName())
	a, b := newSide(t, dev, nil), newSide(t, dev, nil)
	c, d := newSide(t, dev, nil), newSide(t, dev, inZoneOf(b))
	connect(t, a, b)
	connect(t, c, d)
	for range 100 {
		one, two := hold(t, a), hold(t, c)
		var wg sync.WaitGroup
		for i, p := range []*pipe{one, two} {
			p.exec.byWorker = true // as a worker
			p.token.Token.Leave()  // held, and not parked
			wg.Go(func() {
				p.token.Token.Resume()
				defer p.token.Token.Leave()
				assert.True(t, p.exec.quiesce([]*side{b, d}[i].qp.(*queuePair), false))
				p.token.Step() // it goes on
			})
		}
		wg.Wait()
		for _, p := range []*pipe{one, two} {
			p.token.Token.Resume()
			p.exec.byWorker = false
			p.run()
		}
	}
}

// The owner may use the bind's argument again when PostSend returns, as it may the array.
func TestABindThatWaitsKeepsItsArgument(t *testing.T) {
	a, b := pair(t, nil)
	w := newWindow(t, b, nil)
	b.post(send(1)) // waits
	bind := bindTo(w, b, 0, 8)
	key := bind.Bind.Key
	b.post(bind)
	assert.NotEqual(t, key, w.NextKey(), "the post has spent it")
	*bind.Bind = hw.Bind{}
	a.recv(1)
	assert.Equal(t, hw.StatusSuccess, b.sends.all()[1].Status)
	a.post(wr(hw.OpWrite, a, 0, 8, key, b.addr(0)))
	assert.Equal(t, hw.StatusSuccess, a.sends.all()[0].Status)
}

// A queue pair's own window stays bound in the queue pair's next life, for the next peer.
func TestAQueuePairsWindowOutlivesItsConnection(t *testing.T) {
	dev := open(t, uniqueName())
	a, b, c := newSide(t, dev, nil), newSide(t, dev, nil), newSide(t, dev, nil)
	connect(t, a, b)
	w := newWindow(t, b, b.qp)
	bind := bindTo(w, b, 0, 8)
	b.post(bind)
	for _, s := range []*side{a, b} {
		s.qp.Break(true)
	}
	b.reset()
	connect(t, c, b)
	c.post(wr(hw.OpWrite, c, 0, 8, bind.Bind.Key, b.addr(0)))
	assert.Equal(t, hw.StatusSuccess, c.sends.all()[0].Status)
}
