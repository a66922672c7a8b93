package main

import (
	"context"
	"errors"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// maxMessage is the largest message of a server and its clients.
const maxMessage = 64 << 20

const serviceName = "godat.bench.Echo"

// The methods of the service. Their messages are protobuf's BytesValue.
var (
	call = "/" + serviceName + "/Call"
	echo = &grpc.StreamDesc{StreamName: "Echo", ServerStreams: true, ClientStreams: true, Handler: echoAll}
	sink = grpc.StreamDesc{StreamName: "Sink", ServerStreams: true, ClientStreams: true}
)

func method(s *grpc.StreamDesc) string { return "/" + serviceName + "/" + s.StreamName }

// answerCall answers a call with what it was asked.
func answerCall(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC has the arguments in this order
	var m wrapperspb.BytesValue
	if err := decode(&m); err != nil {
		return nil, err
	}
	return &m, nil
}

// echoAll sends back each message of a stream.
func echoAll(_ any, s grpc.ServerStream) error {
	for {
		var m wrapperspb.BytesValue
		if err := s.RecvMsg(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.SendMsg(&m); err != nil {
			return err
		}
	}
}

// echoServer is a gRPC server on a wire, and a client of it.
type echoServer struct {
	link   *link
	server *grpc.Server
	client *grpc.ClientConn
	served chan error
	// sinks are streams of the method Sink. Each lasts until the server stops.
	sinks chan grpc.ServerStream
	stop  chan struct{}
}

func newEchoServer(w wire) (*echoServer, error) {
	link, err := w.open()
	if err != nil {
		return nil, err
	}
	e := &echoServer{
		link: link, server: grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage)),
		served: make(chan error, 1), sinks: make(chan grpc.ServerStream), stop: make(chan struct{}),
	}
	takes := sink
	takes.Handler = e.sink
	e.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: serviceName,
		Methods:     []grpc.MethodDesc{{MethodName: "Call", Handler: answerCall}},
		Streams:     []grpc.StreamDesc{*echo, takes},
	}, nil)
	e.client, err = grpc.NewClient("passthrough:///"+link.ln.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithContextDialer(link.dial))
	if err != nil {
		return nil, errors.Join(err, link.close())
	}
	go e.serve(link.ln)
	return e, nil
}

func (e *echoServer) serve(ln net.Listener) { e.served <- e.server.Serve(ln) }

// sink lends a stream to newMessages.
func (e *echoServer) sink(_ any, s grpc.ServerStream) error {
	select {
	case e.sinks <- s:
		<-e.stop
	case <-e.stop:
	}
	return nil
}

// close ends all streams, the server and the wire.
func (e *echoServer) close() error {
	close(e.stop)
	err := e.client.Close()
	e.server.Stop()
	return errors.Join(err, <-e.served, e.link.close())
}
