package client

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	dat "godat/runtime"
)

// The goroutine pool that runtime uses starts two goroutines when it is imported.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

var limits = proto.Limits{Slots: 2, Block: 4096}

// fake is a server whose answers a test makes up. Package server tests the client
// against the real one.
type fake struct {
	*testing.T
	ia       *dat.IA
	psp      *dat.PSP
	requests *dat.Dispatcher
	events   *dat.Dispatcher
	ep       *dat.Endpoint
	memory   *dat.LMR
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{T: t}
	var err error
	f.ia, err = dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	f.requests = f.dispatcher()
	f.events = f.dispatcher()
	f.psp, err = f.ia.NewPSP(dat.PSPConfig{Dispatcher: f.requests})
	require.NoError(t, err)
	pz, err := f.ia.NewPZ()
	require.NoError(t, err)
	f.memory, err = pz.Alloc(1<<16, dat.LocalRead|dat.LocalWrite|dat.RemoteRead|dat.RemoteWrite)
	require.NoError(t, err)
	f.ep, err = f.ia.NewEndpoint(dat.EndpointConfig{PZ: pz, Recv: f.events, Request: f.events, Conn: f.events})
	require.NoError(t, err)
	for i := range uint64(4) {
		require.NoError(t, f.ep.PostRecv(i, dat.Default, f.memory.Segment(int(i)*proto.MessageLen, proto.MessageLen)))
	}
	t.Cleanup(func() {
		assert.NoError(t, f.psp.Close())
		assert.NoError(t, f.ep.Close())
		assert.NoError(t, f.memory.Free())
		assert.NoError(t, pz.Close())
		assert.NoError(t, f.requests.Close())
		assert.NoError(t, f.events.Close())
		assert.NoError(t, f.ia.Close())
	})
	return f
}

func (f *fake) dispatcher() *dat.Dispatcher {
	d, err := f.ia.NewDispatcher(dat.DispatcherConfig{Mode: dat.ModeChannel, QLen: 64})
	require.NoError(f, err)
	return d
}

func (f *fake) address() string { return fmt.Sprintf("%s:%d", f.ia.Attr().Address, f.psp.Qual()) }

// dial connects a client; answer answers its connection request.
func (f *fake) dial(answer func(*dat.CR)) (*Link, error) {
	go func() {
		if ev := <-f.requests.C(); ev.Number == dat.ConnectionRequest {
			answer(dat.RequestOf(ev))
		}
	}()
	return Dial(f.Context(), f.ia, Config{Addr: f.address(), Limits: limits, Stall: 5 * time.Second})
}

func (f *fake) welcome() proto.Welcome {
	return proto.Welcome{Limits: limits, Window: f.memory.Remote(1<<15, limits.Window())}
}

// link connects a client, with a valid answer.
func (f *fake) link() *Link {
	f.Helper()
	l, err := f.dial(func(cr *dat.CR) {
		assert.NoError(f, cr.Accept(f.ep, f.welcome().Append(nil)))
	})
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, l.Close()) })
	ev := <-f.events.C()
	require.Equal(f, dat.Established, ev.Number, "the server may speak from now on")
	return l
}

// send sends a message to the client.
func (f *fake) send(b []byte) {
	const at = 1 << 12
	n := copy(f.memory.Bytes()[at:], b)
	require.NoError(f, f.ep.PostSend(99, dat.Default, f.memory.Segment(at, n)))
}

func TestDialSaysWhyItFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(f *fake, cr *dat.CR) error
		want   error
	}{
		"the server is full": {func(_ *fake, cr *dat.CR) error {
			return cr.Reject(proto.Welcome{Limits: limits, Status: proto.Full}.Append(nil))
		}, proto.Full.Err()},
		"a welcome that is none": {func(f *fake, cr *dat.CR) error {
			return cr.Accept(f.ep, []byte("hello, hello, hello, hello, hello"))
		}, proto.ErrMalformed},
		"more slots than were asked for": {func(f *fake, cr *dat.CR) error {
			w := f.welcome()
			w.Slots, w.Block = limits.Slots*2, limits.Block/2
			return cr.Accept(f.ep, w.Append(nil))
		}, proto.ErrMalformed},
		"a welcome that refuses": {func(f *fake, cr *dat.CR) error {
			w := f.welcome()
			w.Status = proto.Full
			return cr.Accept(f.ep, w.Append(nil))
		}, proto.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			_, err := f.dial(func(cr *dat.CR) { assert.NoError(t, tc.answer(f, cr)) })
			require.ErrorIs(t, err, tc.want)
			assert.ErrorContains(t, err, "connect to")
		})
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Dial(ctx, f.ia, Config{Addr: f.address(), Limits: limits})
	require.ErrorIs(t, err, context.Canceled)
}

func TestAMalformedAnswerEndsTheLink(t *testing.T) {
	good := proto.Message{Op: proto.OpGet, Reply: true, Length: 100, ID: block.IDOf(nil)}
	encode := func(change func(m *proto.Message)) []byte {
		m := good
		change(&m)
		b := make([]byte, proto.MessageLen)
		m.Put(b)
		return b
	}
	for name, answer := range map[string][]byte{
		"nothing":              nil,
		"noise":                make([]byte, proto.MessageLen),
		"a request":            encode(func(m *proto.Message) { m.Reply, m.Length = false, 0 }),
		"to another request":   encode(func(m *proto.Message) { m.Tag++ }),
		"to another operation": encode(func(m *proto.Message) { m.Op, m.Length = proto.OpPut, 0 }),
		"of another slot":      encode(func(m *proto.Message) { m.Slot = 1 }),
		"a block too long":     encode(func(m *proto.Message) { m.Length = 4097 }),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			l := f.link()
			s, err := l.Slot(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Get(s, good.ID, Ref{}))
			f.send(answer)
			err = l.Drain(t.Context())
			require.ErrorIs(t, err, ErrLost)
			require.ErrorIs(t, err, proto.ErrMalformed)
			_, err = l.Slot(t.Context())
			require.ErrorIs(t, err, ErrLost, "it stays lost")
			require.ErrorIs(t, l.Get(s, good.ID, Ref{}), ErrLost)
		})
	}
}

func TestABlockThatIsNotWhatTheServerSentIsDamaged(t *testing.T) {
	f := newFake(t)
	l := f.link()
	var got error
	l.OnDone = func(s *Slot) error { got = s.Err; return nil }
	s, err := l.Slot(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Get(s, block.ID{}, Ref{}))
	b := make([]byte, proto.MessageLen)
	(&proto.Message{Op: proto.OpGet, Reply: true, Length: 100, CRC: 12345}).Put(b)
	f.send(b)
	require.NoError(t, l.Drain(t.Context()))
	assert.Equal(t, proto.Damaged.Err(), got)
	assert.Zero(t, l.Latency.Count(), "it counts for nothing")
}

func TestALinkEndsWhenTheServerDoesNotAnswer(t *testing.T) {
	f := newFake(t)
	l := f.link()
	l.stall = 20 * time.Millisecond
	s, err := l.Slot(t.Context())
	require.NoError(t, err)
	_, err = l.Put(s, 1, Ref{})
	require.NoError(t, err)
	err = l.Drain(t.Context())
	require.ErrorIs(t, err, ErrStalled)
	require.ErrorIs(t, err, ErrLost)
}

func TestAServerThatGoesAwayEndsTheLink(t *testing.T) {
	f := newFake(t)
	l := f.link()
	s, err := l.Slot(t.Context())
	require.NoError(t, err)
	_, err = l.Put(s, 1, Ref{})
	require.NoError(t, err)
	require.NoError(t, f.ep.Disconnect(dat.Abrupt))
	require.ErrorIs(t, l.Drain(t.Context()), ErrLost)
}
