package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"godat/ep"
	"godat/examples/dattest/performance"
	"godat/examples/dattest/transaction"
	"godat/examples/dattest/wire"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

// Listener is a server.
type Listener struct {
	ia    *dat.IA
	ln    *dat.Listener
	port  uint64
	out   io.Writer
	mu    sync.Mutex // of out
	next  uint64     // first port of the next test
	tests sync.WaitGroup
}

// handshake is how long a client may take to say what it wants.
const handshake = 30 * time.Second

// errAborted means that the adapter was closed while the server ran.
var errAborted = errors.New("the adapter was closed")

// ports is how many ports a server gives to tests before it begins again.
const ports = 1000

// Listen makes a server, which prints what it does to out.
func Listen(ia *dat.IA, port uint64, out io.Writer) (*Listener, error) {
	ln, err := ia.Listen(context.Background(), Server{Port: port}.String(), connConfig)
	if err != nil {
		return nil, err
	}
	s := &Listener{ia: ia, ln: ln, out: out}
	_, text, err := net.SplitHostPort(ln.Addr())
	if err == nil {
		s.port, err = strconv.ParseUint(text, 10, 64)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	s.next = s.port + 1
	return s, nil
}

// Port is the port of the control connections.
func (s *Listener) Port() uint64 { return s.port }

// Run serves one client after the other until a client asks it to quit or ctx is done.
// Their tests may overlap, and Run waits for them to end. When a client misbehaves, Run
// prints that and goes on.
func (s *Listener) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		s.tests.Wait()
	}()
	for {
		s.printf("Dapltest: Service Point Ready - %s", s.ia.Name())
		var quit bool
		var err error
		select {
		case ev := <-s.ln.Requests():
			if ev.Number == event.Closed {
				return errors.Join(errAborted, s.Close())
			}
			quit, err = s.client(ctx, ep.RequestOf(ev))
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), s.Close())
		}
		if err != nil {
			s.printf("Server: client: %v", err)
		}
		if quit {
			s.tests.Wait()
			return s.Close()
		}
	}
}

// Close stops listening.
func (s *Listener) Close() error { return s.ln.Close() }

func (s *Listener) printf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// client takes the request of a client, starts the test, and tells the client its port.
func (s *Listener) client(ctx context.Context, cr *ep.CR) (quit bool, err error) {
	c, err := s.ln.Accept(cr, nil)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	brief, done := context.WithTimeout(ctx, handshake)
	defer done()
	var asked [2][]byte // ClientInfo and the command
	for i := range asked {
		if asked[i], err = receive(brief, c); err != nil {
			return false, err
		}
	}
	info, err := wire.ParseClientInfo(asked[0])
	if err != nil {
		return false, err
	}
	test, err := s.test(info, asked[1])
	if err != nil {
		return false, err
	}
	answer := wire.ServerInfo{FirstPort: uint32(s.next)}
	if test != nil {
		port, err := s.start(ctx, test)
		if err != nil {
			return false, err
		}
		answer.FirstPort = uint32(port)
	}
	quit = test == nil
	if err := send(c, answer.Append(nil)); err != nil {
		return quit, err
	}
	return quit, c.Shutdown(brief)
}

// test is a test that a client asked for.
type test struct {
	name  string
	ports uint64
	run   func(ctx context.Context, port uint64, ready func() error) error
}

// test reads a command; it returns nil for the command to quit.
func (s *Listener) test(info wire.ClientInfo, command []byte) (*test, error) {
	switch info.Test {
	case wire.TransactionTest:
		cmd, err := wire.ParseTransaction(command)
		if err != nil {
			return nil, err
		}
		n := uint64(cmd.Threads) * uint64(cmd.EPs)
		return &test{"Transaction Test", n, func(ctx context.Context, port uint64, ready func() error) error {
			side := transaction.Side{IA: s.ia, Test: cmd, Server: true, Port: port, Ready: func([]uint64) error { return ready() }}
			_, err := side.Run(ctx)
			return err
		}}, nil
	case wire.PerformanceTest:
		cmd, err := wire.ParsePerformance(command)
		if err != nil {
			return nil, err
		}
		return &test{"performance test", 1, func(ctx context.Context, port uint64, ready func() error) error {
			side := performance.Side{IA: s.ia, Test: cmd, Server: true, Port: port, Ready: func(uint64) error { return ready() }}
			if !s.ia.Attr().NotReadyWait {
				side.SendDelay = performance.TakeUpTime
			}
			_, err := side.Run(ctx)
			return err
		}}, nil
	case wire.QuitTest:
		return nil, nil
	}
	return nil, fmt.Errorf("%w: test type %d", wire.ErrFormat, info.Test)
}

// take takes n ports, and returns the first.
func (s *Listener) take(n uint64) uint64 {
	if s.next >= s.Port()+ports {
		s.next = s.Port() + 1
	}
	port := s.next
	s.next += n
	return port
}

// attempts is how many ranges of ports start tries when others use them.
const attempts = 32

// start starts a test's server side, and returns its first port when that side listens.
func (s *Listener) start(ctx context.Context, t *test) (port uint64, err error) {
	for range attempts {
		port = s.take(t.ports)
		if err = s.startAt(ctx, t, port); !errors.Is(err, hw.ErrConnQualInUse) {
			break
		}
	}
	return port, err
}

func (s *Listener) startAt(ctx context.Context, t *test, port uint64) error {
	ready, ended := make(chan struct{}), make(chan error, 1)
	s.tests.Go(func() {
		listened := false
		err := t.run(ctx, port, func() error { listened = true; close(ready); return nil })
		ended <- err
		switch {
		case !listened: // startAt returns the error
		case err != nil:
			s.printf("Server: %s failed: %v", t.name, err)
		default:
			s.printf("Server: %s Finished for this client", t.name)
		}
	})
	select {
	case <-ready:
		return nil
	case err := <-ended:
		return err
	}
}
