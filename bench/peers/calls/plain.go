package calls

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"godat/bench/ends"
)

const plainOptions = "what a team writes on net.Conn for one kind of call: one connection, a header of 16 bytes with the milliseconds that the caller waits, 16 workers, one goroutine at each end " +
	"that gathers messages of all calls into one writev, memory that is kept. No flow control, no cancel, no errors across the wire; a call that times out breaks the connection"

// message is a message of either end: length, call, method and the caller's patience in milliseconds, and
// the payload.
type message struct {
	head [16]byte
	body []byte
	room *[]byte // that the body is in, at the server
}

func newMessage(call, method, wait uint32, body []byte) *message {
	m := &message{body: body}
	for i, v := range []uint32{uint32(len(body)), call, method, wait} {
		binary.BigEndian.PutUint32(m.head[4*i:], v)
	}
	return m
}

func (m *message) field(i int) uint32 { return binary.BigEndian.Uint32(m.head[4*i:]) }

// gather writes messages until the channel is closed, as many at once as there are.
func gather(conn net.Conn, out <-chan *message) {
	var room net.Buffers
	for m := range out {
		all := room[:0]
		for more := true; more; {
			all = append(all, m.head[:], m.body)
			more = false
			if len(all) < 128 {
				select {
				case m, more = <-out:
				default:
				}
			}
		}
		room = all
		if _, err := all.WriteTo(conn); err != nil {
			_ = conn.Close() // the reader learns of it
		}
	}
}

type plainServer struct {
	*work
	ln    net.Listener
	rooms sync.Pool
	wait  func()
}

func servePlain(w *work) (server, error) {
	ln, err := ends.Listen()
	if err != nil {
		return nil, err
	}
	s := &plainServer{work: w, ln: ln}
	s.rooms.New = func() any { return new(make([]byte, max(w.most, shortBytes))) }
	s.wait = ends.Each(ln, s.serve)
	return s, nil
}

func (s *plainServer) addr() string { return s.ln.Addr().String() }
func (s *plainServer) close() error {
	err := s.ln.Close()
	s.wait()
	return err
}

// serve reads requests, which workers answer, until the connection ends.
func (s *plainServer) serve(conn net.Conn) {
	requests, answers := make(chan *message, workers), make(chan *message, workers)
	var handlers, writer sync.WaitGroup
	writer.Go(func() { gather(conn, answers) })
	for range workers {
		handlers.Go(func() { s.handle(requests, answers) })
	}
	from := bufio.NewReaderSize(conn, 64<<10)
	for {
		m := new(message)
		if _, err := io.ReadFull(from, m.head[:]); err != nil || int(m.field(0)) > max(s.most, shortBytes) {
			break
		}
		m.room = s.rooms.Get().(*[]byte)
		m.body = (*m.room)[:m.field(0)]
		if _, err := io.ReadFull(from, m.body); err != nil {
			break
		}
		requests <- m
	}
	_ = conn.Close()
	close(requests)
	handlers.Wait()
	close(answers)
	writer.Wait()
}

func (s *plainServer) handle(requests <-chan *message, answers chan<- *message) {
	for m := range requests {
		until := time.Now().Add(time.Duration(m.field(3)) * time.Millisecond)
		var answer []byte
		if m.field(2) == methodGet {
			size, _ := s.get(m.body, m.field(3) > 0) // a request that is wrong has an empty answer
			answer = s.body[:size]
		} else {
			answer = binary.BigEndian.AppendUint64(nil, s.put(look(m.body), m.field(3) > 0))
		}
		s.rooms.Put(m.room)
		if time.Now().Before(until) { // or nobody waits for it
			answers <- newMessage(m.field(1), 0, 0, answer)
		}
	}
}

// plainClient has one call of each caller under way.
type plainClient struct {
	heap
	conn  net.Conn
	out   chan *message
	calls []plainCall
	ends  sync.WaitGroup
}

type plainCall struct {
	room []byte   // for the answer
	done chan int // the answer's bytes, or -1
}

func dialPlain(addr string, callers int) (client, error) {
	conn, err := net.Dial("tcp", addr) //nolint:noctx // on the loopback
	if err != nil {
		return nil, err
	}
	c := &plainClient{conn: conn, out: make(chan *message, callers), calls: make([]plainCall, callers)}
	for i := range c.calls {
		c.calls[i].done = make(chan int, 2) // an answer, and the connection's end
	}
	c.ends.Go(func() { gather(conn, c.out) })
	c.ends.Go(c.read)
	return c, nil
}

// read takes answers until the connection ends, or one is not what the caller wants.
func (c *plainClient) read() {
	from := bufio.NewReaderSize(c.conn, 64<<10)
	for {
		var m message
		if _, err := io.ReadFull(from, m.head[:]); err != nil || int(m.field(1)) >= len(c.calls) {
			break
		}
		call := &c.calls[m.field(1)]
		if int(m.field(0)) > len(call.room) {
			break
		}
		if _, err := io.ReadFull(from, call.room[:m.field(0)]); err != nil {
			break
		}
		call.done <- int(m.field(0))
	}
	_ = c.conn.Close()
	for i := range c.calls {
		c.calls[i].done <- -1
	}
}

var errPlain = errors.New("the connection has ended")

func (c *plainClient) ask(ctx context.Context, caller int, method uint32, body, room []byte) ([]byte, error) {
	until, _ := ctx.Deadline()
	call := &c.calls[caller]
	call.room = room
	c.out <- newMessage(uint32(caller), method, uint32(max(time.Until(until).Milliseconds(), 1)), body)
	select {
	case n := <-call.done:
		if n < 0 {
			return nil, errPlain
		}
		return room[:n], nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), c.conn.Close())
	}
}

func (c *plainClient) put(ctx context.Context, caller int, body []byte) (uint64, error) {
	var answer [shortBytes]byte
	got, err := c.ask(ctx, caller, methodPut, body, answer[:])
	if err == nil && len(got) != shortBytes {
		err = errAnswer
	}
	return binary.BigEndian.Uint64(answer[:]), err
}

func (c *plainClient) get(ctx context.Context, caller int, request, room []byte) (view, error) {
	got, err := c.ask(ctx, caller, methodGet, request, room)
	return look(got), err
}

func (c *plainClient) close() error {
	err := c.conn.Close()
	close(c.out)
	c.ends.Wait()
	return err
}
