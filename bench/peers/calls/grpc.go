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

func startGRPC(s *grpc.Server, put, get grpc.MethodHandler) (server, error) {
	ln, err := ends.Listen()
	if err != nil {
		return nil, err
	}
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: grpcName,
		Methods:     []grpc.MethodDesc{{MethodName: "Put", Handler: put}, {MethodName: "Get", Handler: get}},
	}, nil)
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

// serveGRPC serves messages of protobuf.
func serveGRPC(w *work) (server, error) {
	put := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC has the arguments in this order
		var m wrapperspb.BytesValue
		if err := decode(&m); err != nil {
			return nil, err
		}
		return wrapperspb.Bytes(binary.BigEndian.AppendUint64(nil, w.put(look(m.Value), hasDeadline(ctx)))), nil
	}
	get := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC has the arguments in this order
		var m wrapperspb.BytesValue
		if err := decode(&m); err != nil {
			return nil, err
		}
		size, err := w.get(m.Value, hasDeadline(ctx))
		if err != nil {
			return nil, err
		}
		return wrapperspb.Bytes(w.body[:size]), nil
	}
	return startGRPC(grpc.NewServer(grpc.MaxRecvMsgSize(mostMessage)), put, get)
}

// grpcClient makes unary calls of one ClientConn.
type grpcClient struct {
	heap
	conn *grpc.ClientConn
}

func dialGRPC(addr string, _ int) (client, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostMessage)))
	return &grpcClient{conn: conn}, err
}

func (c *grpcClient) put(ctx context.Context, _ int, body []byte) (uint64, error) {
	var got wrapperspb.BytesValue
	if err := c.conn.Invoke(ctx, grpcPut, wrapperspb.Bytes(body), &got); err != nil {
		return 0, err
	}
	if len(got.Value) != shortBytes {
		return 0, errAnswer
	}
	return binary.BigEndian.Uint64(got.Value), nil
}

func (c *grpcClient) get(ctx context.Context, _ int, request, _ []byte) (view, error) {
	var got wrapperspb.BytesValue
	err := c.conn.Invoke(ctx, grpcGet, wrapperspb.Bytes(request), &got)
	return look(got.Value), err
}

func (c *grpcClient) close() error { return c.conn.Close() }
