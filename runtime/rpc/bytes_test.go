package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/mem"
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

func TestACallerLearnsHowFarItsSinkWasWritten(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, ia, Config{}, 2, func(r *Request) {
			switch r.Method() {
			case 1:
				assert.NoError(t, r.WriteBytes(make([]byte, 3), 10))
				assert.NoError(t, r.WriteBytes(make([]byte, 5), 0), "behind which the furthest stays")
			case 2:
				assert.NoError(t, r.WriteBytes(make([]byte, 7), 0))
				assert.Error(t, r.WriteBytes(make([]byte, 50), 0))
				_ = r.Fail(CodeUser, "half of it")
				return
			case 3:
				assert.NoError(t, r.WriteBytes(make([]byte, piece+1), 0))
			case 4:
				assert.NoError(t, r.WriteBytes(make([]byte, 7), 0))
				cancel()
				<-r.Context().Done()
			}
			_ = r.Reply(nil)
		})
		c := dial(t, ia, s, Config{Calls: 1})
		for _, test := range []struct {
			method     uint16
			sink, want int
		}{{0, 20, 0}, {1, 20, 13}, {2, 20, 7}, {0, 0, 0}, {3, piece + 9, piece + 1}, {0, 20, 0}} {
			n := -1
			_, err := c.Call(within(t), Call{Method: test.method, SinkBytes: make([]byte, test.sink), Written: &n}, nil)
			assert.Equal(t, test.method == 2, err != nil, err)
			assert.Equal(t, test.want, n, test.method)
		}
		n := -1
		_, err := c.Call(ctx, Call{Method: 4, SinkBytes: make([]byte, 20), Written: &n}, nil)
		require.ErrorIs(t, err, context.Canceled)
		assert.Zero(t, n, "there was no answer")
	})
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

// A close does not wait for the program where the region is the call's own.
func TestCloseWaitsForCallsWithMemoryThatIsNotRegistered(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		for range 20 {
			begun, mayMove, moved := make(chan *Request), make(chan bool), make(chan error, 1)
			s, err := Listen(t.Context(), ia, ":0", Config{})
			require.NoError(t, err)
			go func() {
				for r := s.nextRequest(); r != nil; r = s.nextRequest() {
					begun <- r
				}
			}()
			c, err := Dial(within(t), ia, s.Addr(), Config{})
			require.NoError(t, err)
			called := make(chan error, 1)
			go func() {
				_, err := c.Call(within(t), Call{SourceBytes: make([]byte, 1<<20)}, nil)
				called <- err
			}()
			r := <-begun
			go func() {
				close(mayMove)
				moved <- r.ReadBytes(make([]byte, 1<<20), 0)
			}()
			<-mayMove
			require.NoError(t, s.Close())
			require.NoError(t, c.Close())
			require.ErrorIs(t, <-called, ErrEnded)
			if err := <-moved; err != nil {
				require.ErrorIs(t, err, ErrEnded)
			}
			require.ErrorIs(t, r.ReadBytes(make([]byte, 1), 0), ErrEnded)
			require.ErrorIs(t, r.Reply(nil), ErrEnded)
			_, err = c.Call(within(t), Call{SourceBytes: make([]byte, 1)}, nil)
			require.ErrorIs(t, err, ErrEnded)
		}
	})
}

func TestClosesOfNothing(t *testing.T) {
	assert.ErrorIs(t, (*Client)(nil).Close(), hw.ErrInvalidHandle)
	assert.ErrorIs(t, (*Server)(nil).Close(), hw.ErrInvalidHandle)
}

func TestACallNamesNoMoreBytesThanASegmentDoes(t *testing.T) {
	assert.NoError(t, mayName(math.MaxUint32, math.MaxUint32))
	assert.ErrorIs(t, mayName(1<<32, 0), hw.ErrLength)
	assert.ErrorIs(t, mayName(0, 1<<32), hw.ErrLength)
	ia := open(t, "loop")
	c := dial(t, ia, serve(t, ia, Config{}, 1, echo), Config{})
	m := alloc(t, c.PZ(), 8)
	for _, call := range []Call{{Source: m.Remote(1, 8)}, {Sink: m.Remote(-1, 8)}} {
		_, err := c.Call(within(t), call, nil)
		require.ErrorIs(t, err, hw.ErrLength)
	}
}

func TestMemoryThatIsNotRegisteredIsTheCallersWhenItsContextHasEnded(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		const size = 4 << 20
		ctx, cancel := context.WithCancel(t.Context())
		wrote := make(chan error, 1)
		body := make([]byte, size)
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			cancel()
			wrote <- new(loans).lend(r.from.server.PZ(), body, hw.LocalRead, func(m *mem.LMR) error { // which does not let go
				for {
					if err := r.Conn().Do(context.Background(), ep.DTO{Op: hw.OpWrite, Segment: segment(m, size), Remote: r.sink}); err != nil {
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
