package main

import (
	"context"
	"io"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"godat/bench/stats"
	dat "godat/runtime"
)

const bareRead = "read from a bare socket, and sent on a channel"

// tripsOverTCP makes the ways to take the message of a round trip take turns with a
// plain connection.
func tripsOverTCP(c contest) (list []target) {
	a, b := tcpPair()
	defer closeAll(a, b)
	conn := connPingPong("net.Conn", a, b, messageSize)
	all := []contestant{conn}
	ways := []struct {
		what   string
		cfg    dat.DispatcherConfig
		trip   func(*rig) contestant
		bounds [2]float64 // at one processor and at two
	}{
		{"polled at both ends", dat.DispatcherConfig{}, tripPoll, [2]float64{0.95, 0.85}},
		{"by Wait", dat.DispatcherConfig{}, tripWait, [2]float64{1.1, 1.1}},
		{"by channel", dat.DispatcherConfig{Mode: dat.ModeChannel}, tripChannel, [2]float64{1.05, 1.3}},
	}
	for _, way := range ways {
		r := newRigApart(overLocalhost, nil, way.cfg)
		defer r.close()
		all = append(all, named(way.what, way.trip(r)))
	}
	x, y := tcpPair()
	defer closeAll(x, y)
	bare := bareReaders(x, y)
	got := c.run(append(all, bare...)...)
	for _, b := range bare {
		list = append(list, target{"T13", "round trip " + b.name + " / net.Conn", got.ratio(b.name, conn.name), false, none})
	}
	for _, way := range ways {
		bound := way.bounds[min(c.procs, 2)-1]
		list = append(list, target{"T13", "round trip " + way.what + " / net.Conn", got.ratio(way.what, conn.name), false, bound})
	}
	return list
}

// tripWait waits for each event.
func tripWait(r *rig) contestant {
	return trip(r, "round trip, Wait", func(d *dat.Dispatcher) func() dat.Event {
		return func() dat.Event { return must2(d.Wait(context.Background(), 1)) }
	})
}

// tailOverTCP compares the slow round trips of a plain connection beside a consumer that
// polls with those that it has alone, in turns.
func tailOverTCP(c contest) target {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	a, b := tcpPair()
	defer closeAll(a, b)
	r := newRigOn(overLocalhost, nil, dat.DispatcherConfig{}, true)
	defer r.close()
	var ratios []float64
	for range c.repeats {
		runtime.GC()
		alone := slowTrip(a, b, c.slice)
		stop := polledBeside(r.da)
		ratios = append(ratios, float64(slowTrip(a, b, c.slice))/float64(alone))
		stop()
	}
	return target{"T13", "99th percentile of a net.Conn's round trips beside a consumer that polls / alone", stats.Of(ratios), false, 3}
}

// polledBeside has a goroutine poll an empty dispatcher until stop is called.
func polledBeside(d *dat.Dispatcher) (stop func()) {
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]dat.Event, 1)
		for !over.Load() {
			must(d.Dequeue(buf))
			runtime.Gosched()
		}
	}()
	return func() {
		over.Store(true)
		<-done
	}
}

// leastTrips is the least number of round trips with a 99th percentile.
const leastTrips = 200

// slowTrip is the 99th percentile of the round trips between two connections during a
// turn.
func slowTrip(a, b net.Conn, turn time.Duration) time.Duration {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		var buf [messageSize]byte
		for buf[0] == 0 { // the last message begins with a 1
			must(io.ReadFull(b, buf[:]))
			must(b.Write(buf[:]))
		}
	}()
	var buf [messageSize]byte
	var took []time.Duration
	for now, end := time.Now(), time.Now().Add(turn); buf[0] == 0; {
		if len(took) >= leastTrips && now.After(end) {
			buf[0] = 1
		}
		start := now
		must(a.Write(buf[:]))
		must(io.ReadFull(a, buf[:]))
		now = time.Now()
		took = append(took, now.Sub(start))
	}
	<-answered
	slices.Sort(took)
	return took[len(took)*99/100]
}
