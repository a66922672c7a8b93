package main

import (
	"context"
	"io"
	"net"

	dat "godat/runtime"
)

// overTCP measures iWARP beside a plain connection, both over loopback TCP, prints
// the targets, and returns how many were missed.
func overTCP(w io.Writer, c contest) (missed int) {
	var list []target
	list = append(list, bulkOverTCP(c)...)
	list = append(list, messagesOverTCP(c)...)
	list = append(list, tripsOverTCP(c)...)
	return printTargets(w, c, list)
}

// iwarpRig is a rig over TCP.
func iwarpRig(params map[string]string, cfg dat.DispatcherConfig, shared bool) *rig {
	return newRigOn("iwarp:127.0.0.1", params, cfg, shared)
}

var byChannel = dat.DispatcherConfig{Mode: dat.ModeChannel}

// bulkOverTCP writes 1 MiB at a time, with several writes outstanding.
func bulkOverTCP(c contest) (list []target) {
	const size = 1 << 20
	a, b := tcpPair()
	defer closeAll(a, b)
	conn := connBulk("net.Conn", a, b, size)
	all := []contestant{conn}
	ways := []struct {
		what   string
		params map[string]string
		bound  float64
	}{
		{"RDMA write with CRCs", nil, 0.85},
		{"RDMA write without", map[string]string{"crc": "false"}, 1.0},
		{"RDMA write with CRCs, FPDUs of 1440 B", map[string]string{"fpdu": "1440"}, 0.55},
	}
	for _, way := range ways {
		r := iwarpRig(way.params, dat.DispatcherConfig{}, true)
		defer r.close()
		all = append(all, writesOverTCP(r, way.what, size))
	}
	got := c.run(all...)
	for _, way := range ways {
		list = append(list, target{"T12", way.what + " / net.Conn, bytes", 1 / got.ratio(way.what, conn.name), true, way.bound})
	}
	return list
}

// await is dequeue, but it waits: on a single processor, a goroutine that only yields
// keeps Go's scheduler from polling its sockets.
func await(d *dat.Dispatcher, buf []dat.Event, n int) {
	for n > 0 {
		m := must(d.Dequeue(buf[:min(n, len(buf))]))
		if m == 0 {
			buf[0] = must2(d.Wait(context.Background(), 1))
			m = 1
		}
		for i := range buf[:m] {
			check(buf[i].Status.Err())
		}
		n -= m
	}
}

// tripWait waits for each event.
func tripWait(r *rig) contestant {
	return trip(r, "", func(d *dat.Dispatcher) func() dat.Event {
		return func() dat.Event { return must2(d.Wait(context.Background(), 1)) }
	})
}

// writesOverTCP writes n times, and waits until all bytes have arrived.
func writesOverTCP(r *rig, name string, size int) contestant {
	const depth = 8
	buf := make([]dat.Event, 2*depth)
	return contestant{name, func(n int) {
		posted, done := 0, 0
		for done < n {
			for posted < n && posted-done < depth {
				check(r.a.PostRDMAWrite(1, 0, r.lmr.Remote(half, size), r.lmr.Segment(0, size)))
				posted++
			}
			await(r.da, buf[:1], 1)
			done++
		}
		check(r.b.PostRecv(1, 0, r.lmr.Segment(half, messageSize)))
		check(r.a.PostSend(1, 0, r.lmr.Segment(0, messageSize)))
		await(r.da, buf, 2)
	}}
}

// messagesOverTCP sends messages of 64 bytes, posted by 32.
func messagesOverTCP(c contest) []target {
	a, b := tcpPair()
	defer closeAll(a, b)
	r := iwarpRig(nil, dat.DispatcherConfig{}, true)
	defer r.close()
	conn, sends := connMessages(a, b), sendsOverTCP(r)
	got := c.run(conn, sends)
	return []target{{"T13", "sends of 64 B posted by 32 / writes to a net.Conn, messages", 1 / got.ratio(sends.name, conn.name), true, 10}}
}

// connMessages writes once for each message; the reader takes whatever has come.
func connMessages(a, b net.Conn) contestant {
	in := make([]byte, 64<<10)
	return contestant{"a write each", func(n int) {
		go func() {
			var out [messageSize]byte
			for range n {
				must(a.Write(out[:]))
			}
		}()
		for left := n * messageSize; left > 0; {
			left -= must(b.Read(in))
		}
	}}
}

func sendsOverTCP(r *rig) contestant {
	const depth = 32
	recvs, sends := r.batch(depth)
	buf := make([]dat.Event, 4*depth)
	return contestant{"sends", func(n int) {
		outstanding := 0
		for range (n + depth - 1) / depth {
			must(r.b.PostRecvBatch(recvs))
			must(r.a.PostBatch(sends))
			if outstanding += 2 * depth; outstanding > 2*depth {
				await(r.da, buf[:2*depth], 2*depth)
				outstanding -= 2 * depth
			}
		}
		await(r.da, buf[:max(outstanding, 1)], outstanding)
	}}
}

// tripsOverTCP makes the three ways to a short round trip take turns; see package
// iwarp.
func tripsOverTCP(c contest) (list []target) {
	a, b := tcpPair()
	defer closeAll(a, b)
	conn := connPingPong("net.Conn", a, b, messageSize)
	var rigs []*rig
	rig := func(params map[string]string, cfg dat.DispatcherConfig) *rig {
		rigs = append(rigs, iwarpRig(params, cfg, false))
		return rigs[len(rigs)-1]
	}
	spin := map[string]string{"spin": "50us"}
	all := []contestant{
		conn,
		named("handed over by a channel", tripChannel(rig(nil, byChannel))),
		named("handed over to a waiter", tripWait(rig(nil, dat.DispatcherConfig{}))),
	}
	if c.procs > 1 { // the consumer, or the receiver, spins
		all = append(all,
			named("polled", tripPoll(rig(nil, dat.DispatcherConfig{}))),
			named("read spinning, handed over by a channel", tripChannel(rig(spin, byChannel))),
			named("read spinning, handed over to a waiter", tripWait(rig(spin, dat.DispatcherConfig{}))),
			named("read spinning, polled", tripPoll(rig(spin, dat.DispatcherConfig{}))),
		)
	}
	got := c.run(all...)
	for _, way := range all[1:] {
		list = append(list, target{"T13", "round trip, " + way.name + " / net.Conn", got.ratio(way.name, conn.name), false, 1.35})
	}
	for _, r := range rigs {
		r.close()
	}
	return list
}

func named(name string, c contestant) contestant { return contestant{name, c.run} }

func closeAll(conns ...net.Conn) {
	for _, c := range conns {
		check(c.Close())
	}
}
