package lane

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"godat/bench/mode"
	"godat/ep"
	"godat/evd"
	"godat/hw/event"
	dat "godat/runtime"
)

// hello is what the dialer of an echo tells its server, in the private data.
type hello struct {
	mode        mode.Mode
	size, depth int
}

const (
	helloVersion = 3
	helloLen     = 10
	// What a server lends a dialer: bytes of a message, messages, and bytes of all.
	maxSize, maxDepth, maxBytes = 1 << 24, 1 << 12, 1 << 28
)

func (h hello) append(b []byte) []byte {
	at := slices.IndexFunc(mode.All(), func(m mode.Mode) bool { return m.Name == h.mode.Name })
	b = append(b, helloVersion, byte(at))
	b = binary.BigEndian.AppendUint32(b, uint32(h.size))
	return binary.BigEndian.AppendUint32(b, uint32(h.depth))
}

// parseHello reads a hello. A transport may have put bytes behind it.
func parseHello(b []byte) (h hello, err error) {
	if len(b) < helloLen {
		return h, fmt.Errorf("private data of %d bytes: the peer is no benchmark", len(b))
	}
	if b[0] != helloVersion || int(b[1]) >= len(mode.All()) {
		return h, fmt.Errorf("private data % x: the peer is another benchmark", b[:helloLen])
	}
	h = hello{mode.All()[b[1]], int(binary.BigEndian.Uint32(b[2:])), int(binary.BigEndian.Uint32(b[6:]))}
	if h.size < 1 || h.size > maxSize || h.depth < 1 || h.depth > maxDepth || h.size > maxBytes/h.depth {
		return h, fmt.Errorf("%d messages of %d bytes: a server has up to %d, of up to %d bytes, %d in all", h.depth, h.size, maxDepth, maxSize, maxBytes)
	}
	return h, nil
}

// Server answers each message with one of the same size. Each connection has a
// goroutine and a consumer, in the mode that the dialer asks for.
type Server struct {
	ia   *dat.IA
	psp  *ep.PSP
	conn *evd.Dispatcher
	done chan struct{}
	// refused, if not nil, is told why a dialer was rejected.
	refused func(error)
}

// mostRefusal is how many bytes of private data each provider carries with a rejection.
const mostRefusal = 100

// refusal is what a server tells a dialer that it rejects.
func refusal(why error) []byte {
	text := []byte(why.Error())
	return text[:min(len(text), mostRefusal)]
}

// refusalIn says why a server has rejected a dialer. An older one does not tell.
func refusalIn(ev event.Event) string {
	if text := strings.TrimRight(string(ev.Private()), "\x00"); text != "" {
		return fmt.Sprintf("serve says %q", text)
	}
	return "another version of this program serves there, or another program: its own output may say why"
}

// serverConns is how many connections a server has at a time.
const serverConns = 64

// NewServer listens on the adapter at a qualifier, or if it is 0 at one that the
// provider chooses. refused, if not nil, is told why a dialer was rejected.
func NewServer(ia *dat.IA, qual uint64, refused func(error)) (s *Server, err error) {
	s = &Server{ia: ia, done: make(chan struct{}), refused: refused}
	if s.conn, err = ia.NewDispatcher(evd.Config{QLen: 2 * serverConns}); err != nil {
		return nil, err
	}
	if s.psp, err = ia.NewPSP(ep.PSPConfig{Dispatcher: s.conn, Qual: qual}); err != nil {
		return nil, err
	}
	go s.accept()
	return s, nil
}

// Qual is where the server listens.
func (s *Server) Qual() uint64 { return s.psp.Qual() }

// Wait returns when the adapter has been closed and all connections have ended.
func (s *Server) Wait() {
	<-s.done
}

// echoing is the echo of one connection.
type echoing struct {
	*end
	done chan struct{}
}

// accept takes requests until the adapter is closed.
func (s *Server) accept() {
	defer close(s.done)
	echoes := map[*ep.Endpoint]*echoing{}
	for {
		ev, _, err := s.conn.Wait(context.Background(), 1)
		if err != nil {
			break
		}
		switch {
		case ev.Number == event.ConnectionRequest:
			if err := s.admit(ep.RequestOf(ev), echoes); err != nil && s.refused != nil {
				s.refused(err)
			}
		case ev.Ended():
			if e := echoes[ep.Of(ev)]; e != nil {
				_ = e.close()
				<-e.done
				delete(echoes, e.ep)
			}
		}
	}
	for _, e := range echoes { // the adapter has closed what they have
		_ = e.consumer.Close()
		<-e.done
	}
}

// admit makes an end for a request, and starts its echo.
func (s *Server) admit(request *ep.CR, echoes map[*ep.Endpoint]*echoing) error {
	what, err := request.Query()
	if err != nil {
		return err
	}
	if len(echoes) == serverConns {
		err := fmt.Errorf("a dialer beside %d others", serverConns)
		return errors.Join(err, request.Reject(refusal(err)))
	}
	e, err := s.newEnd(what.Private)
	if err != nil {
		return errors.Join(err, request.Reject(refusal(err)))
	}
	if err := request.Accept(e.ep, nil); err != nil {
		return errors.Join(err, request.Reject(nil), e.close())
	}
	echoes[e.ep] = &echoing{end: e, done: make(chan struct{})}
	go echoes[e.ep].run()
	return nil
}

func (s *Server) newEnd(private []byte) (*end, error) {
	h, err := parseHello(private)
	if err != nil {
		return nil, err
	}
	slots := 2 * h.depth
	with, err := Config{Mode: h.mode, Size: h.size}.parts(s.ia, slots, slots+64, 2*slots+128)
	if err != nil {
		return nil, err
	}
	with.conn = s.conn
	return newEnd(with, 0, 1)
}

// run answers until the connection ends.
func (e *echoing) run() {
	defer close(e.done)
	_ = e.take(e.answer)
}

// answer sends a message back.
func (e *echoing) answer(slot int) bool { return e.send(slot) == nil }

// Echo is a connection to a Server: what is taken are its answers, so that latencies are
// round trips.
type Echo struct {
	ia     *dat.IA
	end    *end
	server *Server // of NewEcho
	slots  int
}

// NewEcho makes a server and a connection to it, on one adapter.
func NewEcho(cfg Config) (*Echo, error) {
	ia, err := cfg.Adapter()
	if err != nil {
		return nil, err
	}
	s, err := NewServer(ia, 0, nil)
	if err != nil {
		return nil, errors.Join(err, ia.Close())
	}
	l, err := dial(ia, cfg, ia.Attr().Address, s.Qual())
	if err != nil {
		err = errors.Join(err, ia.Close())
		s.Wait()
		return nil, err
	}
	l.server = s
	return l, nil
}

// DialEcho connects to a Server of another process, at an address of its adapter.
func DialEcho(cfg Config, addr string, qual uint64) (*Echo, error) {
	ia, err := cfg.Adapter()
	if err != nil {
		return nil, err
	}
	l, err := dial(ia, cfg, addr, qual)
	if err != nil {
		return nil, errors.Join(err, ia.Close())
	}
	return l, nil
}

// dialLimit is how long a server may take to answer: something else may listen, and say nothing.
const dialLimit = 15 * time.Second

func dial(ia *dat.IA, cfg Config, addr string, qual uint64) (*Echo, error) {
	l := &Echo{ia: ia, slots: 2 * cfg.Depth}
	with, err := cfg.parts(ia, l.slots, l.slots+64, 2*l.slots+128)
	if err != nil {
		return nil, err
	}
	if l.end, err = newEnd(with, 0, 1); err != nil {
		return nil, err
	}
	private := hello{cfg.Mode, cfg.Size, cfg.Depth}.append(nil)
	if err := l.end.ep.Connect(ep.ConnectConfig{Addr: addr, Qual: qual, Private: private, Timeout: dialLimit}); err != nil {
		return nil, err
	}
	return l, established(with.quiet, nil, 1)
}

// Slots is how many receives are posted.
func (l *Echo) Slots() int { return l.slots }

// Post sends a message to the server.
func (l *Echo) Post(slot int) error {
	return l.end.send(slot)
}

// Take takes answers.
func (l *Echo) Take(f func(slot int) bool) error { return l.end.take(f) }

// Loop is that of the consumer at this end.
func (l *Echo) Loop() string { return l.end.consumer.Loop() }

// Close closes the adapter, and waits for the server if it is on it.
func (l *Echo) Close() error {
	err := l.ia.Close()
	_ = l.end.consumer.Close() // the adapter has closed its dispatcher
	if l.server != nil {
		l.server.Wait()
	}
	return err
}
