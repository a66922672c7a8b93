package rpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

var octetSeed = flag.Uint64("octet.seed", 0, "chooses the octets; 0 means a new one")

const (
	patience = 10 * time.Millisecond
	slack    = 20 * time.Second // for a processor that others use
	atATime  = 16               // connections
)

// exchange is a client that dials and calls over a proxy.
type exchange struct {
	proxy  *proxy
	memory bool // the call names memory
	of     *handlers
	method uint16 // which no other exchange has
	called int    // octets of the proxy's direction until the call has its answer
}

// handlers counts those that run, by method.
type handlers [1 << 16]atomic.Int32

const (
	asked   = "what the caller has"
	replied = "what the server has" // to a call of an exchange's method
	another = "another answer"      // to one of method 0
)

// scribble is what a caller has in its memory behind a call.
var scribble = bytes.Repeat([]byte{'#'}, len(asked))

// handler answers calls, and checks that it gets what their callers had at the time.
func (h *handlers) handler(t *testing.T) func(*Request) {
	return func(r *Request) {
		run := &h[r.Method()]
		run.Add(1)
		defer run.Add(-1)
		if r.Method() == 0 {
			_ = r.Reply([]byte(another))
			return
		}
		assert.Equal(t, asked, string(r.Payload()))
		if r.SourceLen() == 0 {
			_ = r.Reply([]byte(replied))
			return
		}
		read, err := r.ReadAll()
		if err == nil {
			assert.Equal(t, asked, string(read))
			err = r.WriteBytes([]byte(replied), 0)
		}
		if err != nil {
			_ = r.Fail(CodeUser, err.Error())
			return
		}
		_ = r.Reply([]byte(replied))
	}
}

// play makes the exchange. A context ends when the connection stalls, or has a deadline.
func (x *exchange) play(t *testing.T, ia *dat.IA, deadline bool) {
	stalled := x.proxy.how == stalls || x.proxy.how == freezes
	ctx, cancel := context.WithTimeout(within(t), slack)
	defer cancel()
	if stalled {
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			select {
			case <-x.proxy.reached:
				cancel()
			case <-stop:
			}
		}()
	}
	c, err := Dial(ctx, ia, x.proxy.addr(), Config{Calls: 2, Message: 64, Patience: patience})
	if err != nil {
		x.failed(ctx, t, stalled)
		return
	}
	if deadline {
		var over context.CancelFunc
		ctx, over = context.WithTimeout(within(t), 5*patience)
		defer over()
	}
	x.call(ctx, t, c, stalled)
	assert.NoError(t, c.Close())
}

// failed checks that something had happened.
func (x *exchange) failed(ctx context.Context, t *testing.T, stalled bool) {
	if stalled {
		assert.ErrorIs(t, ctx.Err(), context.Canceled)
		return
	}
	<-x.proxy.reached
	assert.NoError(t, ctx.Err())
}

// call makes a call, and looks at what it leaves.
func (x *exchange) call(ctx context.Context, t *testing.T, c *Client, stalled bool) {
	call, written := Call{Method: x.method, Payload: []byte(asked)}, 0
	var source, sink *mem.LMR
	if x.memory {
		source, sink = lent(t, c, asked), lent(t, c, string(make([]byte, len(replied))))
		call.Source, call.Sink, call.Written = source.Remote(0, len(asked)), sink.Remote(0, len(replied)), &written
	}
	begun := time.Now()
	got, err := c.Call(ctx, call, nil)
	assert.Less(t, time.Since(begun), slack+slack/2)
	var none *CallError
	switch {
	case err == nil:
		x.called = x.proxy.octets()
		assert.Equal(t, replied, string(got))
		if x.memory {
			assert.Equal(t, replied, string(sink.Bytes()))
			assert.Equal(t, len(replied), written)
		}
	case errors.As(err, &none):
		assert.Empty(t, got)
		assert.Zero(t, written)
		assert.True(t, errors.Is(err, ErrEnded) || passed(ctx) != nil, "%v", err)
	default: // of a transfer that the handler was refused, behind the end of the call's time
		assert.ErrorIs(t, err, &Error{Code: CodeUser})
	}
	if x.memory {
		// The memory is the caller's, whatever still comes.
		copy(source.Bytes(), scribble)
		copy(sink.Bytes(), scribble)
	}
	if stalled {
		assert.Eventually(t, func() bool { return x.of[x.method].Load() == 0 }, slack, time.Millisecond, "the server lets go before its client does")
		x.proxy.goOn()
		got, err = c.Call(within(t), Call{}, nil)
		if err == nil {
			assert.Equal(t, another, string(got), "and not the answer of the call before")
		} else {
			assert.True(t, x.memory, "a call without memory leaves the connection: %v", err)
			assert.ErrorIs(t, err, ErrEnded)
		}
	}
	if x.memory {
		assert.Equal(t, scribble, sink.Bytes())
		assert.NoError(t, errors.Join(source.Free(), sink.Free()))
	}
}

// lent is memory for a call.
func lent(t *testing.T, c *Client, text string) *mem.LMR {
	m, err := c.PZ().Alloc(len(text), hw.AllPrivileges)
	if assert.NoError(t, err) {
		copy(m.Bytes(), text)
	}
	return m
}

// A peer may stall or die at any octet of the start-up, a call or its answer. The call ends with
// its own answer or an error, leaves its memory, and the server lets go of all that it had.
func TestAPeerMayStallOrDieAtAnyOctet(t *testing.T) {
	ia := open(t, "iwarp:127.0.0.1")
	for _, memory := range []bool{false, true} {
		for _, toServer := range []bool{false, true} {
			name := fmt.Sprintf("memory=%v/to the server=%v", memory, toServer)
			require.True(t, t.Run(name, func(t *testing.T) { atAnyOctet(t, ia, memory, toServer) }))
		}
	}
}

func atAnyOctet(t *testing.T, ia *dat.IA, memory, toServer bool) {
	s, err := Listen(t.Context(), ia, "127.0.0.1:0", Config{Calls: 2, Message: 64, Patience: patience, Stall: 10 * patience})
	require.NoError(t, err)
	var under handlers
	var serving sync.WaitGroup
	serving.Go(func() { handle(s, 8*atATime, under.handler(t)) })

	meter := newProxy(t, s.Addr(), toServer, whole, 0)
	x := exchange{proxy: meter, memory: memory, of: &under, method: 1}
	x.play(t, ia, false)
	meter.close()
	require.Greater(t, x.called, 50, "a start-up and a call have more")

	seed := cmp.Or(*octetSeed, rand.Uint64())
	t.Logf("-octet.seed=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	places, step, method := make(chan struct{}, atATime), 1, uint16(1)
	if testing.Short() || slow {
		step = 1 + x.called/20
	}
	var all sync.WaitGroup
	for how := range whole {
		for octets := rnd.IntN(step); octets < x.called; octets += 1 + rnd.IntN(2*step-1) {
			places <- struct{}{}
			method++
			deadline := rnd.IntN(2) == 0
			x := exchange{proxy: newProxy(t, s.Addr(), toServer, how, octets), memory: memory, of: &under, method: method}
			all.Go(func() {
				defer func() { <-places }()
				defer x.proxy.close()
				x.play(t, ia, deadline)
			})
		}
	}
	all.Wait()
	got, err := dial(t, ia, s, Config{}).Call(within(t), Call{}, nil)
	require.NoError(t, err)
	assert.Equal(t, another, string(got))
	ctx, cancel := context.WithTimeout(t.Context(), slack)
	defer cancel()
	require.NoError(t, s.Shutdown(ctx), "no connection that has died holds it")
	serving.Wait()
	for i := range under {
		require.Zero(t, under[i].Load())
	}
}
