package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/sim"
)

// DAT's overflow, on a dispatcher that asks for it: an event that finds no room is
// lost, and the asynchronous dispatcher gets an event that names the dispatcher.
func TestAnOvercommittedDispatcherOverflows(t *testing.T) {
	for name, opts := range map[string][]Option{
		"loop": nil,
		"sim":  {WithProvider(sim.New(sim.Config{}))},
	} {
		t.Run(name, func(t *testing.T) {
			ia := open(t, name, opts...)
			p := connect(t, ia, channel(64))
			p.establish(t)
			d, err := ia.NewDispatcher(evd.Config{QLen: 2, Overcommit: true})
			require.NoError(t, err)
			e, err := ia.NewEndpoint(ep.Config{PZ: p.pz, Recv: d, Conn: p.events})
			require.NoError(t, err)
			for i := range uint64(5) {
				require.NoError(t, e.PostRecv(i, hw.Default, p.mem.Segment(0, 8)), "there is no room, and it is taken")
			}
			require.NoError(t, e.Close()) // flushes all five
			ev, nmore, err := ia.Async().Wait(t.Context(), 1)
			require.NoError(t, err)
			assert.Zero(t, nmore)
			source, why, ok := ev.Async()
			assert.True(t, ok)
			assert.EqualValues(t, 0x08001, ev.Number)
			assert.Same(t, d, source)
			assert.Equal(t, event.EVDOverflow, why)
			for i := range uint64(2) {
				ev, _, err := d.Wait(t.Context(), 1)
				require.NoError(t, err)
				assert.Equal(t, i, ev.Cookie)
			}
			n, err := d.Dequeue(make([]event.Event, 1))
			require.NoError(t, err)
			assert.Zero(t, n)
		})
	}
}

// Requests do not overflow an over-committed dispatcher: they have places of their own,
// as many as the backlog.
func TestAnOvercommittedServicePointRefuses(t *testing.T) {
	ia := open(t, "loop")
	requests, err := ia.NewDispatcher(evd.Config{QLen: 1, Overcommit: true})
	require.NoError(t, err)
	psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: requests, Backlog: 1})
	require.NoError(t, err)
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	conn, err := ia.NewDispatcher(evd.Config{QLen: 8})
	require.NoError(t, err)
	for range 2 {
		e, err := ia.NewEndpoint(ep.Config{PZ: pz, Conn: conn})
		require.NoError(t, err)
		require.NoError(t, e.Connect(ep.ConnectConfig{Qual: psp.Qual()}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ev, _, err := conn.Wait(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, event.NonPeerRejected, ev.Number)
	n, err := ia.Async().Dequeue(make([]event.Event, 1))
	require.NoError(t, err)
	assert.Zero(t, n)
	ev, _, err = requests.Wait(ctx, 1)
	require.NoError(t, err)
	assert.NotNil(t, ep.RequestOf(ev))
}

// The dispatcher that Config.Async names must be able to take the report of an overflow, and stays as
// long as one may come.
func TestADispatcherForOverflowsIsCheckedAndStays(t *testing.T) {
	onTwo(t, func(t *testing.T, other, ia *IA) {
		dispatcher := func(of *IA, streams event.Streams) *evd.Dispatcher {
			d, err := of.NewDispatcher(evd.Config{QLen: 4, Streams: streams})
			require.NoError(t, err)
			return d
		}
		closed := dispatcher(ia, event.StreamAsync)
		require.NoError(t, closed.Close())
		for _, overcommit := range []bool{true, false} {
			for name, tc := range map[string]struct {
				async *evd.Dispatcher
				typ   hw.Type
				sub   hw.Subtype
			}{
				"closed":            {closed, hw.InvalidHandle, hw.HandleEVDAsync},
				"another adapter's": {dispatcher(other, event.StreamAsync), hw.InvalidHandle, hw.HandleEVDAsync},
				"of other streams":  {dispatcher(ia, event.StreamDTO), hw.InvalidParameter, hw.NoSubtype},
			} {
				_, err := ia.NewDispatcher(evd.Config{QLen: 1, Overcommit: overcommit, Async: tc.async})
				requireCode(t, err, tc.typ, tc.sub)
				assert.ErrorContains(t, err, "evd.Config.Async", name)
			}
		}

		async := dispatcher(ia, event.StreamAsync)
		plain, err := ia.NewDispatcher(evd.Config{QLen: 1, Async: async})
		require.NoError(t, err)
		_, err = ia.NewDispatcher(evd.Config{QLen: 1, Overcommit: true, Async: async, CNO: new(evd.CNO)})
		requireCode(t, err, hw.InvalidHandle, hw.HandleCNO)
		require.NoError(t, async.Close(), "it has no overflows to take")
		require.NoError(t, plain.Close())

		async = dispatcher(ia, event.StreamAsync)
		var made []*evd.Dispatcher
		for range 2 {
			d, err := ia.NewDispatcher(evd.Config{QLen: 1, Overcommit: true, Async: async})
			require.NoError(t, err)
			made = append(made, d)
		}
		for _, d := range made {
			requireCode(t, async.Close(), hw.InvalidState, hw.StateEVDInUse)
			require.NoError(t, d.Close())
			require.NoError(t, d.Close(), "again")
		}
		require.NoError(t, async.Close())
		for range 2 { // closes with the adapter, in whatever order
			async = dispatcher(ia, event.StreamAsync)
			_, err = ia.NewDispatcher(evd.Config{QLen: 1, Overcommit: true, Async: async})
			require.NoError(t, err)
		}
		_, err = ia.NewDispatcher(evd.Config{QLen: 1, Overcommit: true})
		require.NoError(t, err)
		require.NoError(t, ia.Close())
	})
}

// A dispatcher of another adapter's serves one that was opened with it.
func TestTheAdaptersOwnDispatcherForErrorsTakesOverflows(t *testing.T) {
	shared := open(t, "loop").Async()
	ia := open(t, "loop", WithAsync(shared))
	for _, async := range []*evd.Dispatcher{nil, shared} {
		d, err := ia.NewDispatcher(evd.Config{QLen: 1, Overcommit: true, Async: async})
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
	require.NoError(t, ia.Close())
}
