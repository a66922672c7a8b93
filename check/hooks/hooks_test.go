package hooks

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/iwarp"
	"godat/hw/sim"
	dat "godat/runtime"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

func init() { hw.MustRegister(sim.New(sim.Config{Seed: 3})) }

// atOnce is how many cases run at a time: those of a function that blocks only wait.
const atOnce = "24"

// The pool package starts two goroutines of its own when it is imported.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// hook is a place where the library calls a function of the program's. make makes what it belongs to;
// use makes the library call it, and closing closes what it belongs to.
type hook struct {
	name string
	make func(w *world) (use, closing func() error)
	// fatal says that a panic ends the process, as in any goroutine: the documentation says so, and
	// runtime's TestAPanicInACallbackEndsTheProcess shows it.
	fatal bool
	// config, of functions that only iwarp has, makes the provider's configuration.
	config func(w *world) iwarp.Config
	// waits says that a close waits for the function, for a while, and says so.
	waits bool
}

var hooks = []hook{
	{name: "Setup of an accept", waits: true, make: func(w *world) (use, closing func() error) {
		var ln *dat.Listener
		ln = w.echo(dat.ConnConfig{Timeout: short, Setup: func(c *dat.Conn) ([]byte, error) {
			w.act(c.Close, func() error { return ln.Close() })
			return nil, nil
		}})
		return func() error { return w.talk(ln.Addr(), dat.ConnConfig{Timeout: short}) }, ln.Close
	}},
	{name: "Setup of a dial", make: func(w *world) (use, closing func() error) {
		return func() error {
			return w.talk(w.neighbor.Addr(), dat.ConnConfig{Setup: func(c *dat.Conn) ([]byte, error) {
				w.act(c.Close)
				return nil, nil
			}})
		}, func() error { return nil }
	}},
	{name: "Setup of a listener's dial", waits: true, make: func(w *world) (use, closing func() error) {
		var ln *dat.Listener
		ln = w.echo(dat.ConnConfig{Apart: true, Timeout: short, Setup: func(c *dat.Conn) ([]byte, error) {
			w.act(c.Close, func() error { return ln.Close() })
			return nil, nil
		}})
		return func() error {
			c, err := ln.Dial(w.neighbor.Addr(), nil)
			if err != nil {
				return err
			}
			if ev := <-c.Events(); ev.Number != event.Established {
				return errors.Join(ev.Err(), c.Close(), errors.New("it did not come up"))
			}
			return errors.Join(w.chat(c), c.Close())
		}, ln.Close
	}},
	{name: "Established of an accept", waits: true, make: func(w *world) (use, closing func() error) {
		var ln *dat.Listener
		ln = w.echo(dat.ConnConfig{Established: func(c *dat.Conn) { w.act(c.Close, func() error { return ln.Close() }) }})
		return func() error { return w.talk(ln.Addr(), dat.ConnConfig{}) }, ln.Close
	}},
	{name: "Ended of an accept", waits: true, make: func(w *world) (use, closing func() error) {
		var ln *dat.Listener
		ln = w.echo(dat.ConnConfig{Ended: func(c *dat.Conn, _ event.Event) { w.act(c.Close, func() error { return ln.Close() }) }})
		return func() error { return w.talk(ln.Addr(), dat.ConnConfig{}) }, ln.Close
	}},
	{name: "Established of a dial", waits: true, make: func(w *world) (use, closing func() error) {
		return func() error {
			return w.talk(w.neighbor.Addr(), dat.ConnConfig{Established: func(c *dat.Conn) { w.act(c.Close) }})
		}, func() error { return nil }
	}},
	{name: "Ended of a dial", waits: true, make: func(w *world) (use, closing func() error) {
		return func() error {
			return w.talk(w.neighbor.Addr(), dat.ConnConfig{Ended: func(c *dat.Conn, _ event.Event) { w.act(c.Close) }})
		}, func() error { return nil }
	}},
	{name: "rpc handler", make: func(w *world) (use, closing func() error) {
		return w.calls(rpc.Config{}, rpc.Config{}, func(s *rpc.Server, r *rpc.Request) { w.act(s.Close) })
	}},
	{name: "AroundHandler", make: func(w *world) (use, closing func() error) {
		var s *rpc.Server
		return w.calls(rpc.Config{AroundHandler: func(r *rpc.Request, next rpc.Handler) ([]byte, error) {
			w.act(func() error { return s.Close() })
			return next(r)
		}}, rpc.Config{}, func(server *rpc.Server, _ *rpc.Request) { s = server })
	}},
	{name: "AroundHandler behind the handler", make: func(w *world) (use, closing func() error) {
		var s *rpc.Server
		return w.calls(rpc.Config{AroundHandler: func(r *rpc.Request, next rpc.Handler) ([]byte, error) {
			b, err := next(r)
			w.act(func() error { return s.Close() })
			return b, err
		}}, rpc.Config{}, func(server *rpc.Server, _ *rpc.Request) { s = server })
	}},
	{name: "AroundCall", make: func(w *world) (use, closing func() error) {
		return w.calls(rpc.Config{}, rpc.Config{AroundCall: func(ctx context.Context, call rpc.Call, next rpc.CallFunc) ([]byte, error) {
			w.act(func() error { return w.client.Load().Close() })
			return next(ctx, call)
		}}, nil)
	}},
	{name: "rpc Config.Log", fatal: true, make: func(w *world) (use, closing func() error) {
		log := slog.New(logger{w.log.Handler(), w})
		s := w.serve(rpc.Config{}, func(*rpc.Server) rpc.Handler { return func(r *rpc.Request) ([]byte, error) { return r.Payload(), nil } })
		return func() error { // awaits its server, which the client logs
			ctx, cancel := context.WithTimeout(context.Background(), bound/2)
			defer cancel()
			c, err := rpc.Dial(ctx, w.ia, s.Addr(), rpc.Config{Await: true, Log: log})
			if err != nil {
				return err
			}
			w.client.CompareAndSwap(nil, c)
			_, err = c.Call(ctx, rpc.Call{Payload: []byte("a")}, nil)
			return errors.Join(err, c.Close())
		}, s.Close
	}},
	{name: "MarshalJSON of an answer", make: func(w *world) (use, closing func() error) {
		return w.values(func() marshaler { return marshaler{w} })
	}},
	{name: "a dispatcher's callback", waits: true, fatal: true, make: func(w *world) (use, closing func() error) {
		called := make(chan struct{}, 100)
		var d *evd.Dispatcher
		d, err := w.ia.NewDispatcher(evd.Config{QLen: 16, Mode: evd.ModeCallback, Streams: event.StreamSoftware, Callback: func([]event.Event) {
			called <- struct{}{}
			w.act(func() error { return d.Close() })
		}})
		require.NoError(w.t, err)
		return func() error {
			if w.deed.name == "blocks" && len(called) > 0 {
				return nil // events of one dispatcher come one behind the other
			}
			if err := d.PostSoftware(nil); err != nil {
				return err
			}
			select {
			case <-called:
				called <- struct{}{}
				return nil
			case <-time.After(bound / 2):
				return errHangs
			}
		}, d.Close
	}},
	{name: "a CNO's agent", waits: true, fatal: true, make: func(w *world) (use, closing func() error) {
		called := make(chan struct{}, 100)
		var cno *evd.CNO
		agent := func(*evd.Dispatcher) {
			called <- struct{}{}
			w.act(func() error { return cno.Close() })
		}
		cno, err := w.ia.NewCNO(evd.CNOConfig{})
		require.NoError(w.t, err)
		d, err := w.ia.NewDispatcher(evd.Config{QLen: 16, Streams: event.StreamSoftware, CNO: cno})
		require.NoError(w.t, err)
		return func() error {
			if w.deed.name == "blocks" && len(called) > 0 {
				return nil // calls of one CNO's agents never overlap
			}
			_, _ = cno.Trigger()
			if err := errors.Join(cno.ModifyAgent(agent), d.PostSoftware(nil)); err != nil {
				return err
			}
			select {
			case <-called:
				called <- struct{}{}
				return nil
			case <-time.After(bound / 2):
				return errHangs
			}
		}, func() error { return errors.Join(d.Close(), cno.Close()) }
	}},
	{name: "reader of a stream's ReadFrom", make: func(w *world) (use, closing func() error) {
		return w.streams(func(c *stream.Conn, ln *stream.Listener) error {
			_, err := c.ReadFrom(io.LimitReader(reader(func(b []byte) (int, error) { w.act(c.Close, ln.Close); return copy(b, "hello"), nil }), 5))
			return err
		})
	}},
	{name: "writer of a stream's WriteTo", make: func(w *world) (use, closing func() error) {
		return w.streams(func(c *stream.Conn, ln *stream.Listener) error {
			if _, err := c.Write([]byte("hello")); err != nil {
				return err
			}
			if err := c.CloseWrite(); err != nil {
				return err
			}
			_, err := c.WriteTo(reader(func(b []byte) (int, error) { w.act(c.Close, ln.Close); return len(b), nil }))
			return err
		})
	}},
	{name: "rows of a report", make: func(w *world) (use, closing func() error) {
		stop, err := w.ia.Report("hooks", func() []any { w.act(); return nil })
		require.NoError(w.t, err)
		return func() error {
			said, err := w.ia.Snapshot()
			if err != nil {
				return err
			}
			if rows := said.Reports["hooks"]; len(rows) > 0 {
				return errors.New(rows[0].(string))
			}
			return nil
		}, func() error { stop(); return nil }
	}},
	{name: "iwarp's Config.Dial", waits: true, make: talks, config: func(w *world) iwarp.Config {
		return iwarp.Config{Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			w.act()
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}}
	}},
	{name: "iwarp's Config.Listen", waits: true, make: func(w *world) (use, closing func() error) {
		return func() error {
			ln, err := w.ia.Listen(context.Background(), "127.0.0.1:0", dat.ConnConfig{})
			if err != nil {
				return err
			}
			return ln.Close()
		}, func() error { return nil }
	}, config: func(w *world) iwarp.Config {
		return iwarp.Config{Listen: func(addr string) (net.Listener, error) {
			w.act()
			return net.Listen("tcp", addr)
		}}
	}},
	{name: "iwarp's Config.Trace of a dial", waits: true, make: talks, config: trace(false)},
	{name: "iwarp's Config.Trace of an accept", waits: true, make: talks, config: trace(true)},
}

// talks makes a connection to the neighbor for each use.
func talks(w *world) (use, closing func() error) {
	return func() error { return w.talk(w.neighbor.Addr(), dat.ConnConfig{Timeout: short}) }, func() error { return nil }
}

// trace is the configuration whose Trace is under test for one end of a connection.
func trace(ofAccept bool) func(w *world) iwarp.Config {
	return func(w *world) iwarp.Config {
		return iwarp.Config{Trace: func(local, _ net.Addr) io.WriteCloser {
			if w.armed.Load() && ofAccept == (local.String() == w.neighbor.Addr()) {
				w.act()
			}
			return nil
		}}
	}
}

// logger is a handler of a log that does what is under test with each line.
type logger struct {
	slog.Handler
	w *world
}

func (l logger) Handle(ctx context.Context, r slog.Record) error {
	l.w.act(func() error {
		for {
			if c := l.w.client.Load(); c != nil {
				return c.Close()
			}
			goruntime.Gosched()
		}
	})
	return l.Handler.Handle(ctx, r)
}

// reader is a function that reads, or writes.
type reader func(b []byte) (int, error)

func (r reader) Read(b []byte) (int, error)  { return r(b) }
func (r reader) Write(b []byte) (int, error) { return r(b) }

// marshaler is an answer that is made by a function of the program's.
type marshaler struct{ w *world }

func (m marshaler) MarshalJSON() ([]byte, error) { m.w.act(); return []byte("1"), nil }

// serve serves on a server of the world's.
func (w *world) serve(cfg rpc.Config, handler func(s *rpc.Server) rpc.Handler) *rpc.Server {
	cfg.Log = w.log
	s, err := rpc.Listen(context.Background(), w.ia, ":0", cfg)
	require.NoError(w.t, err)
	w.spawn("serve", func() error { return s.Serve(context.Background(), 4, handler(s)) })
	return s
}

// calls makes a server, and a client for each use.
func (w *world) calls(server, client rpc.Config, before func(s *rpc.Server, r *rpc.Request)) (use, closing func() error) {
	s := w.serve(server, func(s *rpc.Server) rpc.Handler {
		return func(r *rpc.Request) ([]byte, error) {
			if before != nil {
				before(s, r)
			}
			return r.Payload(), nil
		}
	})
	client.Log = w.log
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), bound/2)
		defer cancel()
		c, err := rpc.Dial(ctx, w.ia, s.Addr(), client)
		if err != nil {
			return err
		}
		w.client.CompareAndSwap(nil, c)
		_, err = c.Call(ctx, rpc.Call{Payload: []byte("a")}, nil)
		return errors.Join(err, c.Close())
	}, s.Close
}

// values is calls of values.
func (w *world) values(answer func() marshaler) (use, closing func() error) {
	s := w.serve(rpc.Config{}, func(*rpc.Server) rpc.Handler {
		return rpc.HandleJSON(func(*rpc.Request, int) (marshaler, error) { return answer(), nil })
	})
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), bound/2)
		defer cancel()
		c, err := rpc.Dial(ctx, w.ia, s.Addr(), rpc.Config{Log: w.log})
		if err != nil {
			return err
		}
		got := 0
		return errors.Join(c.CallJSON(ctx, rpc.Call{}, 1, &got), c.Close())
	}, s.Close
}

// streams makes a listener whose streams answer with what they read, and a stream for each use.
func (w *world) streams(do func(c *stream.Conn, ln *stream.Listener) error) (use, closing func() error) {
	ln, err := stream.Listen(context.Background(), w.ia, ":0", stream.Config{})
	require.NoError(w.t, err)
	w.spawn("streams", func() error {
		for {
			c, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			if err != nil {
				return err
			}
			w.spawn("stream", func() error {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(bound))
				_, _ = io.Copy(c, c)
				return nil
			})
		}
	})
	return func() error {
		c, err := (&stream.Dialer{IA: w.ia}).Dial("tcp", ln.Addr().String())
		if err != nil {
			return err
		}
		defer func() { // also when do ends its goroutine
			_ = c.Close()
			_, err := c.Read(make([]byte, 10))
			w.say("read behind", err)
			_, err = c.Write([]byte("more"))
			w.say("write behind", err)
		}()
		return do(c.(*stream.Conn), ln)
	}, ln.Close
}

func TestWhateverAFunctionOfTheProgramsDoesNothingElseIsLost(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1", "sim"} {
		for _, h := range hooks {
			for _, d := range deeds {
				if h.fatal && d.name == "panics" || h.config != nil && !strings.HasPrefix(provider, iwarp.Name) {
					continue
				}
				t.Run(strings.Join([]string{provider, h.name, d.name}, "/"), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, provider, d, h.config)
					use, closing := h.make(w)
					w.judge(use, closing, h.waits)
				})
			}
		}
	}
}
