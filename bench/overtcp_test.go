package main

import (
	"context"

	dat "godat/runtime"
)

// bulkOverTCP writes 1 MiB at a time over iWARP, with several writes outstanding, beside the
// floor: a plain connection whose reader asks, as one waits for completions, and with CRCs
// one whose ends compute them, too.
func bulkOverTCP(c contest) (list []target) {
	const size = 1 << 20
	a, b := tcpPair()
	x, y := tcpPair() // another one, because who asks may make a connection slow for as long as it lasts
	defer closeAll(a, b, x, y)
	conn := connBulk("net.Conn", a, b, size)
	all := []contestant{conn, connBulkAsked(connAsked, x, y, size, false), connBulkAsked(connSummed, x, y, size, true)}
	ways := []struct {
		what   string
		params map[string]string
		floor  string
		bound  float64
	}{
		{"RDMA write with CRCs", nil, connSummed, c.bound(1.0, 1.2)},
		{"RDMA write without", map[string]string{"crc": "false"}, connAsked, c.bound(1.0, 1.2)},
		{"RDMA write with CRCs, FPDUs of 1440 B", map[string]string{"fpdu": "1440"}, conn.name, c.bound(0.5, none)},
	}
	for _, way := range ways {
		r := newRigOn(overLocalhost, way.params, dat.DispatcherConfig{}, true)
		defer r.close()
		all = append(all, writesOverTCP(r, way.what, size))
	}
	got := c.run(all...)
	for _, way := range ways {
		list = append(list, target{"T12", way.what + " / " + way.floor + ", bytes", got.speed(way.what, way.floor), true, way.bound})
	}
	return list
}

// await takes n completions from d, waits while there are none, and requires that each
// succeeded.
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

func named(name string, c contestant) contestant { return contestant{name, c.run} }
