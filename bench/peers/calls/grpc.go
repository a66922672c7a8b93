package calls

import (
	"context"
	"encoding/binary"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"godat/bench/ends"
)

// mostMessage is the largest message of gRPC's.
const mostMessage = 65 << 20

// The methods of gRPC's service.
const (
	grpcName = "godat.bench.Calls"
	grpcPut  = "/" + grpcName + "/Put"
	grpcGet  = "/" + grpcName + "/Get"
)

// grpcServer is a server of gRPC, tuned or not.
type grpcServer struct {
	ln     net.Listener
	server *grpc.Server
	served chan error
}

// received is what comes in a message of gRPC's.
type received interface {
	look() view
	short() []byte // the bytes of a short one
	free()
}

// codec makes messages: of what is to be sent, and for what comes.
type codec struct {
	of   func([]byte) any
	room func() received
}

// plainMessage is a message of protobuf.
type plainMessage struct{ wrapperspb.BytesValue }

func (m *plainMessage) look() view    { return look(m.Value) }
func (m *plainMessage) short() []byte { return m.Value }
func (*plainMessage) free()           {}

var plainCodec = codec{func(b []byte) any { return wrapperspb.Bytes(b) }, func() received { return new(plainMessage) }}

func serveGRPC(w *work) (server, error) {
	return startGRPC(w, plainCodec, grpc.MaxRecvMsgSize(mostMessage))
}

func startGRPC(w *work, c codec, options ...grpc.ServerOption) (server, error) {
	ln, err := ends.Listen()
	if err != nil {
		return nil, err
	}
	// method answers what came.
	method := func(name string, answer func(m received, deadline bool) ([]byte, error)) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC has the arguments in this order
			m := c.room()
			if err := decode(m); err != nil {
				return nil, err
			}
			defer m.free()
			body, err := answer(m, hasDeadline(ctx))
			if err != nil {
				return nil, err
			}
			return c.of(body), nil
		}}
	}
	s := grpc.NewServer(options...)
	s.RegisterService(&grpc.ServiceDesc{ServiceName: grpcName, Methods: []grpc.MethodDesc{
		method("Put", func(m received, deadline bool) ([]byte, error) {
			return binary.BigEndian.AppendUint64(nil, w.put(m.look(), deadline)), nil
		}),
		method("Get", func(m received, deadline bool) ([]byte, error) {
			size, err := w.get(m.short(), deadline)
			return w.body[:size], err
		}),
	}}, nil)
	g := &grpcServer{ln, s, make(chan error, 1)}
	go g.serve()
	return g, nil
}

func (g *grpcServer) serve()       { g.served <- g.server.Serve(g.ln) }
func (g *grpcServer) addr() string { return g.ln.Addr().String() }
func (g *grpcServer) close() error {
	g.server.Stop()
	return <-g.served
}

// grpcClient makes unary calls of one ClientConn.
type grpcClient struct {
	heap
	codec
	conn *grpc.ClientConn
}

func dialGRPC(addr string, _ int) (client, error) { return newGRPC(addr, plainCodec) }

func newGRPC(addr string, c codec, options ...grpc.DialOption) (client, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostMessage)))...)
	return &grpcClient{codec: c, conn: conn}, err
}

func (c *grpcClient) put(ctx context.Context, _ int, body []byte) (uint64, error) {
	got := c.room()
	if err := c.conn.Invoke(ctx, grpcPut, c.of(body), got); err != nil {
		return 0, err
	}
	defer got.free()
	if b := got.short(); len(b) == shortBytes {
		return binary.BigEndian.Uint64(b), nil
	}
	return 0, errAnswer
}

func (c *grpcClient) get(ctx context.Context, _ int, request, _ []byte) (view, error) {
	got := c.room()
	if err := c.conn.Invoke(ctx, grpcGet, c.of(request), got); err != nil {
		return view{}, err
	}
	defer got.free()
	return got.look(), nil
}

func (c *grpcClient) close() error { return c.conn.Close() }
