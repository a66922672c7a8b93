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

var cnoCases = []Case{
	{ID: "EV-6", Claim: "an unwaitable dispatcher can't be waited for, wakes its waiter, and can be dequeued from", run: func(r *rig) {
		d := r.node().software(8)
		woken := r.asleep(d)
		require.NoError(r, d.SetUnwaitable())
		unwaitable := code(hw.InvalidState, hw.StateEVDUnwaitable)
		assert.ErrorIs(r, (<-woken).err, unwaitable)
		assert.ErrorIs(r, errorOf(d.Wait(r.soon(), 1)), unwaitable)
		post(r, d, 3, 1)
		assert.Equal(r, 3, payload(r, r.only(d)))
		p := get(r, d.Query)
		assert.EqualValues(r, 8, p.State&0xC, "UNWAITABLE")
	}},
	{ID: "EV-7", Claim: "a dispatcher that is waitable again has kept its events", run: func(r *rig) {
		d := r.node().software(8)
		require.NoError(r, d.SetUnwaitable())
		post(r, d, 0, 3)
		require.NoError(r, d.ClearUnwaitable())
		for i := range 3 {
			assert.Equal(r, i, payload(r, r.next(d)))
		}
		p := get(r, d.Query)
		assert.EqualValues(r, 4, p.State&0xC, "WAITABLE")
	}},
	{ID: "EV-8", Claim: "a disabled dispatcher is silent to its CNO, and enabling it with a backlog triggers", run: func(r *rig) {
		n := r.node()
		c := n.cno()
		d := n.watched(c, 8)
		require.NoError(r, d.Disable())
		require.NoError(r, d.Disable(), "again")
		post(r, d, 0, 2)
		r.quiet(c)
		assert.Equal(r, 0, payload(r, r.next(d)), "it can be waited for")
		require.NoError(r, d.Enable())
		r.triggered(c, d)
		assert.Equal(r, 1, payload(r, r.next(d)))
		require.NoError(r, d.Enable())
		r.quiet(c)
		post(r, d, 2, 1)
		r.triggered(c, d)
		// A new CNO is triggered by the events that are queued already.
		second := n.cno()
		require.NoError(r, d.ModifyCNO(second))
		r.triggered(second, d)
		require.NoError(r, d.ModifyCNO(nil))
		post(r, d, 3, 1)
		r.quiet(c)
		r.quiet(second)
	}},
	{ID: "Q-1", Claim: "a query of a CNO says what it was made with", run: q1},
	{ID: "Q-12", Claim: "a query of no CNO, or of one that was closed, is INVALID_HANDLE", run: func(r *rig) {
		c := r.node().cno()
		require.NoError(r, errorOf(c.Query()))
		require.NoError(r, c.Close())
		assert.ErrorIs(r, errorOf(c.Query()), code(hw.InvalidHandle, hw.HandleCNO))
		var none *evd.CNO
		assert.ErrorIs(r, errorOf(none.Query()), code(hw.InvalidHandle, hw.HandleCNO))
	}},
	{ID: "LIM-CNO", Claim: "CNOs can be made until there are no more", run: exhausts("limit_cno", most)},
	{ID: "CN-1", Claim: "many dispatchers, one CNO, several waiters: no event is missed", run: func(r *rig) {
		const evds, waiters = 5, 3
		each := r.p.Scale.of(8000, 100)
		n := r.node()
		c := n.cno()
		var ds []*evd.Dispatcher
		for range evds {
			ds = append(ds, n.watched(c, 16))
		}
		var found atomic.Int64
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				for found.Load() < int64(evds*each) {
					if _, err := c.Wait(ctx); err != nil {
						assert.ErrorIs(r, err, hw.ErrInterrupted, "a trigger was lost")
						return
					}
					for _, d := range ds {
						for k := 1; k > 0; {
							var buf [4]event.Event
							var err error
							if k, err = d.Dequeue(buf[:]); !assert.NoError(r, err) {
								return
							}
							found.Add(int64(k))
						}
					}
				}
				cancel()
			})
		}
		for _, d := range ds {
			wg.Go(func() { postAll(ctx, d, each) })
		}
		wg.Wait()
		assert.EqualValues(r, evds*each, found.Load())
	}},
	{ID: "CN-2", Claim: "a trigger stays until it is taken, and is taken once", run: func(r *rig) {
		n := r.node()
		c := n.cno()
		d := n.watched(c, 8)
		post(r, d, 0, 3)
		r.triggered(c, d)
		r.quiet(c)
		post(r, d, 3, 1)
		r.triggered(c, d)
		r.quiet(c)
	}},
	{ID: "CN-3", Claim: "a wait without a trigger ends with QUEUE_EMPTY", run: func(r *rig) {
		c := r.node().cno()
		for _, limit := range []time.Duration{0, 10 * time.Millisecond} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			d, err := c.Wait(ctx)
			cancel()
			require.ErrorIs(r, err, hw.ErrQueueEmpty)
			assert.Nil(r, d)
			assert.GreaterOrEqual(r, time.Since(began), limit)
		}
	}},
	{ID: "CN-4", Claim: "an agent is called once for each time it is set", run: func(r *rig) {
		n := r.node()
		c := n.cno()
		d := n.watched(c, 16)
		calls := make(chan *evd.Dispatcher, 16)
		agent := func(by *evd.Dispatcher) { calls <- by }
		require.NoError(r, c.ModifyAgent(agent))
		post(r, d, 0, 3)
		require.Same(r, d, <-calls)
		r.triggered(c, d)
		post(r, d, 3, 1)
		r.triggered(c, d)
		assert.Empty(r, calls, "it was called once, and is set no more")
		require.NoError(r, c.ModifyAgent(agent))
		post(r, d, 4, 1)
		require.Same(r, d, <-calls)
	}},
	{ID: "CN-6", Claim: "a CNO with a dispatcher or a waiter is in use; one whose adapter closes is dead", run: func(r *rig) {
		ia := r.open()
		c, err := ia.NewCNO(evd.CNOConfig{})
		r.made(err, c.Close)
		require.ErrorIs(r, ia.CloseGraceful(), code(hw.InvalidState, hw.StateIAInUse), "a CNO counts")
		d, err := ia.NewDispatcher(evd.Config{QLen: 4, CNO: c})
		r.made(err, d.Close)
		inUse := code(hw.InvalidState, hw.StateCNOInUse)
		require.ErrorIs(r, c.Close(), inUse)
		require.NoError(r, d.Close())
		ended := make(chan error, 1)
		ctx := &sleeper{Context: r.soon(), sleeps: make(chan struct{})}
		go func() { // ends with the adapter
			_, err := c.Wait(ctx)
			ended <- err
		}()
		<-ctx.sleeps
		require.ErrorIs(r, c.Close(), inUse)
		require.NoError(r, ia.Close())
		require.ErrorIs(r, <-ended, code(hw.InvalidState, hw.StateCNODead))
	}},
	{ID: "CN-7", Claim: "an event wakes the waiter of its dispatcher and does not trigger the CNO", run: func(r *rig) {
		n := r.node()
		c := n.cno()
		d := n.watched(c, 8)
		woken := r.asleep(d)
		post(r, d, 1, 1)
		assert.Equal(r, 1, payload(r, (<-woken).ev))
		r.quiet(c)
	}},
	// CN-8 posts at the moment at which a wait ends. Either the wait has returned the
	// trigger, or the CNO still has it.
	{ID: "CN-8", Claim: "a trigger that comes as a wait ends is not lost", run: func(r *rig) {
		n := r.node()
		c := n.cno()
		d := n.watched(c, 8)
		for i := range r.p.Scale.of(4000, 500) {
			ctx, cancel := context.WithCancel(context.Background())
			ended, begun := make(chan error, 1), make(chan struct{})
			go func() { // ends with ctx
				close(begun)
				_, err := c.Wait(ctx)
				ended <- err
			}()
			<-begun
			for range i % 10 {
				goruntime.Gosched()
			}
			cancel()
			require.NoError(r, d.PostSoftware(i))
			if err := <-ended; err != nil {
				require.ErrorIs(r, err, hw.ErrInterrupted)
				require.NoError(r, errorOf(c.Trigger()), "round %d", i)
			}
			require.Equal(r, i, payload(r, r.next(d)))
		}
	}},
	{ID: "FL-5", Claim: "an UNSIGNALLED completion doesn't trigger a CNO", run: func(r *rig) {
		client, server := r.node(), r.node().end()
		c := client.cno()
		d := client.dispatcherOf(evd.Config{QLen: 64, Streams: event.StreamDTO, CNO: c})
		e := client.end(func(cfg *ep.Config) { cfg.Request, cfg.Attr.RequestFlags = d, hw.Unsignalled })
		r.connect(e, server)
		server.receives(2)
		require.NoError(r, e.ep.PostSend(1, hw.Unsignalled, e.mem.Segment(0, 8)))
		server.done(server.recv, 0, hw.StatusSuccess)
		r.until("the send's end", func() bool {
			st, err := e.ep.Status()
			return err == nil && st.RequestIdle
		})
		r.quiet(c)
		e.postSend(2, 8)
		r.triggered(c, d)
		assert.Len(r, r.queued(d), 2)
	}},
}

// cno makes a CNO.
func (n *node) cno() *evd.CNO {
	c, err := n.ia.NewCNO(evd.CNOConfig{})
	n.rig.made(err, c.Close)
	return c
}

// watched makes a dispatcher of software events whose CNO is c.
func (n *node) watched(c *evd.CNO, qlen int) *evd.Dispatcher {
	return n.dispatcherOf(evd.Config{QLen: qlen, Streams: event.StreamSoftware, CNO: c})
}

// quiet requires that a CNO has no trigger.
func (r *rig) quiet(c *evd.CNO) {
	require.ErrorIs(r, errorOf(c.Trigger()), hw.ErrQueueEmpty)
}

// triggered waits for the trigger of a CNO, and checks which dispatcher it names.
func (r *rig) triggered(c *evd.CNO, by *evd.Dispatcher) {
	d, err := c.Wait(r.soon())
	require.NoError(r, err)
	require.Same(r, by, d)
}

func q1(r *rig) {
	n := r.node()
	require.NoError(r, errorOf(n.cno().Query()))
}

var descriptorCases = []Case{
	{ID: "CN-5", Claim: "a foreign poll loop sees on a descriptor when a CNO is triggered", needs: needs(descriptor), run: func(r *rig) {
		client, server := r.node(), r.node().end()
		c, err := client.ia.NewCNO(evd.CNOConfig{Descriptor: true})
		client.rig.made(err, c.Close)
		fd := get(r, c.FD)
		require.False(r, readable(r, fd, 0), "it is not triggered")

		// The CNO is triggered by software events of one dispatcher and completions of
		// another.
		soft := client.watched(c, 8)
		d := client.dispatcherOf(evd.Config{QLen: 64, Streams: event.StreamDTO, CNO: c})
		e := client.end(func(cfg *ep.Config) { cfg.Recv = d })
		r.connect(e, server)
		post(r, soft, 1, 2)
		require.True(r, readable(r, fd, patience))
		require.True(r, readable(r, fd, 0), "until it is taken")
		require.Same(r, soft, get(r, c.Trigger))
		require.False(r, readable(r, fd, 0), "it was taken")
		for i := range 2 {
			assert.Equal(r, 1+i, payload(r, r.next(soft)))
		}

		for i := range uint64(r.p.Scale.of(400, 20)) {
			e.postRecv(i, 64)
			server.postSend(i, 8)
			require.True(r, readable(r, fd, patience), "round %d", i)
			r.triggered(c, d)
			require.False(r, readable(r, fd, 0))
			e.done(e.recv, i, hw.StatusSuccess)
			server.done(server.req, i, hw.StatusSuccess)
		}
		require.ErrorIs(r, errorOf(client.cno().FD()), hw.ErrInvalidState, "one without a descriptor")
	}},
}

// descriptor: CNOs have a descriptor that a program can poll. The operating system
// decides that, not the device.
var descriptor = &capability{"descriptor", func(r *rig) bool {
	c, err := r.node().ia.NewCNO(evd.CNOConfig{Descriptor: true})
	return r.granted(err, c.Close)
}}
