package main

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// The names of services that targets compare.
const (
	overLoop     = "rpc over loop"
	overIWARP    = "rpc over iwarp"
	connOverLoop = "Conn messages over loop"
	overGRPC     = "gRPC"
)

const loopback = "iwarp:127.0.0.1"

var services = []service{
	{connOverLoop, insideMost, func(size, _ int) (site, error) { return openConn("loop", size) }},
	{"Conn messages over iwarp", insideMost, func(size, _ int) (site, error) { return openConn(loopback, size) }},
	{overLoop, 0, func(size, callers int) (site, error) { return openCalls("loop", size, callers) }},
	{overIWARP, 0, func(size, callers int) (site, error) { return openCalls(loopback, size, callers) }},
	{overGRPC, 0, openGRPC},
	{"net/rpc", 0, openNetRPC},
	{"net/http", 0, openHTTP},
	{"QUIC streams", 0, openStreams},
}

// insideMost is the longest request that goes inside a message; longer ones go by RDMA.
const insideMost = 4 << 10

// ourCalls are calls of runtime/rpc.
type ourCalls struct {
	ia      *dat.IA
	server  *rpc.Server
	client  *rpc.Client
	serving sync.WaitGroup
	served  error // by Serve
	request rpc.Call
	want    uint64
	answers [][]byte      // by caller
	source  *dat.LMR      // of a long request, which all callers send
	rooms   chan *dat.LMR // for long requests at the server
}

// handlers is how many requests a server handles at a time.
const handlers = 16

func openCalls(provider string, size, callers int) (_ site, err error) {
	ctx := context.Background()
	s := &ourCalls{answers: make([][]byte, callers), rooms: make(chan *dat.LMR, handlers)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.ia, err = dat.Open(ctx, provider); err != nil {
		return nil, err
	}
	cfg := rpc.Config{Calls: max(callers, 16), Message: insideMost}
	if s.server, err = rpc.Listen(ctx, s.ia, "127.0.0.1:0", cfg); err != nil {
		return nil, err
	}
	s.serving.Go(func() { s.served = s.server.Serve(context.Background(), handlers, s.handle) })
	if s.client, err = rpc.Dial(ctx, s.ia, s.server.Addr(), cfg); err != nil {
		return nil, err
	}
	body := newBody(size)
	s.want, s.request.Payload = seen(body), body
	for i := range s.answers {
		s.answers[i] = make([]byte, 0, 8)
	}
	if size > insideMost {
		return s, s.lend(body)
	}
	return s, nil
}

// lend makes the memory of long requests.
func (s *ourCalls) lend(body []byte) (err error) {
	if s.source, err = s.client.PZ().Alloc(len(body), dat.LocalRead|dat.RemoteRead); err != nil {
		return err
	}
	copy(s.source.Bytes(), body)
	s.request = rpc.Call{Source: s.source.Remote(0, len(body))}
	for range handlers {
		room, err := s.server.PZ().Alloc(len(body), dat.LocalWrite)
		if err != nil {
			return err
		}
		s.rooms <- room
	}
	return nil
}

func (s *ourCalls) handle(r *rpc.Request) ([]byte, error) {
	body := r.Payload()
	if n := r.SourceLen(); n > 0 {
		room := <-s.rooms
		defer func() { s.rooms <- room }()
		if err := r.Read(room.Segment(0, n), 0); err != nil {
			return nil, err
		}
		body = room.Bytes()[:n]
	}
	return binary.BigEndian.AppendUint64(nil, seen(body)), nil
}

func (s *ourCalls) call(caller int) error {
	got, err := s.client.Call(context.Background(), s.request, s.answers[caller])
	if err == nil && (len(got) != 8 || binary.BigEndian.Uint64(got) != s.want) {
		err = errAnswer
	}
	return err
}

func (s *ourCalls) close() (err error) {
	if s.source != nil {
		err = s.source.Free()
	}
	if s.client != nil {
		err = errors.Join(err, s.client.Close())
	}
	if s.server != nil {
		err = errors.Join(err, s.freeRooms(), s.server.Close())
		s.serving.Wait()
		err = errors.Join(err, s.served)
	}
	if s.ia != nil {
		err = errors.Join(err, s.ia.Close())
	}
	return err
}

// freeRooms frees the memory of the server, of which no request has any.
func (s *ourCalls) freeRooms() (err error) {
	for range len(s.rooms) {
		err = errors.Join(err, (<-s.rooms).Free())
	}
	return err
}

// messages of a Conn, one there and one back: what a call is made of.
type connMessages struct {
	ia     *dat.IA
	ln     *dat.Listener
	client *dat.Conn
	served chan error
	body   []byte
	want   uint64
}

func openConn(provider string, size int) (_ site, err error) {
	ctx := context.Background()
	s := &connMessages{served: make(chan error, 1), body: newBody(size)}
	s.want = seen(s.body)
	if s.ia, err = dat.Open(ctx, provider); err != nil {
		return nil, err
	}
	if s.ln, err = s.ia.Listen(ctx, "127.0.0.1:0", dat.ConnConfig{}); err != nil {
		return nil, errors.Join(err, s.ia.Close())
	}
	go s.serve()
	if s.client, err = s.ia.Dial(ctx, s.ln.Addr(), dat.ConnConfig{}); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// serve answers messages until the listener is closed.
func (s *connMessages) serve() {
	var failed error
	for {
		var err error
		select {
		case ev := <-s.ln.Requests():
			if ev.Number != dat.Closed {
				_, err = s.ln.Accept(dat.RequestOf(ev), nil)
			}
		case ev := <-s.ln.Events():
			if ev.Number == dat.Closed {
				s.served <- failed
				return
			}
			c := dat.ConnOf(ev)
			if b := c.Message(ev); b != nil {
				text := seen(b.Bytes())
				binary.BigEndian.PutUint64(b.Resize(8), text)
				err = c.Send(b)
			} else if ev.Ended() {
				err = c.Close()
			}
		}
		failed = errors.Join(failed, err)
	}
}

func (s *connMessages) call(int) error {
	if err := s.client.SendBytes(s.body); err != nil {
		return err
	}
	b, err := s.client.Receive(context.Background())
	if err != nil {
		return err
	}
	defer s.client.Release(b)
	if got := b.Bytes(); len(got) != 8 || binary.BigEndian.Uint64(got) != s.want {
		return errAnswer
	}
	return nil
}

func (s *connMessages) close() (err error) {
	if s.client != nil {
		err = s.client.Close()
	}
	return errors.Join(err, s.ln.Close(), <-s.served, s.ia.Close())
}
