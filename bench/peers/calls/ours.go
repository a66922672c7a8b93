package calls

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// The methods of our server.
const (
	methodPut = 1
	methodGet = 2
)

// inside is the most bytes of a payload inside a message.
const inside = 4 << 10

// rpcServer serves calls of runtime/rpc.
type rpcServer struct {
	*work
	ia         *dat.IA
	server     *rpc.Server
	registered bool
	source     *mem.LMR      // the body
	rooms      chan *mem.LMR // for requests
	serving    sync.WaitGroup
	served     error // by Serve
}

func serveRPC(provider string, w *work, registered bool) (_ server, err error) {
	s := &rpcServer{work: w, registered: registered, rooms: make(chan *mem.LMR, workers)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.ia, err = dat.Open(context.Background(), provider); err != nil {
		return nil, err
	}
	if s.server, err = rpc.Listen(context.Background(), s.ia, "127.0.0.1:0", rpc.Config{}); err != nil {
		return nil, err
	}
	if registered && w.most > inside {
		if err = s.register(); err != nil {
			return nil, err
		}
	}
	s.serving.Go(func() { s.served = s.server.Serve(context.Background(), workers, s.handle) })
	return s, nil
}

func (s *rpcServer) register() (err error) {
	if s.source, err = s.server.PZ().Alloc(s.most, hw.LocalRead); err != nil {
		return err
	}
	copy(s.source.Bytes(), s.body)
	for range workers {
		room, err := s.server.PZ().Alloc(s.most, hw.LocalWrite)
		if err != nil {
			return err
		}
		s.rooms <- room
	}
	return nil
}

func (s *rpcServer) handle(r *rpc.Request) ([]byte, error) {
	if r.Method() == methodGet {
		return s.answer(r)
	}
	body := r.Payload()
	if n := r.SourceLen(); n > 0 {
		if s.registered {
			room := <-s.rooms
			defer func() { s.rooms <- room }()
			if err := r.Read(room.Segment(0, n), 0); err != nil {
				return nil, err
			}
			body = room.Bytes()[:n]
		} else {
			var err error
			if body, err = r.ReadAll(); err != nil {
				return nil, err
			}
		}
	}
	return binary.BigEndian.AppendUint64(nil, s.put(look(body), hasDeadline(r.Context()))), nil
}

// answer answers a get: inside the message, or in the caller's memory.
func (s *rpcServer) answer(r *rpc.Request) ([]byte, error) {
	size, err := s.get(r.Payload(), hasDeadline(r.Context()))
	switch {
	case err != nil:
		return nil, err
	case r.SinkLen() == 0:
		return s.body[:size], nil
	case s.registered:
		return nil, r.Write(s.source.Segment(0, size), 0)
	}
	return nil, r.WriteBytes(s.body[:size], 0)
}

func (s *rpcServer) addr() string { return s.server.Addr() }

func (s *rpcServer) close() (err error) {
	for range len(s.rooms) {
		err = errors.Join(err, (<-s.rooms).Free())
	}
	if s.source != nil {
		err = errors.Join(err, s.source.Free())
	}
	if s.server != nil {
		err = errors.Join(err, s.server.Close())
		s.serving.Wait()
		err = errors.Join(err, s.served)
	}
	if s.ia != nil {
		err = errors.Join(err, s.ia.Close())
	}
	return err
}

// rpcClient makes calls of runtime/rpc.
type rpcClient struct {
	ia         *dat.IA
	client     *rpc.Client
	registered bool
	regions    []*mem.LMR // by caller
	answers    [][]byte   // by caller
	written    []int      // by caller
}

func dialRPC(provider, addr string, callers int, registered bool) (client, error) {
	ctx := context.Background()
	ia, err := dat.Open(ctx, provider)
	if err != nil {
		return nil, err
	}
	c, err := rpc.Dial(ctx, ia, addr, rpc.Config{})
	if err != nil {
		return nil, errors.Join(err, ia.Close())
	}
	s := &rpcClient{ia: ia, client: c, registered: registered, regions: make([]*mem.LMR, callers), answers: make([][]byte, callers), written: make([]int, callers)}
	return s, nil
}

func (c *rpcClient) memory(caller, size int) (_ []byte, err error) {
	c.answers[caller] = make([]byte, 0, inside)
	if !c.registered || size <= inside {
		return make([]byte, size), nil
	}
	if c.regions[caller], err = c.client.PZ().Alloc(size, hw.LocalRead|hw.LocalWrite|hw.RemoteRead|hw.RemoteWrite); err != nil {
		return nil, err
	}
	return c.regions[caller].Bytes(), nil
}

func (c *rpcClient) put(ctx context.Context, caller int, body []byte) (uint64, error) {
	call := rpc.Call{Method: methodPut}
	switch {
	case len(body) <= inside:
		call.Payload = body
	case c.registered:
		call.Source = c.regions[caller].Remote(0, len(body))
	default:
		call.SourceBytes = body
	}
	got, err := c.client.Call(ctx, call, c.answers[caller])
	if err != nil {
		return 0, err
	}
	if len(got) != shortBytes {
		return 0, errAnswer
	}
	return binary.BigEndian.Uint64(got), nil
}

func (c *rpcClient) get(ctx context.Context, caller int, request, room []byte) (view, error) {
	written := &c.written[caller]
	call := rpc.Call{Method: methodGet, Payload: request, Written: written}
	switch {
	case len(room) <= inside:
	case c.registered:
		call.Sink = c.regions[caller].Remote(0, len(room))
	default:
		call.SinkBytes = room
	}
	got, err := c.client.Call(ctx, call, c.answers[caller])
	if len(room) > inside {
		got = room[:*written]
	}
	return look(got), err
}

func (c *rpcClient) close() (err error) {
	for _, region := range c.regions {
		if region != nil {
			err = errors.Join(err, region.Free())
		}
	}
	return errors.Join(err, c.client.Close(), c.ia.Close())
}
