package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

// turned is what a handler writes for what it has read.
func turned(b []byte) []byte {
	b = bytes.Clone(b)
	for i := range b {
		b[i]++
	}
	return b
}

func TestMemoryThatIsNotRegisteredIsMoved(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s := serve(t, ia, Config{}, 2, func(r *Request) {
			body := make([]byte, r.SourceLen())
			assert.NoError(t, r.ReadBytes(body, 0))
			assert.NoError(t, r.WriteBytes(turned(body)[:r.SinkLen()], 0))
			_ = r.Reply(binary.BigEndian.AppendUint32(nil, uint32(len(body))))
		})
		c := dial(t, ia, s, Config{})
		for _, n := range []int{0, 1, 4097, 1 << 20} {
			out, in := make([]byte, n), make([]byte, n)
			for i := range out {
				out[i] = byte(i)
			}
			got, err := c.Call(within(t), Call{SourceBytes: out, SinkBytes: in}, []byte("before "))
			require.NoError(t, err)
			require.Equal(t, binary.BigEndian.AppendUint32([]byte("before "), uint32(n)), got)
			require.True(t, bytes.Equal(turned(out), in))
			_, err = c.Call(within(t), Call{SourceBytes: out}, nil)
			require.NoError(t, err)
		}
	}) // the zones close only when they are empty
}

func TestMemoryOfACallIsGivenOnce(t *testing.T) {
	ia := open(t, "loop")
	c := dial(t, ia, serve(t, ia, Config{}, 1, echo), Config{})
	m := alloc(t, c.PZ(), 8)
	for _, call := range []Call{
		{Source: m.Remote(0, 8), SourceBytes: make([]byte, 1)},
		{Sink: m.Remote(0, 8), SinkBytes: make([]byte, 1)},
	} {
		got, err := c.Call(within(t), call, []byte("kept"))
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		assert.Equal(t, "kept", string(got))
	}
	got, err := c.Call(within(t), Call{Payload: []byte("x"), Sink: m.Remote(0, 8), SinkBytes: []byte{}}, nil)
	require.NoError(t, err)
	assert.Equal(t, "x", string(got))
}

func TestMemoryThatIsNotRegisteredIsTheCallersWhenItsContextHasEnded(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		const size = 4 << 20
		ctx, cancel := context.WithCancel(t.Context())
		wrote := make(chan error, 1)
		body := make([]byte, size)
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			cancel()
			wrote <- lend(r.from.server.PZ(), body, dat.LocalRead, func(m *dat.LMR) error { // which does not let go
				for {
					if err := r.Conn().Do(context.Background(), dat.DTO{Op: dat.OpWrite, Segment: segment(m, size), Remote: r.sink}); err != nil {
						return err
					}
				}
			})
			_ = r.Reply(nil)
		})
		c := dial(t, ia, s, Config{Patience: 1})
		mine := make([]byte, size)
		_, err := c.Call(ctx, Call{SinkBytes: mine}, nil)
		require.ErrorIs(t, err, context.Canceled)
		for i := range mine {
			mine[i] = 1
		}
		require.Error(t, <-wrote, "the client breaks the connection")
		require.Equal(t, size, bytes.Count(mine, []byte{1}))
	})
}
