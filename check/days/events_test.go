package days

import (
	"context"
	"runtime"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

const endless = 150 * time.Second // what grows without end is told from load that grows

// pair makes a connection between the two programs.
func (s *stage) pair(cfg dat.ConnConfig) (ln *dat.Listener, here, there *dat.Conn) {
	ln = must(s.ia.Listen(s.ctx, ":0", cfg))
	dialed := make(chan *dat.Conn)
	go func() {
		c := must(s.other.Dial(s.ctx, ln.Addr(), cfg))
		dialed <- c
	}()
	here = must(ln.Accept(ep.RequestOf(<-ln.Requests()), nil))
	return ln, here, <-dialed
}

// drain takes what comes to a channel, and gives buffers back.
func (s *stage) drain(events <-chan event.Event) {
	s.work.Go(func() {
		for {
			select {
			case <-s.ctx.Done():
				return
			case ev := <-events:
				if c := dat.ConnOf(ev); c != nil && ev.Op == hw.OpRecv {
					c.Release(c.Message(ev))
				}
			}
		}
	})
}

// send sends a message, if it can be sent now.
func send(c *dat.Conn) {
	if b := c.Buffer(); b != nil {
		_, _ = b.Write([]byte("a message"))
		_ = c.Send(b)
	}
}

// ofEvents are bad days of programs with events, buffers and memory.
var ofEvents = []day{
	{"a consumer stopped reading events", `Listener\(\S+\): this program does not take the messages and completions of its connections: .* its goroutine that should take them sleeps or is blocked`, "", 0, func(s *stage) {
		_, _, there := s.pair(dat.ConnConfig{Depth: 8})
		s.drain(there.Events())
		s.always(time.Second, func() { send(there) })
	}},
	{"nobody accepts", `this program does not take connection requests: .* its goroutine that should take them sleeps or is blocked|\d+ peers? waits? for this program to accept`, "", 0, func(s *stage) {
		ln := must(s.ia.Listen(s.ctx, ":0", dat.ConnConfig{}))
		s.always(3*time.Second, func() { _, _ = s.other.Dial(s.ctx, ln.Addr(), dat.ConnConfig{Timeout: 10 * time.Second}) })
	}},
	{"the backlog overflows", `found the backlog of \d+ full|peers? waits? for this program to accept|does not take connection requests`, "were refused", 0, func(s *stage) {
		x := must(s.ia.NewDispatcher(evd.Config{QLen: 64}))
		psp := must(s.ia.NewPSP(ep.PSPConfig{Dispatcher: x, Backlog: 4}))
		for range 12 {
			s.always(time.Second, func() { _, _ = s.other.Dial(s.ctx, psp.Addr().String(), dat.ConnConfig{Timeout: 5 * time.Second}) })
		}
	}},
	{"a queue of events is full", `no room is left|posts? (was|were) refused`, "does not take", 0, func(s *stage) {
		x := must(s.ia.NewDispatcher(evd.Config{QLen: 4, Mode: evd.ModeQueue, Streams: event.StreamSoftware}))
		s.always(100*time.Millisecond, func() { _ = x.PostSoftware(1) })
	}},
	{"a callback is stuck", `this program's callback has not returned`, "", 0, func(s *stage) {
		x := must(s.ia.NewDispatcher(evd.Config{QLen: 64, Mode: evd.ModeCallback, Streams: event.StreamSoftware, Callback: func([]event.Event) { <-s.ctx.Done() }}))
		s.always(time.Second, func() { _ = x.PostSoftware(1) })
	}},
	{"buffers are never given back, until there is none", `no receive is posted: this program keeps \d+ buffers`, "", 0, func(s *stage) {
		ln, here, there := s.pair(dat.ConnConfig{Depth: 8, Attr: &ep.Attr{ReceiverNotReady: time.Hour}})
		s.drain(there.Events())
		s.work.Go(func() {
			for {
				select {
				case <-s.ctx.Done():
					return
				case ev := <-ln.Events():
					if ev.Op == hw.OpRecv {
						here.Message(ev)
					}
				}
			}
		})
		s.always(20*time.Millisecond, func() { send(there) })
	}},
	{"a pool leaks", `this program takes buffers and gives too few back: \d+ of 4.000 buffers are out, \d+ more within .*, so that none is left in about 3\d min`, "", endless, func(s *stage) {
		pz := must(s.ia.NewPZ())
		pool := must(pz.NewBufferPool(mem.BufferPoolConfig{Count: 4000, Size: 4096}))
		s.always(500*time.Millisecond, func() { pool.Get() })
	}},
	{"a pool is empty", `calls? waits? for a buffer: this program holds all`, "", 0, func(s *stage) {
		pz := must(s.ia.NewPZ())
		pool := must(pz.NewBufferPool(mem.BufferPoolConfig{Count: 8, Size: 4096}))
		s.always(500*time.Millisecond, func() { _, _ = pool.Wait(s.ctx) })
	}},
	{"registered memory leaks", `registered, more and more`, "", endless, func(s *stage) {
		pz := must(s.ia.NewPZ())
		s.always(time.Second, func() { _, _ = pz.Alloc(4096, hw.LocalRead) })
	}},
	{"handlers leak goroutines", `each call leaves a goroutine behind`, "", endless, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{}, 4, func(*rpc.Request) ([]byte, error) {
			go func() { <-s.ctx.Done() }()
			return nil, nil
		})
		c := s.client(s.other, server.Addr(), rpc.Config{})
		s.always(100*time.Millisecond, func() { _ = s.call(c, 1, time.Second) })
	}},
	{"no place is left for connections", `have taken all 2 places|peers? (was|were) refused`, "", 0, func(s *stage) {
		ln := must(s.ia.Listen(s.ctx, ":0", dat.ConnConfig{Conns: 2}))
		s.accepts(ln)
		s.always(time.Second, func() { _, _ = s.other.Dial(s.ctx, ln.Addr(), dat.ConnConfig{}) })
	}},
	{"a stream's reader stopped", `connection to \S+: this program has read nothing for`, "", 0, func(s *stage) {
		ln := must(stream.Listen(s.ctx, s.ia, ":0", stream.Config{}))
		s.atEnd(func() { _ = ln.Close() })
		s.work.Go(func() {
			c, err := ln.Accept()
			if err == nil {
				_, _ = c.Read(make([]byte, 1))
				<-s.ctx.Done()
				_ = c.Close()
			}
		})
		c := must((&stream.Dialer{IA: s.other}).DialContext(s.ctx, "tcp", ln.Addr().String()))
		s.atEnd(func() { _ = c.Close() })
		s.always(time.Second, func() {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = c.Write(make([]byte, 100))
		})
	}},
	{"the adapter is closed under traffic", `closed`, "", 0, func(s *stage) {
		_, here, there := s.pair(dat.ConnConfig{Depth: 8})
		s.drain(there.Events())
		s.drain(here.Events())
		s.always(time.Second, func() { send(there) })
		s.work.Go(func() { s.sleep(5 * time.Second); _ = s.ia.Close() })
	}},
	{"messages find no receive", `no receive was posted`, "no receive is posted|does not take", 0, func(s *stage) {
		s.always(3*time.Second, func() {
			ln, err := s.ia.Listen(s.ctx, ":0", dat.ConnConfig{Depth: 1})
			if err != nil {
				return
			}
			ctx, cancel := context.WithTimeout(s.ctx, time.Second)
			defer cancel()
			go func() {
				select {
				case ev := <-ln.Requests():
					_, _ = ln.Accept(ep.RequestOf(ev), nil)
				case <-ctx.Done():
				}
			}()
			c, err := s.other.Dial(ctx, ln.Addr(), dat.ConnConfig{Depth: 8})
			for i := 0; err == nil && i < 30; i++ {
				err = c.SendBytes([]byte("too many"))
				runtime.Gosched()
			}
			_ = ln.Close()
		})
	}},
}
