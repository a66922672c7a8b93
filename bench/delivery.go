package main

import (
	"fmt"
	"io"
	"net"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"godat/evd"
)

// field is everything that is compared: rigs in each mode, and anchors.
type field struct {
	queue, channel, batches *rig // one goroutine, one dispatcher
	apartQueue, apartChan   *rig // two goroutines, two dispatchers
	conn                    *connRig
	tcp, pipe               [2]net.Conn
}

func newField() *field {
	f := &field{
		queue:      newRig(evd.Config{Mode: evd.ModeQueue}, true),
		channel:    newRig(evd.Config{Mode: evd.ModeChannel}, true),
		batches:    newRig(evd.Config{Mode: evd.ModeBatch, BatchMin: 32, BatchMax: 32}, true),
		apartQueue: newRig(evd.Config{Mode: evd.ModeQueue}, false),
		apartChan:  newRig(evd.Config{Mode: evd.ModeChannel}, false),
		conn:       newConnRig(),
	}
	f.tcp[0], f.tcp[1] = tcpPair()
	f.pipe[0], f.pipe[1] = net.Pipe()
	return f
}

func (f *field) close() {
	for _, r := range []*rig{f.queue, f.channel, f.batches, f.apartQueue, f.apartChan} {
		r.close()
	}
	f.conn.close()
	for _, c := range []net.Conn{f.tcp[0], f.tcp[1], f.pipe[0], f.pipe[1]} {
		check(c.Close())
	}
}

func (f *field) pairs() []contestant {
	return []contestant{
		twoMPSC(), rawChannel(), pairPoll(f.queue), pairBatch(f.queue), pairWait(f.queue),
		pairChannel(f.channel), pairBatches(f.batches), pairOneShot(f.channel),
		pairConn(f.conn),
	}
}

func (f *field) trips() []contestant {
	return []contestant{
		ringPingPong(), channelPingPong(),
		connPingPong("net.Conn, TCP", f.tcp[0], f.tcp[1], messageSize),
		connPingPong("net.Pipe", f.pipe[0], f.pipe[1], messageSize),
		tripPoll(f.apartQueue), tripChannel(f.apartChan),
	}
}

// delivery prints what each way of delivery costs.
func delivery(w io.Writer, c contest) {
	f := newField()
	defer f.close()
	r := c.run(f.pairs()...)
	show(w, fmt.Sprintf("64-byte pairs, one goroutine, GOMAXPROCS=%d", c.procs), r, r.names[0], r.names[2])
	r = c.run(f.trips()...)
	show(w, fmt.Sprintf("64-byte round trips, two goroutines, GOMAXPROCS=%d", c.procs), r, r.names[1], r.names[2])
}

// show prints one contest, with ratios to anchors.
func show(w io.Writer, title string, r result, anchors ...string) {
	t := newTable(w, title)
	header := table.Row{"", "ns", "low–high"}
	for _, a := range anchors {
		header = append(header, "× "+a)
	}
	t.AppendHeader(header)
	for _, name := range r.names {
		ns := r.ns(name)
		row := table.Row{name, tenths(ns.Median), ns.Range(tenths)}
		for _, a := range anchors {
			row = append(row, fmt.Sprintf("%.2f", r.ratio(name, a).Median))
		}
		t.AppendRow(row)
	}
	t.Render()
	fmt.Fprintln(w)
}

// newTable makes a table that is rendered to w.
func newTable(w io.Writer, title string) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.Style().Format.Header = text.FormatDefault
	t.SetTitle(title)
	return t
}

// tenths writes nanoseconds.
func tenths(ns float64) string { return fmt.Sprintf("%.1f", ns) }
