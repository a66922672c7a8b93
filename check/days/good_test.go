package days

import (
	"io"
	"time"

	dat "godat/runtime"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

// good are days on which the page raises nothing.
var good = []day{
	{"nothing is to do", "", "", 5 * time.Minute, func(s *stage) {
		ln, here, there := s.pair(dat.ConnConfig{Depth: 8})
		s.drain(there.Events())
		s.drain(ln.Events())
		_ = here
	}},
	{"a first reading", "", "", time.Second, func(*stage) {}},
	{"busy, and well", "", "", 4 * time.Minute, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{}, 8, func(*rpc.Request) ([]byte, error) { s.sleep(3 * time.Millisecond); return nil, nil })
		for range 2 {
			c := s.client(s.other, server.Addr(), rpc.Config{})
			for method := range uint16(8) {
				s.always(50*time.Millisecond, func() { _ = s.call(c, method, time.Second) })
			}
		}
	}},
	{"some answers are errors, as they are every day", "", "", 4 * time.Minute, func(s *stage) {
		n := 0
		server := s.serve(s.ia, ":0", rpc.Config{}, 1, func(*rpc.Request) ([]byte, error) {
			if n++; n%10 == 0 {
				return nil, &rpc.Error{Code: rpc.CodeUser, Text: "no such key"}
			}
			return nil, nil
		})
		c := s.client(s.other, server.Addr(), rpc.Config{})
		s.always(100*time.Millisecond, func() { _ = s.call(c, 1, time.Second) })
	}},
	{"long-lived streams that say little", "", "", 10 * time.Minute, func(s *stage) {
		ln := must(stream.Listen(s.ctx, s.ia, ":0", stream.Config{}))
		s.atEnd(func() { _ = ln.Close() })
		s.work.Go(func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				s.work.Go(func() {
					_, _ = io.Copy(io.Discard, c)
					_ = c.Close()
				})
			}
		})
		for range 3 {
			c := must((&stream.Dialer{IA: s.other}).DialContext(s.ctx, "tcp", ln.Addr().String()))
			s.atEnd(func() { _ = c.Close() })
			s.always(45*time.Second, func() { _, _ = c.Write([]byte("still here")) })
		}
	}},
	{"bulk", "", "", 4 * time.Minute, func(s *stage) {
		ln := must(stream.Listen(s.ctx, s.ia, ":0", stream.Config{}))
		s.atEnd(func() { _ = ln.Close() })
		s.work.Go(func() {
			if c, err := ln.Accept(); err == nil {
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}
		})
		c := must((&stream.Dialer{IA: s.other}).DialContext(s.ctx, "tcp", ln.Addr().String()))
		s.atEnd(func() { _ = c.Close() })
		s.always(100*time.Millisecond, func() { _, _ = c.Write(make([]byte, 256<<10)) })
	}},
	{"connections come and go", "", "", 4 * time.Minute, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{}, 8, fine)
		s.always(time.Second, func() {
			c, err := rpc.Dial(s.ctx, s.other, server.Addr(), rpc.Config{})
			if err == nil {
				_ = s.call(c, 1, time.Second)
				_ = c.Close()
			}
		})
	}},
}
