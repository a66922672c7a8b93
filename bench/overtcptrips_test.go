package main

import (
	"io"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"godat/bench/stats"
	dat "godat/runtime"
)

// The names of the floors: readers of a bare socket.
const bareSent, barePolled = "a bare socket's reader that sends on a channel", "a bare socket's reader that polls"

// tripsOverTCP measures round trips of messages over iWARP beside the floor of each way to
// take them, and what a consumer that polls does to others.
func tripsOverTCP(c contest) (list []target) {
	ways := []struct {
		what, floor string
		cfg         dat.DispatcherConfig
		trip        func(*rig) contestant
	}{
		{"round trip polled at both ends", barePolled, dat.DispatcherConfig{}, tripPoll},
		{"round trip by channel", bareSent, dat.DispatcherConfig{Mode: dat.ModeChannel}, tripChannel},
	}
	x, y := tcpPair()
	p, q := tcpPair()
	defer closeAll(x, y, p, q)
	all := bareReaders(x, y, p, q)
	if all == nil {
		return []target{tailOverTCP(c)}
	}
	for _, way := range ways {
		r := newRigApart(overLocalhost, nil, way.cfg)
		defer r.close()
		all = append(all, named(way.what, way.trip(r)))
	}
	got := c.run(all...)
	for _, way := range ways {
		list = append(list, target{"T13", way.what + " / " + way.floor, got.ratio(way.what, way.floor), false, c.bound(1.2, 1.25)})
	}
	return append(list, tailOverTCP(c))
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
		alone := slowTrip(a, b, c)
		stop := polledBeside(r.da)
		ratios = append(ratios, float64(slowTrip(a, b, c))/float64(alone))
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

// slowTrip is the 99th percentile of the round trips between two connections during a
// turn.
func slowTrip(a, b net.Conn, c contest) time.Duration {
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
	for now, end := time.Now(), time.Now().Add(c.slice); buf[0] == 0; {
		if len(took) >= c.fewest() && now.After(end) {
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
