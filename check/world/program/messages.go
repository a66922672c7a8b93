package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"godat/ep"
	"godat/mem"
	dat "godat/runtime"
)

// Messages is a program of connections whose messages several goroutines hold, answer and send, at both ends: some
// prepare a message before they may send it, some answer in the buffer of what came, some in one that they wait for, and
// what came is given back late, long behind its answer, too.
type Messages struct{ Size }

const (
	mailDepth  = 6
	window     = mailDepth / 2   // of questions of each end: the answers to the other's need places, too
	askers     = 4               // goroutines of an end that ask, at most: with few nobody comes later who would mend what was lost
	answerers  = 5               // at most
	keeps      = 9               // messages behind their answers: as many as leave the receives their buffers
	bufferTime = 5 * time.Minute // nobody holds a buffer for so long
)

// The messages, by their first octet, behind which the id of the question is.
const (
	question = 1 + iota
	answer
)

// mail is what connections are made of. Their Context is closed when they are up.
var mail = dat.ConnConfig{
	Depth: mailDepth, Message: 512, Conns: 64, Apart: true,
	Setup: func(c *dat.Conn) ([]byte, error) {
		c.Context = make(chan struct{})
		return nil, nil
	},
	Established: func(c *dat.Conn) { close(c.Context.(chan struct{})) },
}

// Run runs the program.
func (p Messages) Run(w *World) error {
	return p.play(w, func(ctx context.Context, s *service) error {
		first, err := s.ia.Listen(ctx, w.Listens(s.host), mail)
		if err != nil {
			return err
		}
		s.address = first.Addr()
		s.running.Go(func() { serveMessages(ctx, w, s, first) })
		return nil
	}, func(ctx context.Context, is party) {
		draw := w.Draw(700 + is.number)
		for n := range p.Rounds {
			sleep(ctx, time.Duration(draw.Int64N(int64(mostPause))))
			if !correspond(ctx, w, is, is.number<<32|uint64(n)<<8, draw) {
				return
			}
		}
	})
}

// serveMessages serves until ctx ends, by one listener after the other.
func serveMessages(ctx context.Context, w *World, s *service, now *dat.Listener) {
	for n := uint64(1); ; n++ {
		var accepting sync.WaitGroup
		stop := make(chan struct{})
		accepting.Go(func() {
			for k := uint64(1); ; k++ {
				select {
				case <-stop:
					return
				case ev := <-now.Requests():
					c, err := now.Accept(ep.RequestOf(ev), nil)
					if err != nil {
						w.Step(s.host, "no connection: %v", err)
						continue
					}
					id := uint64(s.number+100)<<32 | n<<24 | k<<8
					s.running.Go(func() { newMailer(w, c, s.host, id, func() bool { return false }).run(ctx, true) })
				}
			}
		})
		select {
		case <-s.restart:
		case <-ctx.Done():
		}
		close(stop)
		accepting.Wait()
		bounded, cancel := context.WithTimeout(context.Background(), time.Second)
		err := now.Shutdown(bounded)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			w.Wrong("%s: Shutdown: %v", s.host, err)
		}
		if ctx.Err() != nil {
			return
		}
		if now, err = s.ia.Listen(ctx, s.address, mail); err != nil {
			if ctx.Err() == nil {
				w.Wrong("%s: no further listener: %v", s.host, err)
			}
			return
		}
	}
}

// correspond dials, for a minute, and asks and answers. It reports whether there was a server.
func correspond(ctx context.Context, w *World, is party, id uint64, draw *rand.Rand) bool {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	to := draw.IntN(len(is.addrs))
	for {
		c, err := is.ia.Dial(bounded, is.addrs[to], mail)
		if err == nil {
			newMailer(w, c, is.host, id, func() bool { return !w.Disturbed(is.host, is.hosts[to]) && !w.Restarted(is.hosts[to]) }).run(ctx, false)
			return true
		}
		w.Step(is.host, "no connection to %s: %v", is.addrs[to], err)
		if !sleep(bounded, 100*time.Millisecond) {
			w.Wrong("%s: no server in a minute: %v", is.host, err)
			return false
		}
	}
}

// mailer is one end of a connection.
type mailer struct {
	w    *World
	c    *dat.Conn
	who  string
	id   uint64 // of the question before the first
	draw *rand.Rand

	quiet func() bool // nothing has happened that ends connections

	may  chan struct{} // has room for a question more
	came chan *mem.Buffer
	kept chan struct{} // has room for a message more that is kept behind its answer
	over chan struct{} // closed when the connection has ended
	held sync.WaitGroup

	mu    sync.Mutex
	asked map[uint64]bool // and not answered
}

func newMailer(w *World, c *dat.Conn, who string, id uint64, quiet func() bool) *mailer {
	return &mailer{
		w: w, c: c, who: who, id: id, quiet: quiet, draw: w.Draw(800<<40 | id), may: make(chan struct{}, window), kept: make(chan struct{}, keeps),
		came: make(chan *mem.Buffer, mailDepth), over: make(chan struct{}), asked: make(map[uint64]bool),
	}
}

// run asks and answers. A client leaves when all that it asked is answered; a server when its client has left.
func (m *mailer) run(ctx context.Context, serves bool) {
	var asking, answering, receiving sync.WaitGroup
	holds := rand.New(rand.NewPCG(m.draw.Uint64(), 7))
	receiving.Go(func() { m.receive(ctx, holds) })
	select {
	case <-m.c.Context.(chan struct{}):
	case <-m.over:
	}
	for range 1 + m.draw.IntN(answerers) {
		own := rand.New(rand.NewPCG(m.draw.Uint64(), 8))
		answering.Go(func() { m.answer(ctx, own) })
	}
	first := m.id
	for range 1 + m.draw.IntN(askers) {
		from, many := first, m.draw.IntN(10)
		first += uint64(many)
		own := rand.New(rand.NewPCG(m.draw.Uint64(), 9))
		asking.Go(func() { m.ask(ctx, from, many, own) })
	}
	asking.Wait()
	for range window { // all are answered
		select {
		case m.may <- struct{}{}:
		case <-m.over:
		}
	}
	if serves {
		<-m.over
	} else if err := m.c.Shutdown(ctx); err != nil && ctx.Err() == nil {
		m.w.Step(m.who, "Shutdown: %v", err)
	}
	receiving.Wait()
	answering.Wait()
	m.held.Wait()
	if err := m.c.Close(); err != nil {
		m.w.Wrong("%s: Close: %v", m.who, err)
	}
	m.w.Step(m.who, "%d questions, %d without an answer", first-m.id, len(m.asked))
}

// receive takes messages until the connection ends.
func (m *mailer) receive(ctx context.Context, draw *rand.Rand) {
	defer close(m.came)
	defer close(m.over)
	for {
		b, err := m.c.Receive(ctx)
		if err != nil {
			switch {
			case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
			case m.quiet():
				m.w.Wrong("%s: a connection that nobody ended, over a network without trouble, has: %v", m.who, err)
			default:
				m.w.Step(m.who, "%v", err)
			}
			return
		}
		switch id := binary.BigEndian.Uint64(b.Bytes()[1:]); {
		case !bytes.Equal(b.Bytes()[9:], content(id, len(b.Bytes())-9)):
			m.w.Wrong("%s: message %x has other octets than were sent", m.who, id)
			m.c.Release(b)
		case b.Bytes()[0] == question:
			m.came <- b // has room for all that the other end may ask
		default:
			m.answered(id)
			lasts := time.Duration(draw.IntN(4000)) * time.Microsecond
			m.held.Go(func() {
				time.Sleep(lasts)
				m.c.Release(b)
				<-m.may
			})
		}
	}
}

// answered judges that a question was asked, and had no answer before.
func (m *mailer) answered(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.asked[id] {
		m.w.Wrong("%s: question %x has an answer that nobody waits for", m.who, id)
	}
	delete(m.asked, id)
}

// buffer waits for a buffer. Those that others hold come back soon.
func (m *mailer) buffer(ctx context.Context) *mem.Buffer {
	bounded, cancel := context.WithTimeout(ctx, bufferTime)
	defer cancel()
	b, err := m.c.WaitBuffer(bounded)
	if errors.Is(err, context.DeadlineExceeded) {
		m.w.Wrong("%s: a buffer did not come in %v", m.who, bufferTime)
	}
	return b
}

// send sends a message in a buffer.
func (m *mailer) send(b *mem.Buffer) bool {
	err := m.c.Send(b)
	if err != nil && m.c.Endpoint.State().String() == "CONNECTED" {
		m.w.Wrong("%s: a connection that is up takes no message: %v", m.who, err)
	}
	return err == nil
}

// ask asks some questions, each prepared before it may be sent.
func (m *mailer) ask(ctx context.Context, id uint64, many int, draw *rand.Rand) {
	for range many {
		id++
		time.Sleep(time.Duration(draw.IntN(3000)) * time.Microsecond)
		b := m.buffer(ctx)
		if b == nil {
			return
		}
		_, _ = b.Write(append(binary.BigEndian.AppendUint64([]byte{question}, id), content(id, draw.IntN(400))...))
		select {
		case m.may <- struct{}{}:
		case <-m.over:
			m.c.Release(b)
			return
		}
		m.mu.Lock()
		m.asked[id] = true
		m.mu.Unlock()
		if !m.send(b) {
			<-m.may
			return
		}
	}
}

// answer answers what comes: in its own buffer, or in one that it waits for while it holds the other, or behind it.
func (m *mailer) answer(ctx context.Context, draw *rand.Rand) {
	for b := range m.came {
		time.Sleep(time.Duration(draw.IntN(3000)) * time.Microsecond)
		text := append([]byte{answer}, b.Bytes()[1:]...)
		switch draw.IntN(3) {
		case 0:
			b.Bytes()[0] = answer
			m.send(b)
			continue
		case 1:
			m.c.Release(b)
			b = nil
		}
		if own := m.buffer(ctx); own != nil {
			_, _ = own.Write(text)
			m.send(own)
		}
		m.keep(b, time.Duration(draw.IntN(60))*time.Millisecond)
	}
}

// keep gives a message back after a while, unless the end keeps enough of them.
func (m *mailer) keep(b *mem.Buffer, lasts time.Duration) {
	select {
	case m.kept <- struct{}{}:
		m.held.Go(func() {
			time.Sleep(lasts)
			m.c.Release(b)
			<-m.kept
		})
	default:
		m.c.Release(b)
	}
}
