package days

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw/iwarp"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// foreignHello is a server that is replaced by one that says something else of itself.
func (s *stage) foreignHello(says string) {
	ia := s.open("loop")
	server := must(rpc.Listen(s.ctx, ia, ":0", rpc.Config{}))
	s.work.Go(func() { _ = server.Serve(s.ctx, 1, fine) })
	c := s.client(s.ia, server.Addr(), rpc.Config{Redial: time.Second})
	s.always(100*time.Millisecond, func() { _ = s.call(c, 1, 10*time.Second) })
	s.work.Go(func() {
		s.sleep(3 * time.Second)
		_ = server.Close()
		_ = ia.Close()
		ln := must(s.other.Listen(s.ctx, server.Addr(), dat.ConnConfig{}))
		for {
			select {
			case <-s.ctx.Done():
				return
			case ev := <-ln.Requests():
				_ = ep.RequestOf(ev).Reject(append([]byte(says), 0, 0))
			}
		}
	})
}

// noTLS is a configuration of TLS by which no start-up succeeds.
var noTLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, io.EOF }}

// listens accepts whatever comes to an adapter, and gives buffers back.
func (s *stage) listens(ia *dat.IA) *dat.Listener {
	ln := must(ia.Listen(s.ctx, "127.0.0.1:0", dat.ConnConfig{}))
	s.accepts(ln)
	return ln
}

// accepts accepts whatever comes to a listener, and gives buffers back.
func (s *stage) accepts(ln *dat.Listener) {
	s.drain(ln.Events())
	s.work.Go(func() {
		for {
			select {
			case <-s.ctx.Done():
				return
			case ev := <-ln.Requests():
				_, _ = ln.Accept(ep.RequestOf(ev), nil)
			}
		}
	})
}

// dials dials again and again, and keeps nothing.
func (s *stage) dials(ia *dat.IA, at string) {
	s.always(300*time.Millisecond, func() {
		ctx, cancel := context.WithTimeout(s.ctx, 3*time.Second)
		defer cancel()
		if c, err := ia.Dial(ctx, at, dat.ConnConfig{}); err == nil {
			_ = c.Close()
		}
	})
}

// dialsAndStays dials again when the connection ends.
func (s *stage) dialsAndStays(ia *dat.IA, at string) {
	s.always(time.Second, func() {
		c, err := ia.Dial(s.ctx, at, dat.ConnConfig{Timeout: 3 * time.Second})
		for err == nil {
			var m *mem.Buffer
			if m, err = c.Receive(s.ctx); err == nil {
				c.Release(m)
			}
		}
	})
}

// answering is a TCP server that answers each connection as it likes.
func (s *stage) answering(answer func(net.Conn)) string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	s.atEnd(func() { _ = l.Close() })
	s.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.work.Go(func() {
				defer c.Close()
				context.AfterFunc(s.ctx, func() { _ = c.Close() })
				answer(c)
			})
		}
	})
	return l.Addr().String()
}

// slow is a connection with a delay and a rate.
type slow struct {
	net.Conn
	each time.Duration
}

func (c slow) Write(b []byte) (int, error) {
	time.Sleep(c.each)
	return c.Conn.Write(b)
}

// ofNetworks are bad days of networks, over TCP.
var ofNetworks = []day{
	{"peers speak TLS to a port without it", `Listener\(\S+\): \d+ peers? (was|were) turned away within the last minute, each because a peer began TLS, and this listener speaks none`, "", 0, func(s *stage) {
		s.iwarp(iwarp.Config{}, iwarp.Config{Dial: func(ctx context.Context, at string) (net.Conn, error) {
			return (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", at) //nolint:gosec // the day is about that
		}})
		s.dials(s.other, s.listens(s.ia).Addr())
	}},
	{"peers speak no TLS to a port with it", `Listener\(\S+\): \d+ peers? (was|were) turned away .*start-up of TLS failed, for it began without TLS`, "", 0, func(s *stage) {
		s.iwarp(iwarp.Config{Listen: func(at string) (net.Listener, error) { return tls.Listen("tcp", at, noTLS) }}, iwarp.Config{})
		s.dials(s.other, s.listens(s.ia).Addr())
	}},
	{"this program speaks no TLS to a server with it", `attempts? to connect .*(wants TLS, which this end did not begin|as TLS does)`, "", 0, func(s *stage) {
		s.iwarp(iwarp.Config{}, iwarp.Config{Listen: func(at string) (net.Listener, error) { return tls.Listen("tcp", at, noTLS) }})
		s.dials(s.ia, s.listens(s.other).Addr())
	}},
	{"a browser asks the port of iWARP", `each because a peer sent a request of HTTP to this port, .*; the last came from 127.0.0.1:\d+`, "", 0, func(s *stage) {
		s.iwarp(iwarp.Config{}, iwarp.Config{})
		ln := s.listens(s.ia)
		s.always(300*time.Millisecond, func() {
			r, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://"+ln.Addr()+"/", nil)
			if err == nil {
				if a, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r); err == nil {
					_ = a.Body.Close()
				}
			}
		})
	}},
	{"this program dials a web server", `attempts? to connect .*what listens there answers with "HTTP\S+ .*as HTTP does`, "", 0, func(s *stage) {
		s.iwarp(iwarp.Config{}, iwarp.Config{})
		s.dials(s.ia, s.answering(func(c net.Conn) {
			_, _ = c.Read(make([]byte, 100))
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request")
		}))
	}},
	{"connections are refused", `attempts? to connect .*(refused|listens there)`, "", 0, func(s *stage) {
		s.iwarp(iwarp.Config{}, iwarp.Config{})
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		at := l.Addr().String()
		require.NoError(s, l.Close())
		s.dials(s.ia, at)
	}},
	{"a peer answers garbage", `ended .* ago with BROKEN: (MPA|DDP|RDMAP)`, "", 0, func(s *stage) {
		s.iwarp(iwarp.Config{}, iwarp.Config{})
		ln := s.listens(s.other)
		at := s.between(ln.Addr(), func(c, to net.Conn) { // puts garbage behind the start-up
			b := make([]byte, 4096)
			n, _ := to.Read(b)
			_, _ = c.Write(b[:n])
			_, _ = c.Write(bytes.Repeat([]byte("This is no FPDU at all. "), 5000))
			_, _ = io.Copy(io.Discard, to)
		})
		s.dialsAndStays(s.ia, at)
	}},
	{"the link is slow", `missed the deadline|callers? waits?|calls? waits?`, "", 0, func(s *stage) {
		shaped := func(ctx context.Context, at string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", at)
			return slow{c, 700 * time.Millisecond}, err
		}
		s.iwarp(iwarp.Config{Dial: shaped}, iwarp.Config{})
		server := s.serve(s.other, "127.0.0.1:0", rpc.Config{}, 4, fine)
		c := s.client(s.ia, server.Addr(), rpc.Config{})
		for range 4 {
			s.always(50*time.Millisecond, func() { _ = s.call(c, 1, 500*time.Millisecond) })
		}
	}},
	{"the link loses connections", `calls? lost the connection|no connection after|failed .* within a minute`, "", 0, func(s *stage) {
		lossy := func(ctx context.Context, at string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", at)
			if err == nil {
				time.AfterFunc(700*time.Millisecond, func() { _ = c.Close() })
			}
			return c, err
		}
		s.iwarp(iwarp.Config{Dial: lossy}, iwarp.Config{})
		server := s.serve(s.other, "127.0.0.1:0", rpc.Config{}, 4, func(*rpc.Request) ([]byte, error) { s.sleep(200 * time.Millisecond); return nil, nil })
		c := s.client(s.ia, server.Addr(), rpc.Config{Redial: 10 * time.Millisecond})
		for range 4 {
			s.always(10*time.Millisecond, func() { _ = s.call(c, 1, time.Second) })
		}
	}},
	{"the peer's process is paused", silent, "", 0, func(s *stage) {
		s.iwarp(iwarp.Config{}, iwarp.Config{}, dat.WithParams(map[string]string{"keepalive": "4s"}))
		s.paused()
	}},
	{"an idle peer's process is paused, and nothing is set", silent, "", unasked, func(s *stage) {
		s.iwarp(iwarp.Config{}, iwarp.Config{})
		s.paused()
	}},
	{"a peer begins a message and does not finish it", `ended .* ago with BROKEN: MPA: the rest of an FPDU did not come in 5`, "", unasked, func(s *stage) {
		s.iwarp(iwarp.Config{}, iwarp.Config{}, dat.WithParams(map[string]string{"stall": "5s"}))
		ln := s.listens(s.other)
		at := s.between(ln.Addr(), func(c, to net.Conn) { // what comes from the peer: the start-up, and a part of the first FPDU
			b := make([]byte, 4096)
			if n, err := to.Read(b); err == nil {
				_, _ = c.Write(b[:n])
			}
			if _, err := to.Read(b); err == nil {
				_, _ = c.Write(b[:10])
			}
			<-s.ctx.Done()
		})
		c := must(s.ia.Dial(s.ctx, at, dat.ConnConfig{}))
		s.drain(c.Events())
	}},
}

// unasked is how soon the silence of a peer of which nobody asks anything is told: keepalive is 30 s where nothing is
// set, and until then the device has asked the peer nothing that it owes.
const unasked = 45 * time.Second

// silent is what the page says of a peer that says nothing.
const silent = `the peer \S+ has not answered for \S+ s: (TCP acknowledges, so )?its process is stopped or stuck|nothing has come from the peer for`

// between is a TCP server that carries what comes to another one; carry has the way back.
func (s *stage) between(address string, carry func(c, to net.Conn)) string {
	return s.answering(func(c net.Conn) {
		to, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer to.Close()
		go func() { _, _ = io.Copy(to, c) }()
		carry(c, to)
	})
}

// paused is a connection to a peer that takes and says nothing more a second later.
func (s *stage) paused() {
	ln := s.listens(s.other)
	paused, over := make(chan struct{}), s.ctx.Done()
	time.AfterFunc(time.Second, func() { close(paused) })
	carry := func(to, from net.Conn) {
		b := make([]byte, 4096)
		for {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			select {
			case <-paused:
				<-over
				return
			default:
			}
			if _, err = to.Write(b[:n]); err != nil {
				return
			}
		}
	}
	at := s.answering(func(c net.Conn) {
		to, err := net.Dial("tcp", ln.Addr())
		if err != nil {
			return
		}
		defer to.Close()
		go carry(to, c)
		carry(c, to)
	})
	c := must(s.ia.Dial(s.ctx, at, dat.ConnConfig{Depth: 64}))
	s.drain(c.Events())
}
