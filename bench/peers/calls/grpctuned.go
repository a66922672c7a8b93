package calls

import (
	"context"
	"encoding/binary"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// The options of gRPC, tuned.
const (
	grpcStreamWindow = 8 << 20
	grpcConnWindow   = 64 << 20
	grpcBuffer       = 256 << 10
)

var tunedOptions = fmt.Sprintf("unary calls with a CodecV2 that sends the caller's bytes and hands over gRPC's own buffers, without a copy (a payload is not in one piece there); "+
	"StaticStreamWindowSize %s and StaticConnWindowSize %s, ReadBufferSize and WriteBufferSize %s, at both ends; NumStreamWorkers %d at the server, one connection, MaxRecvMsgSize, insecure credentials",
	bytesText(grpcStreamWindow), bytesText(grpcConnWindow), bytesText(grpcBuffer), workers)

// frame is a message of the codec: bytes to send, or buffers that came.
type frame struct {
	bytes   []byte
	buffers mem.BufferSlice // free returns them
}

// look looks at buffers as the function look at bytes.
func (f *frame) look() (v view) {
	v.length = f.buffers.Len()
	if v.length < shortBytes {
		return v
	}
	var first [shortBytes]byte
	for i := range first {
		first[i] = f.at(i)
	}
	v.first, v.mid, v.last = binary.BigEndian.Uint64(first[:]), f.at(v.length/2), f.at(v.length-1)
	return v
}

func (f *frame) at(i int) byte {
	for _, b := range f.buffers {
		if data := b.ReadOnlyData(); i < len(data) {
			return data[i]
		}
		i -= b.Len()
	}
	return 0
}

// short are the bytes of a short message.
func (f *frame) short() []byte {
	if len(f.buffers) == 1 {
		return f.buffers[0].ReadOnlyData()
	}
	return f.buffers.Materialize()
}

func (f *frame) free() { f.buffers.Free() }

// frames is the codec.
type frames struct{}

// Name implements encoding.CodecV2.
func (frames) Name() string { return "frames" }

// Marshal implements encoding.CodecV2.
func (frames) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(*frame).bytes)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (frames) Unmarshal(data mem.BufferSlice, v any) error {
	data.Ref()
	f := v.(*frame)
	f.buffers = append(f.buffers[:0], data...) // the slice itself is gRPC's
	return nil
}

// serveTunedGRPC serves frames.
func serveTunedGRPC(w *work) (server, error) {
	put := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC has the arguments in this order
		var m frame
		if err := decode(&m); err != nil {
			return nil, err
		}
		defer m.free()
		return &frame{bytes: binary.BigEndian.AppendUint64(nil, w.put(m.look(), hasDeadline(ctx)))}, nil
	}
	get := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC has the arguments in this order
		var m frame
		if err := decode(&m); err != nil {
			return nil, err
		}
		defer m.free()
		size, err := w.get(m.short(), hasDeadline(ctx))
		if err != nil {
			return nil, err
		}
		return &frame{bytes: w.body[:size]}, nil
	}
	return startGRPC(grpc.NewServer(
		grpc.MaxRecvMsgSize(mostMessage), grpc.ForceServerCodecV2(frames{}), grpc.NumStreamWorkers(workers),
		grpc.StaticStreamWindowSize(grpcStreamWindow), grpc.StaticConnWindowSize(grpcConnWindow),
		grpc.ReadBufferSize(grpcBuffer), grpc.WriteBufferSize(grpcBuffer),
	), put, get)
}

// tunedClient makes calls of frames.
type tunedClient struct{ grpcClient }

func dialTunedGRPC(addr string, _ int) (client, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostMessage), grpc.ForceCodecV2(frames{})),
		grpc.WithStaticStreamWindowSize(grpcStreamWindow), grpc.WithStaticConnWindowSize(grpcConnWindow),
		grpc.WithReadBufferSize(grpcBuffer), grpc.WithWriteBufferSize(grpcBuffer))
	return &tunedClient{grpcClient{conn: conn}}, err
}

func (c *tunedClient) put(ctx context.Context, _ int, body []byte) (uint64, error) {
	var got frame
	if err := c.conn.Invoke(ctx, grpcPut, &frame{bytes: body}, &got); err != nil {
		return 0, err
	}
	defer got.free()
	if b := got.short(); len(b) == shortBytes {
		return binary.BigEndian.Uint64(b), nil
	}
	return 0, errAnswer
}

func (c *tunedClient) get(ctx context.Context, _ int, request, _ []byte) (view, error) {
	var got frame
	if err := c.conn.Invoke(ctx, grpcGet, &frame{bytes: request}, &got); err != nil {
		return view{}, err
	}
	defer got.free()
	return got.look(), nil
}
