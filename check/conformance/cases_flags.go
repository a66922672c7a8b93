package conformance

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// flagTable says which flags each operation takes: y, -, or attr where the
// endpoint's attribute must grant it.
const flagTable = `
                 SUPPRESS SOLICITED UNSIGNALLED FENCE THRESHOLD INVALIDATE
post_recv        -        -         attr        -     -         -
post_send        y        y         attr        y     -         -
send_invalidate  y        y         attr        y     -         -
post_rdma_read   y        -         attr        y     -         -
read_to_rmr      y        -         attr        y     -         -
post_rdma_write  y        -         attr        y     -         -
write_immed      y        y         attr        y     -         -
cmp_and_swap     y        -         attr        y     -         -
fetch_and_add    y        -         attr        y     -         -
rmr_bind         y        -         attr        y     -         -
rmr_unbind       y        -         attr        y     -         -
`

// flagBits are the flags' numbers.
var flagBits = map[string]hw.Flags{
	"SUPPRESS": 0x01, "SOLICITED": 0x02, "UNSIGNALLED": 0x04, "FENCE": 0x08, "THRESHOLD": 0x10, "INVALIDATE": 0x20,
}

var flagCases = []Case{
	// FL-1 posts in DISCONNECTED, where everything that is accepted is flushed. All
	// states that accept an operation check its flags in the same way.
	{ID: "FL-1", Claim: "each operation takes the flags of its row, in every combination, and no others", run: func(r *rig) {
		lines := strings.Split(strings.TrimSpace(flagTable), "\n")
		columns := strings.Fields(lines[0])
		for _, granted := range []hw.Flags{0, hw.Unsignalled} {
			client, _ := r.pair(attr(func(a *ep.Attr) {
				a.RecvFlags, a.RequestFlags, a.MaxRecvDTOs, a.MaxRequestDTOs = granted, granted, 64, 64
			}))
			client.disconnect(ep.Abrupt)
			for _, line := range lines[1:] {
				f := strings.Fields(line)
				err := client.post(f[0], 1, 0)
				if client.lacks(f[0]) {
					require.False(r, r.granted(err))
					continue
				}
				require.NoError(r, err)
				client.flushed(1)
				var legal hw.Flags
				for i, c := range columns {
					if f[1+i] == "y" || f[1+i] == "attr" && granted&flagBits[c] != 0 {
						legal |= flagBits[c]
					}
				}
				for flags := range hw.Flags(0x80) {
					err := client.post(f[0], 1, flags)
					if flags&^legal != 0 {
						require.ErrorIs(r, err, hw.ErrInvalidParameter, "%s with %#x", f[0], flags)
						continue
					}
					require.NoError(r, err, "%s with %#x", f[0], flags)
					client.flushed(1)
				}
				client.flushed(0)
			}
		}
	}},
	{ID: "FL-2", Claim: "SUPPRESS hides a success and shows a flush", run: func(r *rig) {
		client, server := r.pair()
		server.postRecv(1, 64)
		server.postRecv(2, 64)
		require.NoError(r, client.ep.PostSend(3, hw.Suppress, client.mem.Segment(0, 64)))
		client.sends(4, 64)
		r.none(client.req)
		server.done(server.recv, 1, hw.StatusSuccess)
		server.done(server.recv, 2, hw.StatusSuccess)
		client.disconnect(ep.Abrupt)
		require.NoError(r, client.ep.PostSend(5, hw.Suppress, client.mem.Segment(0, 64)))
		client.done(client.req, 5, hw.StatusFlushed)
	}},
	{ID: "FL-3", Claim: "suppressed requests alone never run out of room", run: func(r *rig) {
		const depth = 8
		client, server := r.pair(attr(func(a *ep.Attr) { a.MaxRequestDTOs, a.MaxRecvDTOs = depth, depth }))
		for i := range 6 * depth {
			require.NoError(r, server.ep.PostRecv(uint64(i), 0, server.mem.Segment(0, 64)))
			r.until("room for a suppressed send", func() bool {
				err := client.ep.PostSend(uint64(i), hw.Suppress, client.mem.Segment(0, 64))
				if err != nil {
					require.ErrorIs(r, err, hw.ErrInsufficientResources)
				}
				return err == nil
			})
			server.done(server.recv, uint64(i), hw.StatusSuccess)
		}
		r.none(client.req)
	}},
	{ID: "FL-4", Claim: "an UNSIGNALLED completion doesn't wake a waiter, which then finds it first", run: func(r *rig) {
		client, server := r.pair(attr(func(a *ep.Attr) { a.RequestFlags = hw.Unsignalled }))
		server.receives(2)
		woken := r.asleep(client.req)
		require.NoError(r, client.ep.PostSend(7, hw.Unsignalled, client.mem.Segment(0, 64)))
		server.done(server.recv, 0, hw.StatusSuccess)
		r.still(woken, "an unsignalled completion woke the waiter")
		client.postSend(8, 64)
		w := <-woken
		require.NoError(r, w.err)
		assert.EqualValues(r, 7, w.ev.Cookie)
		assert.Equal(r, 1, w.nmore)
		client.done(client.req, 8, hw.StatusSuccess)
	}},
	{ID: "FL-6", Claim: "a receive wakes a waiter of solicited ones if its send asked for it", run: func(r *rig) {
		client, server := r.pair(attr(func(a *ep.Attr) { a.RecvFlags = hw.SolicitedWait }))
		server.receives(3)
		woken := r.asleep(server.recv)
		client.sends(7, 64)
		early := r.differs(WakesForAll)
		var w waited
		switch {
		case early:
			w = <-woken
		case !r.differs(MayWakeForAll):
			r.still(woken, "an unsolicited receive woke the waiter")
		}
		require.NoError(r, client.ep.PostSend(8, hw.SolicitedWait, client.mem.Segment(0, 64)))
		if !early {
			w = <-woken
			assert.LessOrEqual(r, w.nmore, 1)
			// The client's completion may have made a device with this gap deliver the
			// first receive before the second.
			assert.True(r, w.nmore == 1 || r.differs(MayWakeForAll))
		}
		require.NoError(r, w.err)
		assert.EqualValues(r, 0, w.ev.Cookie)
		ev := server.done(server.recv, 1, hw.StatusSuccess)
		assert.NotZero(r, ev.Flags&event.Solicited)

		// A flush notifies too.
		woken = r.asleep(server.recv)
		require.NoError(r, client.ep.Disconnect(ep.Abrupt))
		w = <-woken
		require.NoError(r, w.err)
		assert.Equal(r, hw.StatusFlushed, w.ev.Status)
	}},
	// FL-7 makes two endpoints that feed one dispatcher.
	{ID: "FL-7", Claim: "feeds of a dispatcher that don't go together are refused", run: func(r *rig) {
		for _, c := range []struct {
			name          string
			first, second ep.Attr
			sub           hw.Subtype // the expected refusal; 0 if the two may share the dispatcher
		}{
			{"unsignalled after default", ep.Attr{}, ep.Attr{RecvFlags: hw.Unsignalled}, 77},
			{"default after unsignalled", ep.Attr{RecvFlags: hw.Unsignalled}, ep.Attr{}, 75},
			{"default after solicited", ep.Attr{RecvFlags: hw.SolicitedWait}, ep.Attr{}, 76},
			{"solicited after default", ep.Attr{}, ep.Attr{RecvFlags: hw.SolicitedWait}, 77},
			{"default after default", ep.Attr{}, ep.Attr{}, 0},
			{"unsignalled after unsignalled", ep.Attr{RecvFlags: hw.Unsignalled}, ep.Attr{RecvFlags: hw.Unsignalled}, 0},
			{"solicited after solicited", ep.Attr{RecvFlags: hw.SolicitedWait}, ep.Attr{RecvFlags: hw.SolicitedWait}, 0},
		} {
			r.each(c.name, func(r *rig) {
				n := r.node()
				d, conn := n.dispatcher(64, event.StreamDTO), n.dispatcher(8, event.StreamConnection)
				req := n.dispatcher(64, event.StreamDTO)
				n.endpoint(ep.Config{PZ: n.pz, Recv: d, Request: req, Conn: conn, Attr: &c.first})
				e, err := n.ia.NewEndpoint(ep.Config{PZ: n.pz, Recv: d, Request: req, Conn: conn, Attr: &c.second})
				lone := n.endpoint(ep.Config{PZ: n.pz, Recv: n.dispatcher(64, event.StreamDTO), Request: req, Conn: conn, Attr: &c.second})
				modified := lone.Modify(ep.Param{Recv: d}, "Recv")
				if c.sub != 0 {
					require.ErrorIs(r, err, code(hw.InvalidState, c.sub))
					require.ErrorIs(r, modified, code(hw.InvalidState, c.sub))
					return
				}
				require.NoError(r, err)
				require.NoError(r, modified)
				require.NoError(r, e.Close())
			})
		}
		r.each("unsignalled with connection events", func(r *rig) {
			n := r.node()
			d := n.dispatcher(64)
			_, err := n.ia.NewEndpoint(ep.Config{
				PZ: n.pz, Recv: d, Request: d, Conn: d, Attr: &ep.Attr{RecvFlags: hw.Unsignalled, RequestFlags: hw.Unsignalled},
			})
			require.ErrorIs(r, err, hw.ErrInvalidState)
		})
	}},
	{ID: "FL-8", Claim: "a fenced send goes out after the read before it is there", run: func(r *rig) {
		client, server := r.pair()
		const n = 32 << 10
		for i := range n {
			server.mem.Bytes()[i] = byte(i * 7)
		}
		require.NoError(r, server.ep.PostRecv(1, 0, server.mem.Segment(n, n)))
		require.NoError(r, client.ep.PostRDMARead(2, hw.Suppress, server.mem.Remote(0, n), client.mem.Segment(0, n)))
		client.completes(3, client.ep.PostSend(3, hw.BarrierFence, client.mem.Segment(0, n)))
		server.done(server.recv, 1, hw.StatusSuccess)
		assert.Equal(r, server.mem.Bytes()[:n], server.mem.Bytes()[n:2*n])
	}},
}

// flushed takes n flushed completions of both directions together, and requires
// that no more come.
func (e *end) flushed(n int) {
	taken := 0
	e.rig.until("flushes", func() bool {
		for _, d := range []*evd.Dispatcher{e.req, e.recv} {
			for _, ev := range e.rig.queued(d) {
				require.Equal(e.rig, hw.StatusFlushed, ev.Status)
				taken++
			}
		}
		return taken >= n
	})
	require.Equal(e.rig, n, taken)
}

// asleep starts a waiter, and returns when it sleeps.
func (r *rig) asleep(d *evd.Dispatcher) (woken chan waited) {
	woken = make(chan waited, 1)
	ctx := &sleeper{Context: r.soon(), sleeps: make(chan struct{})}
	go waiter(ctx, d, 1, woken)
	select {
	case <-ctx.sleeps:
	case w := <-woken:
		require.Failf(r, "it did not sleep", "%v", w)
	}
	return woken
}

// sleeper is a context that closes sleeps at the first call of Done. Wait calls
// Done when it has nothing left to do but to sleep.
type sleeper struct {
	context.Context
	once   sync.Once
	sleeps chan struct{}
}

func (s *sleeper) Done() <-chan struct{} {
	s.once.Do(func() { close(s.sleeps) })
	return s.Context.Done()
}

// waited is what a wait returned.
type waited struct {
	ev    event.Event
	nmore int
	err   error
}

// waiter is a goroutine that waits for an event. It ends with the case, by events or by
// ctx.
func waiter(ctx context.Context, d *evd.Dispatcher, threshold int, to chan<- waited) {
	ev, nmore, err := d.Wait(ctx, threshold)
	to <- waited{ev, nmore, err}
}

// still requires that a waiter is not woken for 10 ms.
func (r *rig) still(woken <-chan waited, why string) {
	select {
	case w := <-woken:
		require.Failf(r, why, "%v", w)
	case <-time.After(10 * time.Millisecond):
	}
}
