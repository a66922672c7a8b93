package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// onEachWire runs a test of gRPC over TCP and over godat's streams.
func onEachWire(t *testing.T, f func(t *testing.T, e *echoServer)) {
	for _, w := range wires {
		t.Run("gRPC"+w.over, func(t *testing.T) {
			e, err := newEchoServer(w)
			require.NoError(t, err)
			f(t, e)
			require.NoError(t, e.close())
		})
	}
}

// body is size bytes that depend on the seed.
func body(seed byte, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func TestALargeBodyComesBackWhole(t *testing.T) {
	onEachWire(t, func(t *testing.T, e *echoServer) {
		for seed, size := range []int{0, 1, 100_000, 16<<20 + 1} {
			out, back := wrapperspb.Bytes(body(byte(seed), size)), new(wrapperspb.BytesValue)
			require.NoError(t, e.client.Invoke(t.Context(), call, out, back))
			assert.True(t, bytes.Equal(out.Value, back.Value), "%d bytes came back as %d others", size, len(back.Value))
		}
	})
}

// converse sends messages on a stream of its own, while it receives their echoes.
func converse(ctx context.Context, client *grpc.ClientConn, seed byte, sizes []int) error {
	s, err := client.NewStream(ctx, echo, method(echo))
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		var err error
		for _, size := range sizes {
			err = errors.Join(err, s.SendMsg(wrapperspb.Bytes(body(seed, size))))
		}
		sent <- errors.Join(err, s.CloseSend())
	}()
	for _, size := range sizes {
		var m wrapperspb.BytesValue
		if err := s.RecvMsg(&m); err != nil {
			return errors.Join(err, <-sent)
		}
		if !bytes.Equal(m.Value, body(seed, size)) {
			return errors.Join(fmt.Errorf("%d bytes came back as %d others", size, len(m.Value)), <-sent)
		}
	}
	if err := s.RecvMsg(new(wrapperspb.BytesValue)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("a message after the last: %w", err)
	}
	return <-sent
}

func TestStreamsAtTheSameTimeKeepTheirMessages(t *testing.T) {
	onEachWire(t, func(t *testing.T, e *echoServer) {
		var all sync.WaitGroup
		for seed := range byte(8) {
			all.Go(func() {
				assert.NoError(t, converse(t.Context(), e.client, seed, []int{1, 64, 5000, 70_000, 300_000, 3}))
			})
		}
		all.Go(func() { assert.NoError(t, converse(t.Context(), e.client, 99, []int{16 << 20, 100})) })
		all.Wait()
	})
}

func TestAServerThatStopsEndsItsStreams(t *testing.T) {
	onEachWire(t, func(t *testing.T, e *echoServer) {
		s, err := e.client.NewStream(t.Context(), echo, method(echo))
		require.NoError(t, err)
		require.NoError(t, s.SendMsg(wrapperspb.Bytes([]byte("once"))))
		require.NoError(t, s.RecvMsg(new(wrapperspb.BytesValue)))
		e.server.Stop()
		assert.Error(t, s.RecvMsg(new(wrapperspb.BytesValue)))
	})
}
