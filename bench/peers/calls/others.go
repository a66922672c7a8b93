package calls

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"strconv"
	"sync"

	"godat/bench/ends"
)

// httpServer serves HTTP/1.1.
type httpServer struct {
	*work
	server *http.Server
	ln     net.Listener
	served chan error
	rooms  sync.Pool // of *[]byte, for requests
}

func serveHTTP(w *work) (server, error) {
	ln, err := ends.Listen()
	if err != nil {
		return nil, err
	}
	s := &httpServer{work: w, ln: ln, served: make(chan error, 1)}
	s.rooms.New = func() any { return new(make([]byte, w.most)) }
	s.server = &http.Server{Handler: s} //nolint:gosec // its client is this program
	go s.serve()
	return s, nil
}

func (s *httpServer) serve() { s.served <- s.server.Serve(s.ln) }

// ServeHTTP answers a put, which is a POST, or a get, whose request is its query.
func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		request, err := hex.DecodeString(r.URL.RawQuery)
		size, failed := s.get(request, hasDeadline(r.Context()))
		if err = errors.Join(err, failed); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = w.Write(s.body[:size]) // fails when the client has gone
		return
	}
	room := s.rooms.Get().(*[]byte)
	defer s.rooms.Put(room)
	if r.ContentLength < 0 || r.ContentLength > int64(len(*room)) {
		http.Error(w, "the length is unknown, or too much", http.StatusBadRequest)
		return
	}
	body := (*room)[:r.ContentLength]
	if _, err := io.ReadFull(r.Body, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = w.Write(binary.BigEndian.AppendUint64(nil, s.put(look(body), hasDeadline(r.Context()))))
}

func (s *httpServer) addr() string { return s.ln.Addr().String() }

func (s *httpServer) close() error {
	err := s.server.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

type httpClient struct {
	heap
	client *http.Transport
	url    string
}

func dialHTTP(addr string, callers int) (client, error) {
	return &httpClient{client: &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}, url: "http://" + addr}, nil
}

// ask makes a request, and reads its answer into a room. More than the room has is an error.
func (c *httpClient) ask(ctx context.Context, method, url string, body io.Reader, room []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	response, err := c.client.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK || response.ContentLength != int64(len(room)) {
		return nil, errors.Join(errAnswer, response.Body.Close())
	}
	n, err := io.ReadFull(response.Body, room)
	return room[:n], errors.Join(err, response.Body.Close())
}

func (c *httpClient) put(ctx context.Context, _ int, body []byte) (uint64, error) {
	var answer [shortBytes]byte
	got, err := c.ask(ctx, http.MethodPost, c.url, bytes.NewReader(body), answer[:])
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(got), nil
}

func (c *httpClient) get(ctx context.Context, _ int, request, room []byte) (view, error) {
	got, err := c.ask(ctx, http.MethodGet, c.url+"/?"+hex.EncodeToString(request), nil, room)
	return look(got), err
}

func (c *httpClient) close() error {
	c.client.CloseIdleConnections()
	return nil
}

// netServer serves net/rpc.
type netServer struct {
	ln   net.Listener
	wait func()
}

// Calls is net/rpc's service.
type Calls struct{ w *work }

// Put answers a request with what it was.
func (c *Calls) Put(body []byte, answer *uint64) error {
	*answer = c.w.put(look(body), false)
	return nil
}

// Get answers with as many bytes as are wanted.
func (c *Calls) Get(request []byte, answer *[]byte) error {
	size, err := c.w.get(request, false)
	*answer = c.w.body[:size]
	return err
}

func serveNetRPC(w *work) (server, error) {
	ln, err := ends.Listen()
	if err != nil {
		return nil, err
	}
	server := rpc.NewServer()
	if err := server.Register(&Calls{w}); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return &netServer{ln, ends.Each(ln, func(conn net.Conn) { server.ServeConn(conn) })}, nil
}

func (s *netServer) addr() string { return s.ln.Addr().String() }

// close is called when the client has gone.
func (s *netServer) close() error {
	err := s.ln.Close()
	s.wait()
	return err
}

type netClient struct {
	heap
	client *rpc.Client
}

func dialNetRPC(addr string, _ int) (client, error) {
	conn, err := rpc.Dial("tcp", addr)
	return &netClient{client: conn}, err
}

func (c *netClient) put(_ context.Context, _ int, body []byte) (got uint64, err error) {
	err = c.client.Call("Calls.Put", body, &got)
	return got, err
}

func (c *netClient) get(_ context.Context, _ int, request, room []byte) (view, error) {
	got := room[:0]
	err := c.client.Call("Calls.Get", request, &got)
	return look(got), err
}

func (c *netClient) close() error { return c.client.Close() }
