package runtime_test

import (
	"context"
	"encoding/binary"
	"fmt"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// wait takes the next completion.
func (p *pair) wait() (event.Event, error) {
	ev, _, err := p.events.Wait(context.Background(), 1)
	return ev, err
}

// Two endpoints connect by DAT's own calls: one listens, the other connects, and the
// first one accepts. Dial and Listen do this and more.
func ExampleEndpoint() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	if err := hello(ia); err != nil {
		fmt.Println(err)
	}
	// Output:
	// client: ESTABLISHED
	// server: ESTABLISHED
	// the server has "hello"
}

func hello(ia *dat.IA) error {
	pz, err := ia.NewPZ()
	if err != nil {
		return err
	}
	memory, err := pz.Alloc(4096, hw.LocalRead|hw.LocalWrite)
	if err != nil {
		return err
	}
	// One receive, and two places for each connection.
	events, err := ia.NewDispatcher(evd.Config{QLen: 8, Mode: evd.ModeChannel})
	if err != nil {
		return err
	}
	cfg := ep.Config{PZ: pz, Recv: events, Request: events, Conn: events}
	cfg.Context = "client"
	client, err := ia.NewEndpoint(cfg)
	if err != nil {
		return err
	}
	cfg.Context = "server"
	server, err := ia.NewEndpoint(cfg)
	if err != nil {
		return err
	}
	psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: events})
	if err != nil {
		return err
	}
	if err = client.Connect(ep.ConnectConfig{Qual: psp.Qual()}); err != nil {
		return err
	}
	for ev := range events.C() {
		switch ev.Number {
		case event.ConnectionRequest:
			// The receive is posted before the peer may send.
			if err = server.PostRecv(1, 0, memory.Segment(0, 64)); err == nil {
				err = ep.RequestOf(ev).Accept(server, nil)
			}
		case event.Established:
			e := ep.Of(ev)
			fmt.Printf("%s: %s\n", e.Context(), ev.Number)
			if e == client {
				copy(memory.Bytes()[64:], "hello")
				err = e.PostSend(2, hw.Suppress, memory.Segment(64, 5))
			}
		case event.DTOCompletion:
			fmt.Printf("the %s has %q\n", ep.Of(ev).Context(), memory.Bytes()[:ev.Length])
			return ev.Err()
		default: // an attempt to connect failed
			err = ev.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A peer that was told the name of memory writes and reads the memory; the program that
// owns it takes no part.
func ExampleEndpoint_rdma() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		// The owner would send the name in a message; here it stays in a slice.
		name, err := p.memory.Remote(1024, 16).AppendBinary(nil)
		if err != nil {
			return err
		}
		theirs, err := mem.ParseRemoteSegment(name)
		if err != nil {
			return err
		}
		copy(p.memory.Bytes(), "written by RDMA!")
		if err = p.client.PostRDMAWrite(1, hw.Suppress, theirs, p.memory.Segment(0, 16)); err != nil {
			return err
		}
		// A read behind a write finds what was written.
		if err = p.client.PostRDMARead(2, 0, theirs, p.memory.Segment(32, 16)); err != nil {
			return err
		}
		ev, err := p.wait()
		if err != nil {
			return err
		}
		fmt.Printf("%s of %d bytes: %q\n", ev.Op, ev.Length, p.memory.Bytes()[32:48])
		return ev.Err()
	})
	// Output: RDMA_READ of 16 bytes: "written by RDMA!"
}

// Atomics change a number of 8 bytes in the peer's byte order, and return its value
// from before. Their events are the InfiniBand extension's.
func ExampleEndpoint_atomics() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		bytes := p.memory.Bytes()
		binary.NativeEndian.PutUint64(bytes[1024:], 40)
		counter, before := p.memory.Remote(1024, 8), p.memory.Segment(0, 8)
		if err := p.client.PostFetchAdd(1, 0, 2, counter, before); err != nil {
			return err
		}
		ev, err := p.wait()
		if err != nil {
			return err
		}
		fmt.Println(ev.Number == event.IBDTOEvent, ev.Op, binary.NativeEndian.Uint64(bytes), ev.Err())

		// 100 replaces 42, and would replace no other number.
		if err = p.client.PostCompareSwap(2, 0, 42, 100, counter, before); err != nil {
			return err
		}
		if ev, err = p.wait(); err != nil {
			return err
		}
		fmt.Println(ev.Op, binary.NativeEndian.Uint64(bytes), ev.Err())
		fmt.Println("now", binary.NativeEndian.Uint64(bytes[1024:]))
		return nil
	})
	// Output:
	// true FETCH_ADD 40 <nil>
	// CMP_SWAP 42 <nil>
	// now 100
}

// A write with immediate data tells the peer's program of its arrival: it takes one of
// the peer's receives, whose event has the immediate data.
func ExampleEndpoint_immediate() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		if err := p.server.PostRecv(1, 0); err != nil { // without memory, since the bytes go elsewhere
			return err
		}
		there := p.memory.Remote(1024, 64)
		if err := p.client.PostRDMAWriteImmediate(2, hw.Suppress, 99, there, p.memory.Segment(0, 64)); err != nil {
			return err
		}
		ev, err := p.wait()
		if err != nil {
			return err
		}
		block, ok := ev.Immediate()
		fmt.Println(ev.Op, ev.Length, "bytes, block", block, ok)
		return ev.Err()
	})
	// Output: RECV_IMMED 64 bytes, block 99 true
}

// A batch of posts is one call, which says how many of them it took.
func ExampleDTO() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		_, err := p.server.PostRecvBatch([]ep.DTO{
			{Cookie: 1, Segment: p.memory.Segment(0, 64)},
			{Cookie: 2, Segment: p.memory.Segment(64, 64)},
		})
		if err != nil {
			return err
		}
		n, err := p.client.PostBatch([]ep.DTO{
			{Op: hw.OpWrite, Flags: hw.Suppress, Remote: p.memory.Remote(1024, 64), Segment: p.memory.Segment(128, 64)},
			{Op: hw.OpSend, Flags: hw.Suppress, Segment: p.memory.Segment(128, 5)},
			{Op: hw.OpSend, Flags: hw.Suppress, Segment: p.memory.Segment(128, 7)},
		})
		if err != nil {
			return err
		}
		ev, more, err := p.events.Wait(context.Background(), 2)
		if err != nil {
			return err
		}
		fmt.Println(n, "were taken; receive", ev.Cookie, "has", ev.Length, "bytes, and", more, "more came")
		return nil
	})
	// Output: 3 were taken; receive 1 has 5 bytes, and 1 more came
}

// Each endpoint of a shared receive queue takes its receives from there. The low
// watermark says when it is time to post more.
func ExampleSRQ() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		srq, err := p.ia.NewSRQ(p.pz, 4, 0)
		if err != nil {
			return err
		}
		cfg := p.endpoint()
		cfg.SRQ, cfg.Attr = srq, &ep.Attr{}
		client, server, err := p.connect(cfg)
		if err != nil {
			return err
		}
		for cookie := range uint64(2) {
			if err = srq.PostRecv(cookie, p.memory.Segment(0, 64)); err != nil {
				return err
			}
		}
		if err = srq.SetLowWatermark(2); err != nil {
			return err
		}
		if err = client.PostSend(0, hw.Suppress, p.memory.Segment(64, 5)); err != nil {
			return err
		}
		ev, err := p.wait()
		if err != nil {
			return err
		}
		fmt.Println(ev.Op, ev.Cookie, "by the server:", ep.Of(ev) == server)

		low, _, err := p.ia.Async().Wait(context.Background(), 1)
		if err != nil {
			return err
		}
		_, why, _ := low.Async()
		fmt.Println("few are left:", ep.SRQOf(low) == srq && why == event.SRQLowWatermark)
		return nil
	})
	// Output:
	// RECEIVE 0 by the server: true
	// few are left: true
}

// A window lets the peer reach a part of a region, until it is unbound.
func ExampleRMR() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		private, err := p.pz.Alloc(4096, hw.LocalRead|hw.LocalWrite)
		if err != nil {
			return err
		}
		window, err := p.pz.NewRMR()
		if err != nil {
			return err
		}
		// The name may be sent to the peer at once: a post after the bind finds the
		// window bound.
		name, err := p.server.PostBind(1, 0, window, mem.Binding{Segment: private.Segment(512, 16), Privileges: hw.RemoteWrite})
		if err != nil {
			return err
		}
		ev, err := p.wait()
		if err != nil {
			return err
		}
		fmt.Println(ev.Number, ep.RMROf(ev) == window, ev.Err())

		write := func() error {
			if err := p.client.PostRDMAWrite(2, 0, name, p.memory.Segment(0, 16)); err != nil {
				return err
			}
			ev, err := p.wait()
			fmt.Println(ev.Op, ev.Status)
			return err
		}
		if err = write(); err != nil {
			return err
		}
		if _, err = p.server.PostBind(3, hw.Suppress, window, mem.Binding{}); err != nil {
			return err
		}
		return write() // which breaks the connection
	})
	// Output:
	// RMR_BIND_COMPLETION true <nil>
	// RDMA_WRITE SUCCESS
	// RDMA_WRITE ERR_REMOTE_ACCESS
}

// A program may change attributes until the endpoint is connected. Query returns the
// values in effect.
func ExampleEndpoint_modify() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		e, err := p.ia.NewEndpoint(p.endpoint())
		if err != nil {
			return err
		}
		show := func() error {
			q, err := e.Query()
			fmt.Println(q.Attr.MaxRecvDTOs, "receives of", q.Attr.MaxRecvIOV, "segments")
			return err
		}
		if err = show(); err != nil {
			return err
		}
		err = e.Modify(ep.Param{Attr: ep.Attr{MaxRecvDTOs: 64, MaxRecvIOV: 8}}, "MaxRecvDTOs", "MaxRecvIOV")
		if err != nil {
			return err
		}
		return show()
	})
	// Output:
	// 16 receives of 4 segments
	// 64 receives of 8 segments
}

// When two ends connect they agree how many RDMA reads may be outstanding: no more than
// the one asks for and the other allows.
func ExampleEndpoint_reads() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		cfg := p.endpoint()
		cfg.Attr = &ep.Attr{MaxReadIn: 2, MaxReadOut: 3}
		client, server, err := p.connect(cfg)
		if err != nil {
			return err
		}
		in, out := server.Reads()
		fmt.Println("the client may have", in, "reads outstanding, the server", out)
		q, err := client.Query()
		if err != nil {
			return err
		}
		fmt.Println("the server is reached over", q.RemoteAddr.Network())
		return nil
	})
	// Output:
	// the client may have 2 reads outstanding, the server 3
	// the server is reached over loop
}
