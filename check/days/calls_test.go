package days

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"godat/runtime/rpc"
)

func fine(*rpc.Request) ([]byte, error) { return []byte("fine"), nil }

// ofCalls are bad days of programs that call, and of programs that answer.
var ofCalls = []day{
	{"every call is late", `rpc client to \S+: \d+ calls? missed the deadline`, "", 0, func(s *stage) {
		server := s.serve(s.other, ":0", rpc.Config{}, 4, func(*rpc.Request) ([]byte, error) { s.sleep(3 * time.Second); return nil, nil })
		c := s.client(s.ia, server.Addr(), rpc.Config{})
		s.always(100*time.Millisecond, func() { _ = s.call(c, 1, time.Second) })
	}},
	{"every answer is late, on the server's page", `rpc server on \S+: \d+ calls? answered behind the deadline`, `behind the deadline|has not answered it`, 0, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{}, 4, func(*rpc.Request) ([]byte, error) { s.sleep(1500 * time.Millisecond); return nil, nil })
		c := s.client(s.other, server.Addr(), rpc.Config{})
		s.always(100*time.Millisecond, func() { _ = s.call(c, 1, time.Second) })
	}},
	{"the deadlines are too short", `\d+ calls? missed the deadline`, "", 0, func(s *stage) {
		server := s.serve(s.other, ":0", rpc.Config{}, 4, func(*rpc.Request) ([]byte, error) { s.sleep(5 * time.Millisecond); return nil, nil })
		c := s.client(s.ia, server.Addr(), rpc.Config{})
		s.always(50*time.Millisecond, func() { _ = s.call(c, 1, 4*time.Millisecond) })
	}},
	{"callers wait for a place", `\d+ callers wait for a place`, "waited a second or longer", 0, func(s *stage) {
		server := s.serve(s.other, ":0", rpc.Config{Calls: 2}, 64, func(*rpc.Request) ([]byte, error) { s.sleep(300 * time.Millisecond); return nil, nil })
		c := s.client(s.ia, server.Addr(), rpc.Config{Calls: 2})
		for range 48 {
			s.always(time.Millisecond, func() { _ = s.call(c, 1, time.Minute) })
		}
	}},
	{"half of the answers are errors", `answers of the last minute are errors: \d+ .*no such account`, "", 0, func(s *stage) {
		var n atomic.Uint64
		server := s.serve(s.ia, ":0", rpc.Config{}, 4, func(*rpc.Request) ([]byte, error) {
			if n.Add(1)%2 == 0 {
				return nil, &rpc.Error{Code: rpc.CodeUser + 4, Text: "no such account"}
			}
			return nil, nil
		})
		c := s.client(s.other, server.Addr(), rpc.Config{})
		s.always(100*time.Millisecond, func() { _ = s.call(c, 1, time.Second) })
	}},
	{"the disk of a store is full", `answers of the last minute are errors: .*no space left on device`, "", 0, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{}, 4, func(r *rpc.Request) ([]byte, error) {
			if f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
				defer f.Close()
				_, err = f.Write(r.Payload())
				return nil, err
			}
			return nil, fmt.Errorf("write: %w", syscall.ENOSPC)
		})
		c := s.client(s.other, server.Addr(), rpc.Config{})
		s.always(100*time.Millisecond, func() { _ = s.call(c, 1, time.Second) })
	}},
	{"the disk of a store is slow", `rpc server on \S+: \d+ requests? waits?|waited a second or longer for their turn`, `has not answered`, 0, func(s *stage) {
		disk := make(chan struct{}, 1) // one write at a time
		server := s.serve(s.ia, ":0", rpc.Config{}, 4, func(*rpc.Request) ([]byte, error) {
			disk <- struct{}{}
			defer func() { <-disk }()
			s.sleep(900 * time.Millisecond)
			return nil, nil
		})
		c := s.client(s.other, server.Addr(), rpc.Config{Calls: 16})
		for range 12 {
			s.always(time.Millisecond, func() { _ = s.call(c, 2, time.Minute) })
		}
	}},
	{"a handler is stuck", `took 1 request, of method 9, and has not answered it`, "", 0, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{}, 4, func(r *rpc.Request) ([]byte, error) {
			if r.Method() == 9 {
				<-s.ctx.Done()
			}
			return nil, nil
		})
		c := s.client(s.other, server.Addr(), rpc.Config{})
		s.work.Go(func() { _ = s.call(c, 9, time.Hour) })
		s.always(100*time.Millisecond, func() { _ = s.call(c, 1, time.Second) })
	}},
	{"all handlers are stuck", `rpc server on \S+: \d+ requests wait for a handler`, `took \d requests? .*not answered`, 0, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{}, 2, func(*rpc.Request) ([]byte, error) { <-s.ctx.Done(); return nil, nil })
		c := s.client(s.other, server.Addr(), rpc.Config{})
		for range 6 {
			s.work.Go(func() { _ = s.call(c, 9, time.Hour) })
		}
	}},
	{"the server's program never serves", `rpc server on \S+: (\d+ requests? waits?|\d+ calls waited a second or longer)`, "", 0, func(s *stage) {
		server, err := rpc.Listen(s.ctx, s.ia, ":0", rpc.Config{})
		require.NoError(s, err)
		s.atEnd(func() { _ = server.Close() })
		c := s.client(s.other, server.Addr(), rpc.Config{})
		for range 4 { // who come again before anybody has waited for long
			s.always(900*time.Millisecond, func() { _ = s.call(c, 1, 2*time.Second) })
		}
	}},
	{"one client takes all", `rpc server on \S+: .*\d\d requests wait for a handler.*, \d\d of them of the client \S+`, `not answered`, 0, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{Calls: 64}, 2, func(*rpc.Request) ([]byte, error) { s.sleep(200 * time.Millisecond); return nil, nil })
		greedy := s.client(s.other, server.Addr(), rpc.Config{Calls: 64})
		for range 60 {
			s.always(time.Millisecond, func() { _ = s.call(greedy, 5, time.Minute) })
		}
		modest := s.client(s.other, server.Addr(), rpc.Config{})
		s.always(100*time.Millisecond, func() { _ = s.call(modest, 1, time.Minute) })
	}},
	{"a storm of connections", `Listener\(\S+\): ([\d ]+ peers were refused within the last minute|.*have taken all 8 places)`, "", 0, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{Conns: 8}, 4, fine)
		for range 64 {
			s.always(time.Second, func() {
				if c, err := rpc.Dial(s.ctx, s.other, server.Addr(), rpc.Config{}); err == nil {
					_ = s.call(c, 1, time.Second)
					s.sleep(100 * time.Millisecond)
					_ = c.Close()
				}
			})
		}
	}},
	{"the server is gone", `no connection after \d+ failed attempts?|calls? lost the connection|no connection`, "", 0, func(s *stage) {
		ia := s.open("loop")
		server := s.serve(ia, ":0", rpc.Config{}, 4, fine)
		c := s.client(s.ia, server.Addr(), rpc.Config{Redial: time.Second})
		s.always(100*time.Millisecond, func() { _ = s.call(c, 1, 10*time.Second) })
		s.work.Go(func() { s.sleep(3 * time.Second); _ = ia.Close() })
	}},
	{"a server of another version", `this end version|another version|speaks version`, "", 0, func(s *stage) { s.foreignHello("DATC\x00\x09") }},
	{"another program at the server's address", `another program listens there`, "", 0, func(s *stage) { s.foreignHello("HELO\x00\x02") }},
}
