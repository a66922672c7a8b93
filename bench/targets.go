package main

import (
	"fmt"
	"io"

	"godat/bench/stats"
)

// target is one aim: a figure, mostly a ratio, and its bound. A bound of none is no aim: the
// figure says what a program would get in another way.
type target struct {
	id, what string
	got      stats.Estimate
	atLeast  bool // the bound is a lower one
	bound    float64
}

// none is the bound of a figure without an aim.
const none = -1

func (t target) met() bool {
	if t.bound == none {
		return true
	}
	return t.atLeast && t.got.Median >= t.bound || !t.atLeast && t.got.Median <= t.bound
}

// exactly is a figure that is counted, and so has no spread.
func exactly(v float64) stats.Estimate { return stats.Estimate{Median: v, Low: v, High: v, Sure: true} }

// targets measures the figures that have an aim.
func targets(w io.Writer, c contest) (list []target) {
	f := newField()
	defer f.close()
	list = pairTargets(c.run(f.pairs()...))
	list = append(list, tripTargets(c.run(f.trips()...), c.procs)...)
	list = append(list, f.allocTargets(c)...)
	list = append(list, instructionTargets(c)...)
	list = append(list, pinnedTargets(w, c)...)
	list = append(list, f.bulkTargets(c)...)
	list = append(list, posterTargets(f.queue, c)...)
	list = append(list, tcpTargets(c)...)
	list = append(list, besideTargets(c)...)
	return append(list, activeTargets(c)...)
}

func pairTargets(r result) []target {
	const (
		ring, ch    = "raw MPSC ring, two events", "raw channel, one event"
		poll, batch = "pair, poll", "pair, poll, posted by 16"
		channel     = "pair, channel"
		conn        = "pair, Conn"
		batches     = "pair, batches of 32, posted by 16"
	)
	return []target{
		{"T1", "pair polled / two raw MPSC push and pop", r.ratio(poll, ring), false, 2.0},
		{"T2", "pair posted by 16 / two raw MPSC push and pop", r.ratio(batch, ring), false, 1.1},
		{"T5", "pair over a channel / pair polled", r.ratio(channel, poll), false, 2.0},
		{"T5", "cost of channel delivery per event / raw channel", r.delivery(channel, poll, ch), false, 0.6},
		{"T5", "pair over a Conn / pair over a channel on bare endpoints", r.ratio(conn, channel), false, 1.15},
		{"T6", "pair over batches / pair posted by 16, polled", r.ratio(batches, batch), false, 1.1},
	}
}

// delivery is what channel delivery costs more than polling, per event, in units of a
// raw send and receive.
func (r result) delivery(channel, poll, raw string) stats.Estimate {
	var ratios []float64
	for i := range r.perOp[raw] {
		ratios = append(ratios, float64(r.perOp[channel][i]-r.perOp[poll][i])/2/float64(r.perOp[raw][i]))
	}
	return stats.Of(ratios)
}

func tripTargets(r result, procs int) []target {
	const (
		ring, ch      = "raw rings, spin and yield", "raw channels"
		tcp, pipe     = "net.Conn, TCP", "net.Pipe"
		poll, channel = "round trip, poll", "round trip, channel"
	)
	list := []target{{"T3", "round trip polled / raw rings", r.ratio(poll, ring), false, 1.5}}
	if procs == 1 {
		list = append(
			list,
			target{"T3", "net.Conn / round trip polled", r.speed(poll, tcp), true, 30},
			target{"T3", "net.Pipe / round trip polled", r.speed(poll, pipe), true, 3.5},
		)
	} else {
		list = append(
			list,
			target{"T3", "round trip polled / over channels", r.ratio(poll, channel), false, 1},
			target{"T3", "raw rings / round trip over channels", r.ratio(ring, channel), false, none},
		)
	}
	return append(
		list,
		target{"T4", "round trip over channels / raw channels", r.ratio(channel, ch), false, 1.5},
		target{"T4", "net.Conn / round trip over channels", r.speed(channel, tcp), true, 22},
	)
}

func (f *field) bulkTargets(c contest) (list []target) {
	for _, size := range []int{64 << 10, 256 << 10, 1 << 20} {
		bound := 0.95
		if size == 64<<10 {
			bound = 0.90
		}
		r := c.run(rawCopy(f.queue, size), bulkWrites(f.queue, size, 1), bulkWrites(f.queue, size, 8), connBulk("net.Conn", f.tcp[0], f.tcp[1], size))
		for _, write := range r.names[1:3] {
			list = append(list, target{"T10", "copy / " + write, r.speed(write, r.names[0]), true, bound})
		}
		list = append(list, target{"T10", fmt.Sprintf("net.Conn / RDMA write, %d KiB", size>>10), r.speed(r.names[1], r.names[3]), true, 5})
	}
	return list
}
