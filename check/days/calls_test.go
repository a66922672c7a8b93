package days

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"godat/runtime/rpc"
)

func fine(*rpc.Request) ([]byte, error) { return []byte("fine"), nil }

// ofCalls are bad days of programs that call, and of programs that answer.
var ofCalls = []day{
	{"every call is late", `rpc client to \S+: the server answers too late, after about 3 s: \d+ calls? missed the deadline of 1 s .* why method 1 takes so long`, `no answer comes from the server: \d calls? missed`, 0, func(s *stage) {
		server := s.serve(s.other, ":0", rpc.Config{}, 4, func(*rpc.Request) ([]byte, error) { s.sleep(3 * time.Second); return nil, nil })
		c := s.client(s.ia, server.Addr(), rpc.Config{})
		s.always(100*time.Millisecond, func() { _ = s.call(c, 1, time.Second) })
	}},
	{"every answer is late, on the server's page", `rpc server on \S+: the handlers are slower than the callers' deadline: method 1 takes about 1\.5 s; \d+ calls? (was|were) answered behind the deadline of 1 s`, "", 0, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{}, 4, func(*rpc.Request) ([]byte, error) { s.sleep(1500 * time.Millisecond); return nil, nil })
		c := s.client(s.other, server.Addr(), rpc.Config{})
		s.always(100*time.Millisecond, func() { _ = s.call(c, 1, time.Second) })
	}},
	{"the deadlines are too short", `the server answers too late, after about [5-9] ms: \d+ calls? missed the deadline of 4 ms`, "", 0, func(s *stage) {
		server := s.serve(s.other, ":0", rpc.Config{}, 4, func(*rpc.Request) ([]byte, error) { s.sleep(5 * time.Millisecond); return nil, nil })
		c := s.client(s.ia, server.Addr(), rpc.Config{})
		s.always(50*time.Millisecond, func() { _ = s.call(c, 1, 4*time.Millisecond) })
	}},
	{"callers wait for a place", `rpc client to \S+: Config.Calls of both ends allows 2 calls at a time, and a call takes about 3\d\d ms, .*: \d+ callers wait for a place`, "", 0, func(s *stage) {
		server := s.serve(s.other, ":0", rpc.Config{Calls: 2}, 64, func(*rpc.Request) ([]byte, error) { s.sleep(300 * time.Millisecond); return nil, nil })
		c := s.client(s.ia, server.Addr(), rpc.Config{Calls: 2})
		for range 48 {
			s.always(time.Millisecond, func() { _ = s.call(c, 1, time.Minute) })
		}
	}},
	{"half of the answers are errors", `rpc server on \S+: this server's program says no: \d+ of \d+ answers of the last minute are errors of the application's own \(\d+ code 260\); the last time, \S+ m?s ago, it said: "no such account"`, "", 0, func(s *stage) {
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
	{"the disk of a store is full", `rpc server on \S+: this server's program fails: all \d+ answers of the last minute are errors \(\d+ CodeFailed\); the last time, .*it said: ".*no space left on device"`, "", 0, func(s *stage) {
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
	{"the disk of a store is slow", `rpc server on \S+: the handlers are slow: method 2 takes about [1-4](\.\d+)? s, so that all 4 handlers are busy, .*; \d+ requests wait for a handler`, "", 0, func(s *stage) {
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
	{"a handler is stuck", `rpc server on \S+: a handler of method 9 hangs: it has had a request of the client \S+ \(connection \d+\) for \S+ .*, while \d+ answers were given`, "", 0, func(s *stage) {
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
	{"all handlers are stuck", `rpc server on \S+: all 2 handlers are blocked: none has answered for .*; 4 requests wait for a handler`, "", 0, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{}, 2, func(*rpc.Request) ([]byte, error) { <-s.ctx.Done(); return nil, nil })
		c := s.client(s.other, server.Addr(), rpc.Config{})
		for range 6 {
			s.work.Go(func() { _ = s.call(c, 9, time.Hour) })
		}
	}},
	{"the server's program never serves", `rpc server on \S+: this program takes no requests, since it neither runs Serve nor reads Requests: \d+ requests? waits?`, `\d+ calls waited a second or longer for a handler`, 0, func(s *stage) {
		server := must(rpc.Listen(s.ctx, s.ia, ":0", rpc.Config{}))
		s.atEnd(func() { _ = server.Close() })
		c := s.client(s.other, server.Addr(), rpc.Config{})
		for range 4 { // who come again before anybody has waited for long
			s.always(900*time.Millisecond, func() { _ = s.call(c, 1, 2*time.Second) })
		}
	}},
	{"one client takes all", `rpc server on \S+: one client, \S+ \(connection \d+\), asks for more than the handlers can do: \d\d of \d\d requests that wait are its, .*; all 2 handlers are busy, a request takes about 200 ms`, "", 0, func(s *stage) {
		server := s.serve(s.ia, ":0", rpc.Config{Calls: 64}, 2, func(*rpc.Request) ([]byte, error) { s.sleep(200 * time.Millisecond); return nil, nil })
		greedy := s.client(s.other, server.Addr(), rpc.Config{Calls: 64})
		for range 60 {
			s.always(time.Millisecond, func() { _ = s.call(greedy, 5, time.Minute) })
		}
		modest := s.client(s.other, server.Addr(), rpc.Config{})
		s.always(100*time.Millisecond, func() { _ = s.call(modest, 1, time.Minute) })
	}},
	{"a storm of connections", `rpc server on \S+: this server's Config.Conns allows 8 connections at a time: \S+ further ones were refused within the last minute; .*, so clients connect anew for each call`, `have taken all 8 places`, 0, func(s *stage) {
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
	{"a server of another version", `rpc client to \S+: the server speaks version 9 of the protocol, and this client version 2: the server is the newer one`, "", 0, func(s *stage) { s.foreignHello("DATC\x00\x09") }},
	{"another program at the server's address", `another program listens there`, "", 0, func(s *stage) { s.foreignHello("HELO\x00\x02") }},
}
