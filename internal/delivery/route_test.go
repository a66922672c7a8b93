package delivery

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func newRoute(t testing.TB, d *Dispatcher, mask, value uint64, qlen int) *Route {
	t.Helper()
	r, err := d.Route(mask, value, qlen)
	require.NoError(t, err)
	return r
}

func TestRouteTakesTheCookiesItMatches(t *testing.T) {
	d := newDispatcher(t, Config{Way: Channel})
	assert.Same(t, d.Main(), d.For(7))
	high := newRoute(t, d, 0xff00, 0x1200, 4)
	all := newRoute(t, d, 0, 0, 4)
	assert.Same(t, &high.queue, d.For(0x1234))
	assert.Same(t, &high.queue, d.For(0xabcd1200))
	assert.Same(t, &all.queue, d.For(0x1334))
	put(t, d.For(0x1234), 0x1234)
	put(t, d.For(1), 1)
	assert.Equal(t, list(0x1234), received(high.C()))
	assert.Equal(t, list(1), received(all.C()))
	assert.Empty(t, received(d.C()))
}

func TestRouteReservesOnlyAtItself(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 1})
	r := newRoute(t, d, 1, 1, 3)
	require.True(t, d.For(1).Reserve(3+ofMany.slack()))
	assert.False(t, d.For(1).Reserve(1))
	assert.True(t, d.For(0).Reserve(1))
	assert.False(t, d.For(0).Reserve(1))
	r.queue.Release(3 + ofMany.slack())
	d.Main().Release(1)
}

// If no event that notifies follows, only Flush makes silent events visible.
func TestFlushShowsSilentEventsOfRoutesToo(t *testing.T) {
	for _, mode := range allModes {
		d := newDispatcher(t, Config{Way: mode})
		first, second := newRoute(t, d, 3, 1, 8), newRoute(t, d, 3, 2, 8)
		putSilent(t, d.For(1), 1, 5)
		putSilent(t, d.For(2), 2)
		require.Empty(t, received(first.C()), mode)
		d.Flush()
		assert.Equal(t, list(1, 5), received(first.C()), mode)
		assert.Equal(t, list(2), received(second.C()), mode)
	}
}

// While a route drains, posts with its cookies are refused, so their events don't
// go to two places.
func TestClosedRouteDrains(t *testing.T) {
	d := newDispatcher(t, Config{Way: Channel})
	r := newRoute(t, d, 1, 1, 4)
	q := d.For(1)
	require.True(t, q.Reserve(3))
	q.Put(silenced(dto(1))) // held
	r.Close()
	r.Close()
	assert.False(t, d.For(1).Reserve(1))
	assert.Same(t, q, d.For(1))
	assert.Equal(t, list(1), received(r.C()))
	assert.False(t, closed(r.C()))
	q.Put(silenced(dto(3)))
	assert.Equal(t, list(3), received(r.C()))
	assert.False(t, closed(r.C()))
	q.Release(1)
	assert.True(t, closed(r.C()))
	assert.Same(t, d.Main(), d.For(1), "the cookies are the dispatcher's again")
	r.Close()
}

func TestClosingTheDispatcherClosesItsRoutes(t *testing.T) {
	for _, mode := range allModes {
		d := newDispatcher(t, Config{Way: mode})
		idle, busy := newRoute(t, d, 1, 1, 4), newRoute(t, d, 3, 2, 4)
		require.True(t, busy.queue.Reserve(1))
		require.NoError(t, d.Close())
		assert.True(t, closed(idle.C()))
		assert.False(t, closed(busy.C()))
		busy.queue.Put(dto(2))
		assert.Equal(t, list(2), received(busy.C()))
		assert.True(t, closed(busy.C()))
	}
}

// routeWorld is a dispatcher and a plain list of its routes, in order of age.
type routeWorld struct {
	d      *Dispatcher
	routes []*routeModel
}

type routeModel struct {
	mask, value uint64
	r           *Route
	outstanding int
	closing     bool
}

func (w *routeWorld) pick(t *rapid.T) *routeModel {
	if len(w.routes) == 0 {
		return &routeModel{}
	}
	return rapid.SampledFrom(w.routes).Draw(t, "route")
}

// sweep forgets the routes that must have ended.
func (w *routeWorld) sweep() {
	w.routes = slices.DeleteFunc(w.routes, func(m *routeModel) bool { return m.closing && m.outstanding == 0 })
}

func (w *routeWorld) open(t *rapid.T) {
	mask := rapid.Uint64Range(0, 15).Draw(t, "mask")
	value := rapid.Uint64Range(0, 15).Draw(t, "value") & mask
	r, err := w.d.Route(mask, value, 4)
	require.NoError(t, err)
	w.routes = append(w.routes, &routeModel{mask: mask, value: value, r: r})
}

func (w *routeWorld) reserve(t *rapid.T) {
	m := w.pick(t)
	if m.r == nil || m.outstanding == 4 {
		return
	}
	require.Equal(t, !m.closing, m.r.queue.Reserve(1))
	if !m.closing {
		m.outstanding++
	}
}

func (w *routeWorld) complete(t *rapid.T) {
	m := w.pick(t)
	if m.outstanding == 0 {
		return
	}
	m.outstanding--
	if rapid.Bool().Draw(t, "put") {
		ev := dto(1)
		if rapid.Bool().Draw(t, "silent") {
			ev = silenced(ev)
		}
		m.r.queue.Put(ev)
		received(m.r.C())
	} else {
		m.r.queue.Release(1)
	}
	w.sweep()
}

func (w *routeWorld) close(t *rapid.T) {
	if m := w.pick(t); m.r != nil {
		m.r.Close()
		m.closing = true
		w.sweep()
	}
}

func (w *routeWorld) check(t *rapid.T) {
	for c := range uint64(16) {
		want := w.d.Main()
		for _, m := range w.routes {
			if c&m.mask == m.value {
				want = &m.r.queue
				break
			}
		}
		if w.d.For(c) != want {
			t.Fatalf("cookie %#x goes elsewhere", c)
		}
	}
}

func TestRoutesAgreeWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := makeDispatcher(Config{QLen: 4})
		defer d.Abort()
		w := &routeWorld{d: d}
		t.Repeat(map[string]func(*rapid.T){
			"open": w.open, "reserve": w.reserve, "complete": w.complete, "close": w.close, "": w.check,
		})
	})
}
