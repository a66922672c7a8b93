package conformance

import (
	"context"
	"errors"
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

var deliveryCases = []Case{
	// EV-20 uses a dispatcher with a channel, which counts as a waiter for as long as it
	// is open.
	{ID: "EV-20", Claim: "completions go to the channel of their cookie, and the others to the dispatcher's", run: func(r *rig) {
		n := r.node()
		d := n.dispatcherOf(evd.Config{QLen: 64, Mode: evd.ModeChannel, Streams: event.StreamDTO})
		routes := make([]*evd.Route, 2)
		for i := range routes {
			var err error
			routes[i], err = d.Route(0xFF00, uint64(i+1)<<8, 64)
			require.NoError(r, err)
			n.rig.later(routes[i].Close)
		}
		client, server := n.end(func(cfg *ep.Config) { cfg.Request = d }), r.node().end()
		r.connect(client, server)
		assert.ErrorIs(r, errorOf(d.Wait(r.soon(), 1)), hw.ErrInvalidState)
		assert.ErrorIs(r, errorOf(d.Dequeue(make([]event.Event, 1))), hw.ErrInvalidState)
		const rounds = 4
		for i := range uint64(3 * rounds) {
			require.NoError(r, client.ep.PostRDMAWrite(i%3<<8|i, 0, server.mem.Remote(0, 8), client.mem.Segment(0, 8)))
		}
		ctx := r.soon()
		for k, c := range []<-chan event.Event{d.C(), routes[0].C(), routes[1].C()} {
			for i := range uint64(rounds) {
				select {
				case ev := <-c:
					require.Equal(r, hw.StatusSuccess, ev.Status)
					require.Equal(r, uint64(k)<<8|(3*i+uint64(k)), ev.Cookie, "in the order posted")
				case <-ctx.Done():
					r.Fatal("an event is missing")
				}
			}
			require.Empty(r, c)
		}
	}},
	{ID: "EV-21", Claim: "an iterator gives every event once, and ends with its context", run: func(r *rig) {
		n := r.p.Scale.of(1000, 100)
		d := r.node().software(16)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { postAll(ctx, d, n) })
		i := 0
		for ev := range d.Events(ctx) {
			require.Equal(r, i, payload(r, ev))
			if i++; i == n {
				cancel()
			}
		}
		assert.Equal(r, n, i)
		wg.Wait()
		r.none(d)
	}},
	// EV-22 calls everything that may be called on a dispatcher and an endpoint at the
	// same time. A call may be refused only with the error that fits, and no event may
	// be lost: at the end every post has been seen.
	{ID: "EV-22", Claim: "posters, waiters, resizers, queries and a closer at once", run: func(r *rig) {
		rounds := r.p.Scale.of(8000, 200)
		n := r.node()
		d := n.dispatcherOf(evd.Config{QLen: 256, MaxLen: 512, Streams: event.StreamDTO})
		client, server := n.end(func(cfg *ep.Config) { cfg.Request = d }), r.node().end()
		r.connect(client, server)
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		var posted, seen atomic.Int64
		var posters, others sync.WaitGroup
		for range 3 {
			posters.Go(func() {
				for i := 0; i < rounds && ctx.Err() == nil; {
					err := client.ep.PostRDMAWrite(uint64(i), 0, server.mem.Remote(0, 8), client.mem.Segment(0, 8))
					if err == nil {
						posted.Add(1)
						i++
					} else if !assert.ErrorIs(r, err, hw.ErrInsufficientResources) {
						return
					} else {
						backOff()
					}
				}
			})
		}
		for range 2 {
			others.Go(func() { // each alternates between Wait and Dequeue
				for ctx.Err() == nil {
					_, _, err := d.Wait(ctx, 1)
					if err == nil {
						seen.Add(1)
					}
					var buf [8]event.Event
					if k, err := d.Dequeue(buf[:]); err == nil {
						seen.Add(int64(k))
					} else if !assert.ErrorIs(r, err, hw.ErrInvalidState) {
						return
					} else {
						backOff()
					}
				}
			})
		}
		others.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := d.Resize(256 + i%2*128); err != nil && !assert.ErrorIs(r, err, hw.ErrInvalidState) {
					return
				}
				_, err1 := d.Query()
				_, err2 := client.ep.Query()
				_, err3 := client.ep.Status()
				if !assert.NoError(r, errors.Join(err1, err2, err3)) {
					return
				}
				assert.Error(r, d.Close(), "it is fed")
				backOff()
			}
		})
		posters.Wait()
		r.until("all that was posted", func() bool { return seen.Load() == posted.Load() })
		stop()
		others.Wait()
		assert.EqualValues(r, 3*rounds, seen.Load())
		r.none(d)
	}},
}

// backOff yields the processor to other goroutines: a simulated device needs one,
// too.
func backOff() { time.Sleep(time.Microsecond) }
