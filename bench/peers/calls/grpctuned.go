package calls

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/grpc"
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

var tunedCodec = codec{func(b []byte) any { return &frame{bytes: b} }, func() received { return new(frame) }}

func serveTunedGRPC(w *work) (server, error) {
	return startGRPC(w, tunedCodec,
		grpc.MaxRecvMsgSize(mostMessage), grpc.ForceServerCodecV2(frames{}), grpc.NumStreamWorkers(workers),
		grpc.StaticStreamWindowSize(grpcStreamWindow), grpc.StaticConnWindowSize(grpcConnWindow),
		grpc.ReadBufferSize(grpcBuffer), grpc.WriteBufferSize(grpcBuffer))
}

func dialTunedGRPC(addr string, _ int) (client, error) {
	return newGRPC(addr, tunedCodec, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(frames{})),
		grpc.WithStaticStreamWindowSize(grpcStreamWindow), grpc.WithStaticConnWindowSize(grpcConnWindow),
		grpc.WithReadBufferSize(grpcBuffer), grpc.WithWriteBufferSize(grpcBuffer))
}
