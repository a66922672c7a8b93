package conformance

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// Requests that complete together, on a dispatcher whose consumer sleeps: each event comes,
// though nothing is posted behind the last request.

var togetherCases = []Case{
	together("EV-23", "events of long and short requests end a sleeping Wait, whatever completes behind them", evd.Config{},
		func(ctx context.Context, d *evd.Dispatcher, got func(event.Event)) {
			for {
				ev, _, err := d.Wait(ctx, 1)
				if err != nil {
					return
				}
				got(ev)
			}
		}),
	together("EV-24", "events of long and short requests come in batches, whatever completes behind them", evd.Config{Mode: evd.ModeBatch},
		func(ctx context.Context, d *evd.Dispatcher, got func(event.Event)) {
			for {
				select {
				case b := <-d.Batches():
					for _, ev := range b.Events() {
						got(ev)
					}
					b.Release()
				case <-ctx.Done():
					return
				}
			}
		}),
	together("EV-25", "Dequeue finds the events of long and short requests, whatever completes behind them", evd.Config{},
		func(ctx context.Context, d *evd.Dispatcher, got func(event.Event)) {
			for ctx.Err() == nil {
				var buf [4]event.Event
				n, _ := d.Dequeue(buf[:])
				for _, ev := range buf[:n] {
					got(ev)
				}
				backOff()
			}
		}),
}

// togetherRoute is the bit of the cookies whose events go to a route.
const togetherRoute = 1 << 40

// together is a case of a dispatcher and its consumer.
func together(id, claim string, cfg evd.Config, consume func(context.Context, *evd.Dispatcher, func(event.Event))) Case {
	return Case{ID: id, Claim: claim, run: func(r *rig) {
		n := r.node()
		cfg.QLen, cfg.Streams = 64, event.StreamDTO
		d := n.dispatcherOf(cfg)
		route, err := d.Route(togetherRoute, togetherRoute, 64)
		require.NoError(r, err)
		n.rig.later(route.Close)
		client, server := n.end(func(cfg *ep.Config) { cfg.Request = d }), r.node().end()
		r.connect(client, server)
		ctx, stop := context.WithCancel(context.Background())
		events := make(chan event.Event, 16)
		var consumer sync.WaitGroup
		consumer.Go(func() { consume(ctx, d, func(ev event.Event) { events <- ev }) })
		defer consumer.Wait()
		defer stop()
		rng := rand.New(rand.NewPCG(1, 2))
		for round := range uint64(r.p.Scale.of(4000, 100)) {
			main, routed := client.postTogether(rng, round<<8)
			expect := func(c <-chan event.Event, cookies []uint64) {
				for _, cookie := range cookies {
					select {
					case ev := <-c:
						require.Equal(r, cookie, ev.Cookie, "%v", ev)
						require.Equal(r, hw.StatusSuccess, ev.Status, "%v", ev)
					case <-r.soon().Done():
						require.Failf(r, "an event is missing", "round %d: %#x of %#x and %#x", round, cookie, main, routed)
					}
				}
			}
			expect(events, main)
			expect(route.C(), routed)
			server.done(server.recv, round<<8, hw.StatusSuccess)
		}
	}}
}

// postTogether posts two to four requests in a call, the last of which is a send. It returns
// the cookies of those that have an event, by where it goes.
func (e *end) postTogether(rng *rand.Rand, cookie uint64) (main, routed []uint64) {
	const long, short = endMem, 64
	var dtos []ep.DTO
	add := func(op hw.Op, n int, flags hw.Flags, immediate uint32) {
		d := ep.DTO{Op: op, Flags: flags, Cookie: cookie + uint64(len(dtos)), Segment: e.mem.Segment(0, n), Immediate: immediate}
		if op != hw.OpSend && op != hw.OpSendInvalidate {
			d.Remote = e.peer.mem.Remote(0, n)
		}
		if rng.IntN(3) == 0 {
			d.Cookie |= togetherRoute
		}
		switch {
		case flags&hw.Suppress != 0:
		case d.Cookie&togetherRoute != 0:
			routed = append(routed, d.Cookie)
		default:
			main = append(main, d.Cookie)
		}
		dtos = append(dtos, d)
	}
	for range 1 + rng.IntN(3) {
		op := []hw.Op{hw.OpRead, hw.OpWrite}[rng.IntN(2)]
		add(op, []int{long, short}[rng.IntN(2)], []hw.Flags{0, 0, hw.Suppress}[rng.IntN(3)], 0)
	}
	e.peer.postRecv(cookie, short)
	if e.lacks("send_invalidate") || e.lacks("rmr_bind") {
		add(hw.OpSend, short, 0, 0)
	} else {
		add(hw.OpSendInvalidate, short, 0, e.invalidatable())
	}
	n, err := e.ep.PostBatch(dtos)
	require.NoError(e.rig, err)
	require.Len(e.rig, dtos, n)
	return main, routed
}
