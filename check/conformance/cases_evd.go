package conformance

import (
	"context"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

var evdCases = []Case{
	{ID: "EV-1", Claim: "a threshold of 0 and one beyond the queue's length are INVALID_PARAMETER", run: func(r *rig) {
		d := r.node().software(8)
		p := get(r, d.Query)
		for _, threshold := range []int{-1, 0, p.QLen + 1} {
			assert.ErrorIs(r, errorOf(d.Wait(r.soon(), threshold)), code(hw.InvalidParameter, hw.Arg3), "threshold %d", threshold)
		}
		post(r, d, 0, p.QLen)
		ev, nmore, err := d.Wait(r.soon(), p.QLen)
		require.NoError(r, err)
		assert.Equal(r, p.QLen-1, nmore)
		assert.Equal(r, 0, payload(r, ev))
	}},
	{ID: "EV-2", Claim: "a wait for more than come expires, tells how many there are and takes none", run: func(r *rig) {
		d := r.node().software(8)
		post(r, d, 0, 2)
		for _, limit := range []time.Duration{0, 10 * time.Millisecond} {
			nmore, err := waitFor(d, 3, limit)
			require.ErrorIs(r, err, hw.ErrTimeout)
			require.ErrorIs(r, err, context.DeadlineExceeded)
			assert.Equal(r, 2, nmore)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, nmore, err := d.Wait(ctx, 3)
		require.ErrorIs(r, err, hw.ErrInterrupted)
		assert.Equal(r, 2, nmore)
		for i := range 2 {
			assert.Equal(r, i, payload(r, r.next(d)), "nothing is lost")
		}
	}},
	{ID: "EV-3", Claim: "a wait for three returns the first when there are three, and no sooner", run: func(r *rig) {
		d := r.node().software(8)
		woken := make(chan waited, 1)
		ctx := r.soon()
		go waiter(ctx, d, 3, woken)
		post(r, d, 0, 2)
		r.still(woken, "two are not three")
		post(r, d, 2, 2)
		w := <-woken
		require.NoError(r, w.err)
		assert.Equal(r, 0, payload(r, w.ev))
		assert.GreaterOrEqual(r, w.nmore, 2)
		for i := 1; i < 4; i++ {
			assert.Equal(r, i, payload(r, r.next(d)))
		}
	}},
	{ID: "EV-4", Claim: "while one waits, a second waiter and a dequeue are INVALID_STATE", run: func(r *rig) {
		d := r.node().software(8)
		woken := r.asleep(d)
		assert.ErrorIs(r, errorOf(d.Wait(r.soon(), 1)), code(hw.InvalidState, hw.StateEVDWaiter))
		assert.ErrorIs(r, errorOf(d.Dequeue(make([]event.Event, 1))), code(hw.InvalidState, hw.StateEVDWaiter))
		post(r, d, 7, 1)
		w := <-woken
		require.NoError(r, w.err)
		assert.Equal(r, 7, payload(r, w.ev))
		r.none(d)
	}},
	{ID: "EV-10", Claim: "software events are first in, first out; a full queue is QUEUE_FULL and no overflow", run: func(r *rig) {
		n := r.node()
		d := n.software(4)
		p := get(r, d.Query)
		for round := range 3 {
			post(r, d, 10*round, p.QLen)
			assert.ErrorIs(r, d.PostSoftware(-1), hw.ErrQueueFull)
			for i := range p.QLen {
				assert.Equal(r, 10*round+i, payload(r, r.next(d)))
			}
		}
		r.none(n.ia.Async())
		assert.ErrorIs(r, n.dispatcher(4, event.StreamDTO).PostSoftware(1), hw.ErrInvalidParameter)
		woken := r.asleep(d)
		post(r, d, 5, 1)
		assert.Equal(r, 5, payload(r, (<-woken).ev), "it wakes as any event does")
	}},
	{ID: "EV-11", Claim: "the overflow of a dispatcher is an asynchronous event, and the dispatcher goes on", run: func(r *rig) {
		n := r.node()
		d := n.dispatcherOf(evd.Config{QLen: 2, Overcommit: true})
		server, client := n.end(func(cfg *ep.Config) { cfg.Recv = d }), r.node().end()
		r.connect(client, server)
		server.receives(6)
		for i := range uint64(6) {
			client.postSend(i, 8)
		}
		ev := r.next(n.ia.Async())
		require.Equal(r, event.AsyncEVDOverflow, ev.Number)
		source, _, ok := ev.Async()
		require.True(r, ok)
		require.Same(r, d, source, "it names the dispatcher")
		require.EqualValues(r, 0, r.next(d).Cookie, "what there was room for is there")
	}},
	{ID: "EV-12", Claim: "a dispatcher that is fed or waited for can't be freed", run: func(r *rig) {
		n := r.node()
		e, s := n.end(), n.listen()
		for _, d := range []*evd.Dispatcher{e.conn, e.recv, e.req, s.cr, n.ia.Async()} {
			assert.ErrorIs(r, d.Close(), code(hw.InvalidState, hw.StateEVDInUse))
		}
		d := n.software(4)
		woken := r.asleep(d)
		assert.ErrorIs(r, d.Close(), code(hw.InvalidState, hw.StateEVDWaiter))
		post(r, d, 1, 1)
		<-woken
		post(r, d, 2, 1)
		require.NoError(r, d.Close(), "what is queued is dropped")
		assert.ErrorIs(r, errorOf(d.Dequeue(make([]event.Event, 1))), hw.ErrInvalidHandle)
		assert.ErrorIs(r, d.PostSoftware(1), hw.ErrInvalidHandle)
	}},
	// EV-13 uses one dispatcher for everything on each side, and checks that it gets an
	// event of every stream of which a program can cause one.
	{ID: "EV-13", Claim: "every two streams can share a dispatcher", run: func(r *rig) {
		streams := []event.Streams{
			event.StreamSoftware, event.StreamCR, event.StreamDTO, event.StreamConnection, event.StreamBind, event.StreamAsync,
		}
		n := r.node()
		for _, a := range streams {
			for _, b := range streams {
				d := n.dispatcher(4, a, b)
				p := get(r, d.Query)
				assert.Equal(r, a|b, p.Streams)
			}
		}
		all := evd.Config{QLen: 64, Streams: event.DefaultStreams | event.StreamSoftware}
		d := n.dispatcherOf(all)
		one := func(cfg *ep.Config) { cfg.Conn, cfg.Recv, cfg.Request = d, d, d }
		client, server := n.end(one), n.end(one)
		require.NoError(r, client.ep.Connect(n.listenOn(ep.PSPConfig{Dispatcher: d}).at()))
		ev := r.next(d)
		require.Equal(r, event.ConnectionRequest, ev.Number)
		require.NoError(r, ep.RequestOf(ev).Accept(server.ep, nil))
		for range 2 {
			require.Equal(r, event.Established, r.next(d).Number)
		}
		server.postRecv(1, 8)
		client.postSend(2, 8)
		sum := uint64(0)
		for range 2 {
			ev := r.next(d)
			require.Equal(r, event.DTOCompletion, ev.Number)
			sum += ev.Cookie
		}
		assert.EqualValues(r, 3, sum)
		post(r, d, 4, 1)
		assert.Equal(r, 4, payload(r, r.next(d)))
	}},
	{ID: "EV-14", Claim: "a waiter whose adapter is closed abruptly gets ABORT", run: func(r *rig) {
		n := r.node()
		d := n.software(4)
		e := n.end()
		first, second := r.asleep(d), r.asleep(e.recv)
		require.NoError(r, n.ia.Close())
		for _, woken := range []chan waited{first, second} {
			w := <-woken
			assert.ErrorIs(r, w.err, hw.ErrAbort)
		}
		assert.ErrorIs(r, errorOf(d.Wait(r.soon(), 1)), hw.ErrInvalidHandle)
	}},
	{ID: "EV-15", Claim: "a dispatcher can be resized, but not below what is queued, and keeps the order", run: func(r *rig) {
		n := r.node()
		d := n.dispatcherOf(evd.Config{QLen: 4, MaxLen: 64, Streams: event.StreamSoftware})
		post(r, d, 0, 4)
		require.ErrorIs(r, d.PostSoftware(9), hw.ErrQueueFull)
		require.NoError(r, d.Resize(16))
		post(r, d, 4, 8)
		require.ErrorIs(r, d.Resize(8), hw.ErrInvalidState, "12 are queued")
		for i := range 6 {
			require.Equal(r, i, payload(r, r.next(d)))
		}
		require.NoError(r, d.Resize(8))
		post(r, d, 12, 2)
		require.ErrorIs(r, d.PostSoftware(9), hw.ErrQueueFull)
		for i := 6; i < 14; i++ {
			require.Equal(r, i, payload(r, r.next(d)))
		}
		assert.ErrorIs(r, d.Resize(0), hw.ErrInvalidParameter)
	}},
	{ID: "EV-16", Claim: "a dispatcher with bad parameters is refused", run: func(r *rig) {
		n := r.node()
		for _, qlen := range []int{0, -1} {
			assert.ErrorIs(r, errorOf(n.ia.NewDispatcher(evd.Config{QLen: qlen})), code(hw.InvalidParameter, hw.Arg2), "length %d", qlen)
		}
		assert.ErrorIs(r, errorOf(n.ia.NewDispatcher(evd.Config{QLen: evd.MaxQLen + 1})), code(hw.InsufficientResources, hw.ResourceTEVD))
		assert.ErrorIs(r, errorOf(n.ia.NewDispatcher(evd.Config{QLen: 4, Streams: 1 << 20})), code(hw.InvalidParameter, hw.Arg4))
	}},
	{ID: "EV-17", Claim: "each event goes to one of many that dequeue", run: func(r *rig) {
		const workers = 4
		n := r.p.Scale.of(16000, 500)
		d := r.node().software(64)
		seen := make([]atomic.Int32, n)
		var found atomic.Int64
		ctx := r.soon()
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for found.Load() < int64(n) && ctx.Err() == nil {
					var buf [4]event.Event
					k, err := d.Dequeue(buf[:])
					if !assert.NoError(r, err) {
						return
					}
					for _, ev := range buf[:k] {
						p, _ := ev.Software()
						seen[p.(int)].Add(1)
					}
					found.Add(int64(k))
				}
			})
		}
		postAll(ctx, d, n)
		wg.Wait()
		for i := range seen {
			require.EqualValues(r, 1, seen[i].Load(), "event %d", i)
		}
	}},
	{ID: "EV-18", Claim: "a threshold above 1 is refused where UNSIGNALLED or SOLICITED_WAIT feeds", run: func(r *rig) {
		for _, a := range []ep.Attr{
			{RecvFlags: hw.Unsignalled}, {RecvFlags: hw.SolicitedWait}, {RecvFlags: hw.EVDThreshold}, {},
		} {
			e := r.node().end(func(cfg *ep.Config) { b := a; cfg.Attr = &b })
			_, err := waitFor(e.recv, 2, 0)
			if a.RecvFlags&(hw.Unsignalled|hw.SolicitedWait) != 0 {
				assert.ErrorIs(r, err, hw.ErrInvalidState)
			} else {
				assert.ErrorIs(r, err, hw.ErrTimeout)
			}
		}
	}},
	{ID: "EV-19", Claim: "ESTABLISHED comes before the first completion and DISCONNECTED after the last, on one dispatcher", run: func(r *rig) {
		for range r.p.Scale.of(80, 4) {
			n := r.node()
			d := n.dispatcher(128)
			server := n.end(func(cfg *ep.Config) { cfg.Conn, cfg.Recv, cfg.Request = d, d, d })
			client := r.node().end()
			server.receives(8)
			s := n.listen()
			require.NoError(r, client.ep.Connect(s.at()))
			require.NoError(r, s.request().Accept(server.ep, nil))
			client.established()
			for i := range uint64(4) {
				client.postSend(i, 8)
			}
			require.NoError(r, client.ep.Disconnect(ep.Graceful))
			require.Equal(r, event.Established, r.next(d).Number)
			for i := range uint64(8) {
				ev := r.next(d)
				require.Equal(r, event.DTOCompletion, ev.Number, "%v", ev)
				require.Equal(r, i, ev.Cookie)
				require.Equal(r, i >= 4, ev.Status == hw.StatusFlushed, "%v", ev)
			}
			require.Equal(r, event.Disconnected, r.next(d).Number)
		}
	}},
}

// software makes a dispatcher of software events.
func (n *node) software(qlen int) *evd.Dispatcher {
	return n.dispatcher(qlen, event.StreamSoftware)
}

func post(r *rig, d *evd.Dispatcher, from, n int) {
	for i := range n {
		require.NoError(r, d.PostSoftware(from+i))
	}
}

// postAll posts n software events. While the queue is full it lets consumers run.
func postAll(ctx context.Context, d *evd.Dispatcher, n int) {
	for i := 0; i < n && ctx.Err() == nil; {
		if d.PostSoftware(i) == nil {
			i++
		} else {
			goruntime.Gosched()
		}
	}
}

func payload(r *rig, ev event.Event) int {
	p, ok := ev.Software()
	require.True(r, ok, "%v", ev)
	return p.(int)
}
