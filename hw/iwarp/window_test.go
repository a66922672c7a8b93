package iwarp

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func (n *node) window(qp hw.QP) hw.Window {
	n.tb.Helper()
	w, err := n.dev.(hw.Binder).NewWindow(n.zone, qp)
	require.NoError(n.tb, err)
	n.tb.Cleanup(func() { require.NoError(n.tb, w.Close()) })
	return w
}

func bindTo(w hw.Window, m *memory) hw.SendWR {
	return hw.SendWR{Op: hw.OpBind, Flags: hw.WRSignaled, Bind: &hw.Bind{
		Window: w, MR: m.MR, Addr: m.base, Len: uint64(len(m.buf)), Priv: hw.RemoteRead | hw.RemoteWrite, Key: w.NextKey(),
	}}
}

func TestNewWindowChecksItsArguments(t *testing.T) {
	p := New(Config{})
	a, b := newNode(t, p, nil), newNode(t, p, nil)
	qp := a.peer().qp
	_, err := b.dev.(hw.Binder).NewWindow(b.zone, qp)
	assert.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = b.dev.(hw.Binder).NewWindow(a.zone, nil)
	assert.ErrorIs(t, err, hw.ErrInvalidHandle)
	zone, err := a.dev.NewZone()
	require.NoError(t, err)
	_, err = a.dev.(hw.Binder).NewWindow(zone, qp)
	assert.ErrorIs(t, err, hw.ErrProtection)
	require.NoError(t, zone.Close())
}

// connections are the connections of peers.
func connections(peers ...*peer) (all []*connection) {
	for _, p := range peers {
		all = append(all, p.qp.(*queuePair).conn)
	}
	return all
}

// takeToken takes a connection's token as soon as the token is free.
func (c *connection) takeToken() {
	for {
		if _, ok := c.token.TryTake(); ok {
			c.send.present.Enter()
			return
		}
		runtime.Gosched()
	}
}

// The poster of a bind does not wait: the writer does, in its place.
func TestABindWaitsForTheUsersOfItsOldKey(t *testing.T) {
	p := New(Config{})
	na, nb := newNode(t, p, nil), newNode(t, p, nil)
	a, b, c, d := na.peer(), nb.peer(), na.peer(), nb.peer()
	join(a, b)
	join(c, d)
	m, w := nb.memory(64, hw.LocalRead|hw.LocalWrite), nb.window(nil)
	b.post(bindTo(w, m))
	assert.Equal(t, hw.WC{Op: hw.OpBind}, b.sent(0))

	other := connections(d)[0] // as if it were answering a read of the window
	other.takeToken()
	again := bindTo(w, m)
	b.post(again)
	b.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled}) // behind it
	old := nb.dev.(*device).Keys.Lookup(again.Bind.Key)
	assert.Zero(t, old.Size, "the new key is good for nothing yet")
	b.mu.Lock()
	assert.Len(t, b.sends, 1)
	b.mu.Unlock()
	other.run(byPoster)
	assert.Equal(t, hw.WC{Op: hw.OpBind}, b.sent(1))
	assert.Equal(t, hw.StatusSuccess, b.sent(2).Status)
}

func TestTwoBindsDoNotWaitForEachOther(t *testing.T) {
	p := New(Config{})
	na, nb := newNode(t, p, nil), newNode(t, p, nil)
	a, b, c, d := na.peer(), nb.peer(), na.peer(), nb.peer()
	join(a, b)
	join(c, d)
	for range 100 {
		var wg sync.WaitGroup
		two := connections(b, d)
		for _, l := range two {
			l.takeToken()
			l.send.mayBlock = true
			l.token.Token.Leave() // held, and not parked
		}
		for _, l := range two {
			wg.Go(func() {
				l.token.Token.Resume()
				assert.True(t, l.send.awaitUsers())
				l.run(byPoster)
			})
		}
		wg.Wait()
	}
}

// A bind that was executed, and has not completed when the connection breaks, is reverted
// and flushed.
func TestAFlushedBindBindsNothing(t *testing.T) {
	const n, size = 1000, 16 << 10 // the socket has room for some of them, and the outbox for a few more
	node := newNode(t, New(Config{}), noCRC)
	a, big := node.peer(func(c *hw.QPConfig) { c.SendDepth = 2 * n }), node.memory(size, hw.LocalRead)
	scripted(t, a)
	var regions [n]*memory
	var windows [n]hw.Window
	for i := range n {
		regions[i], windows[i] = node.memory(64, hw.LocalRead), node.window(nil)
	}
	for i := range n {
		bind := bindTo(windows[i], regions[i])
		bind.Bind.Priv = hw.RemoteRead
		a.post(hw.SendWR{Op: hw.OpWrite, SGL: []hw.SGE{big.sge(0, size)}}, bind)
	}
	tx := connections(a)[0]
	tx.takeToken()
	done := tx.send.next - tx.send.head
	tx.run(byPoster)
	require.Greater(t, done, uint64(1), "a bind is done and not reported")
	a.end(true)
	bound, binds, keys := 0, 0, node.dev.(*device).Keys.Len()
	for _, wc := range a.sends {
		if wc.Op == hw.OpBind {
			binds++
			if wc.Status == hw.StatusSuccess {
				bound++
			}
		}
	}
	assert.Equal(t, n, binds)
	for i := range n {
		if i >= bound {
			assert.NoError(t, regions[i].Deregister(), "%d of %d", i, bound)
			keys--
		} else {
			assert.ErrorIs(t, regions[i].Deregister(), &hw.Error{Type: hw.InvalidState, Sub: hw.StateLMRInUse})
		}
	}
	assert.Equal(t, keys, node.dev.(*device).Keys.Len(), "a flushed bind keeps no key")
}
