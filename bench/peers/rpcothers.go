package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"sync"

	"github.com/quic-go/quic-go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// asked is what the sites of others have in common.
type asked struct {
	body []byte
	want uint64
}

func ask(size int) asked {
	body := newBody(size)
	return asked{body, seen(body)}
}

func (a *asked) check(got uint64) error {
	if got != a.want {
		return errAnswer
	}
	return nil
}

// grpcCalls are unary calls of one ClientConn.
type grpcCalls struct {
	asked
	*echoServer
}

func openGRPC(size, _ int) (site, error) {
	e, err := newEchoServer(wires[0])
	if err != nil {
		return nil, err
	}
	return &grpcCalls{ask(size), e}, nil
}

var take = "/" + serviceName + "/Take"

// answerTake answers a request with what it was.
func answerTake(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC has the arguments in this order
	var m wrapperspb.BytesValue
	if err := decode(&m); err != nil {
		return nil, err
	}
	return wrapperspb.UInt64(seen(m.Value)), nil
}

func (s *grpcCalls) call(int) error {
	var got wrapperspb.UInt64Value
	if err := s.client.Invoke(context.Background(), take, wrapperspb.Bytes(s.body), &got); err != nil {
		return err
	}
	return s.check(got.Value)
}

// netCalls are calls of net/rpc, with gob, over one connection.
type netCalls struct {
	asked
	client *rpc.Client
	ends   sync.WaitGroup
}

// Taker is net/rpc's service.
type Taker struct{}

// Take answers a request with what it was.
func (Taker) Take(body []byte, answer *uint64) error {
	*answer = seen(body)
	return nil
}

func openNetRPC(size, _ int) (site, error) {
	server := rpc.NewServer()
	if err := server.Register(Taker{}); err != nil {
		return nil, err
	}
	link, err := wires[0].open()
	if err != nil {
		return nil, err
	}
	a, b, err := link.pair()
	if err = errors.Join(err, link.close()); err != nil {
		return nil, err
	}
	s := &netCalls{asked: ask(size), client: rpc.NewClient(a)}
	s.ends.Go(func() { server.ServeConn(b) })
	return s, nil
}

func (s *netCalls) call(int) error {
	var got uint64
	if err := s.client.Call("Taker.Take", s.body, &got); err != nil {
		return err
	}
	return s.check(got)
}

func (s *netCalls) close() error {
	err := s.client.Close()
	s.ends.Wait()
	return err
}

// httpCalls are HTTP/1.1 POSTs, with a connection for each caller.
type httpCalls struct {
	asked
	server *http.Server
	client *http.Transport
	url    string
	served chan error
	rooms  sync.Pool // of bodies
}

func openHTTP(size, callers int) (site, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &httpCalls{asked: ask(size), url: "http://" + ln.Addr().String(), served: make(chan error, 1)}
	s.rooms.New = func() any { return new(make([]byte, size)) }
	s.server = &http.Server{Handler: s} //nolint:gosec // its client is this process
	s.client = &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}
	go s.serve(ln)
	return s, nil
}

func (s *httpCalls) serve(ln net.Listener) { s.served <- s.server.Serve(ln) }

// ServeHTTP answers a request with what it was.
func (s *httpCalls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	room := s.rooms.Get().(*[]byte)
	defer s.rooms.Put(room)
	if _, err := io.ReadFull(r.Body, *room); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var answer [8]byte
	binary.BigEndian.PutUint64(answer[:], seen(*room))
	_, _ = w.Write(answer[:]) // fails when the client has gone
}

func (s *httpCalls) call(int) error {
	request, err := http.NewRequest(http.MethodPost, s.url, bytes.NewReader(s.body)) //nolint:noctx // nobody cancels it
	if err != nil {
		return err
	}
	response, err := s.client.RoundTrip(request)
	if err != nil {
		return err
	}
	var answer [8]byte
	_, err = io.ReadFull(response.Body, answer[:])
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	return s.check(binary.BigEndian.Uint64(answer[:]))
}

func (s *httpCalls) close() error {
	s.client.CloseIdleConnections()
	err := s.server.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// streamCalls are calls over QUIC, with a stream for each caller.
type streamCalls struct {
	asked
	pair    *quicPair
	streams []*quic.Stream
	ends    sync.WaitGroup
}

func openStreams(size, callers int) (site, error) {
	s := &streamCalls{asked: ask(size), pair: &quicPair{
		server: new(quic.Transport), client: new(quic.Transport), cfg: quic.Config{MaxIncomingStreams: int64(callers)},
	}}
	a, b, err := s.pair.open(context.Background())
	for err == nil {
		s.streams = append(s.streams, a)
		end := b
		s.ends.Go(func() { answerStream(end, size) })
		if len(s.streams) == callers {
			return s, nil
		}
		a, b, err = openStream(context.Background(), s.pair.conn, s.pair.peer)
	}
	return nil, errors.Join(fmt.Errorf("%d streams: %w", len(s.streams), err), s.close())
}

// answerStream answers requests until the stream ends.
func answerStream(b *quic.Stream, size int) {
	body := make([]byte, size)
	var answer [8]byte
	for {
		if _, err := io.ReadFull(b, body); err != nil {
			return
		}
		binary.BigEndian.PutUint64(answer[:], seen(body))
		if _, err := b.Write(answer[:]); err != nil {
			return
		}
	}
}

func (s *streamCalls) call(caller int) error {
	a := s.streams[caller]
	if _, err := a.Write(s.body); err != nil {
		return err
	}
	var answer [8]byte
	if _, err := io.ReadFull(a, answer[:]); err != nil {
		return err
	}
	return s.check(binary.BigEndian.Uint64(answer[:]))
}

func (s *streamCalls) close() error {
	err := s.pair.close()
	s.ends.Wait()
	return err
}
