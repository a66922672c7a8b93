package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"

	dat "godat/runtime"
)

// overTCP measures iWARP beside a plain connection, both over loopback TCP.
func overTCP(_ io.Writer, c contest) []target { return tcpTargets(c) }

// tcpTargets measures the ratios of iWARP to a plain connection that have an aim.
func tcpTargets(c contest) []target {
	list := bulkOverTCP(c)
	list = append(list, messagesOverTCP(c)...)
	list = append(list, tripsOverTCP(c)...)
	return append(list, tailOverTCP(c))
}

const overLocalhost = "iwarp:127.0.0.1"

// bulkOverTCP writes 1 MiB at a time, with several writes outstanding.
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
		bounds [2]float64 // at one processor, where both ends share it, and at two
	}{
		{"RDMA write with CRCs", nil, [2]float64{0.6, 1.1}},
		{"RDMA write without", map[string]string{"crc": "false"}, [2]float64{1.0, 1.2}},
		{"RDMA write with CRCs, FPDUs of 1440 B", map[string]string{"fpdu": "1440"}, [2]float64{0.4, 0.75}},
	}
	for _, way := range ways {
		r := newRigOn(overLocalhost, way.params, dat.DispatcherConfig{}, true)
		defer r.close()
		all = append(all, writesOverTCP(r, way.what, size))
	}
	got := c.run(all...)
	for _, floor := range []string{connAsked, connSummed} {
		list = append(list, target{"T12", floor + " / net.Conn, bytes", got.speed(floor, conn.name), true, none})
	}
	for _, way := range ways {
		bound := way.bounds[min(c.procs, 2)-1]
		list = append(list, target{"T12", way.what + " / net.Conn, bytes", got.speed(way.what, conn.name), true, bound})
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

// messagesOverTCP sends messages of 64 bytes, posted by 32.
func messagesOverTCP(c contest) []target {
	a, b := tcpPair()
	defer closeAll(a, b)
	r := newRigApart(overLocalhost, nil, dat.DispatcherConfig{})
	defer r.close()
	conn, sends := connMessages(a, b), sendsOverTCP(r)
	got := c.run(conn, sends)
	return []target{{"T13", "sends of 64 B posted by 32 / " + conn.name + ", messages", got.speed(sends.name, conn.name), true, 0.5}}
}

// connMessages writes framed messages, 32 with one writev. The reader reads whatever has
// come, and copies the messages out of the frames.
func connMessages(a, b net.Conn) contestant {
	const (
		depth     = 32
		frameSize = 4 + messageSize
	)
	var frames [depth][frameSize]byte
	var message [messageSize]byte
	in := make([]byte, 64<<10)
	return contestant{"net.Conn that writes 32 framed messages at a time", func(n int) {
		batches := (n + depth - 1) / depth
		n = batches * depth
		done := make(chan struct{})
		go func() {
			defer close(done)
			pieces := make([][]byte, depth)
			for range batches {
				for i := range frames {
					binary.BigEndian.PutUint32(frames[i][:], messageSize)
					pieces[i] = frames[i][:]
				}
				left := net.Buffers(pieces)
				must(left.WriteTo(a))
			}
		}()
		for start, end := 0, 0; n > 0; {
			end += must(b.Read(in[end:]))
			for ; end-start >= frameSize; n-- {
				size := binary.BigEndian.Uint32(in[start:])
				copy(message[:], in[start+4:][:size])
				start += frameSize
			}
			end = copy(in, in[start:end])
			start = 0
		}
		<-done
	}}
}

// sendsOverTCP posts 32 sends at a time, of which the last has a completion. Another
// goroutine takes the messages, and posts their receives again before it lets the sender
// have their places.
func sendsOverTCP(r *rig) contestant {
	const (
		depth   = 32
		batches = 24 // outstanding
	)
	recvs, sends := r.batch(depth)
	for i := range sends[:depth-1] {
		sends[i].Flags = dat.Suppress
	}
	posted := make(chan struct{}, batches)
	for range batches {
		must(r.b.PostRecvBatch(recvs))
		posted <- struct{}{}
	}
	return contestant{"sends", func(n int) {
		n = (n + depth - 1) / depth
		done := make(chan struct{})
		go func() {
			defer close(done)
			buf := make([]dat.Event, depth)
			for range n {
				await(r.db, buf, depth)
				must(r.b.PostRecvBatch(recvs))
				posted <- struct{}{}
			}
		}()
		buf := make([]dat.Event, batches)
		for range n {
			<-posted
			must(r.a.PostBatch(sends))
			must(r.da.Dequeue(buf))
		}
		<-done
		must(r.da.Dequeue(buf))
	}}
}

func named(name string, c contestant) contestant { return contestant{name, c.run} }

func closeAll(conns ...net.Conn) {
	for _, c := range conns {
		check(c.Close())
	}
}
