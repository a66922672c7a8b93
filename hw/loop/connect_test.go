package loop

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// listen collects requests.
func listen(t testing.TB, dev hw.Device, qual uint64) (hw.Listener, *[]hw.Request) {
	var got []hw.Request
	ln, err := dev.Listen(hw.ListenConfig{Qual: qual, OnRequest: func(r hw.Request) bool {
		got = append(got, r)
		return true
	}})
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() }) //nolint:errcheck // a test may have done it
	return ln, &got
}

func ask(t testing.TB, s *side, ln hw.Listener, private []byte) {
	t.Helper()
	addr := ln.Addr().(address)
	require.NoError(t, s.qp.Connect(hw.ConnectConfig{Addr: addr.Device, Qual: addr.Qual, Private: private}))
}

func TestQueuePairsOfTwoDevicesConnect(t *testing.T) {
	one, two := open(t, uniqueName()), open(t, uniqueName())
	reads := func(in, out int) func(*hw.QPConfig) {
		return func(cfg *hw.QPConfig) { cfg.ReadsIn, cfg.ReadsOut = in, out }
	}
	a, b := newSide(t, one, reads(1, 7)), newSide(t, two, reads(5, 3))
	ln, got := listen(t, two, 9)
	private := []byte("ask")
	ask(t, a, ln, private)
	private[0] = 'X'
	require.Len(t, *got, 1)
	r := (*got)[0]
	data, truncated := r.Private()
	assert.Equal(t, "ask", string(data), "the private data was copied")
	assert.False(t, truncated)
	assert.EqualValues(t, 9, r.Qual())
	assert.Nil(t, a.facts.established())

	answer := []byte("answer")
	require.NoError(t, r.Accept(b.qp, answer))
	answer[0] = 'X'
	x, y := a.facts.established(), b.facts.established()
	require.NotNil(t, x)
	require.NotNil(t, y)
	assert.Equal(t, "answer", string(x.Private))
	assert.Nil(t, y.Private)
	assert.Equal(t, [2]int{1, 5}, [2]int{x.ReadsIn, x.ReadsOut})
	assert.Equal(t, [2]int{5, 1}, [2]int{y.ReadsIn, y.ReadsOut})
	assert.Equal(t, address{Device: two.Attr().Address, Qual: 9}, x.Remote)
	assert.Equal(t, x.Remote, y.Local)
	assert.Equal(t, x.Local, y.Remote)
	assert.Equal(t, r.Remote(), y.Remote)
	assert.Equal(t, r.Local(), y.Local)

	copy(a.mem, "over")
	b.recv(1, b.sge(0, 4))
	a.post(send(1, a.sge(0, 4)), wr(hw.OpWrite, a, 0, 4, b.mr.RKey(), b.addr(4)))
	assert.Equal(t, "overover", string(b.mem[:8]))
}

func TestAnAddressIsPrintedWithItsQualifier(t *testing.T) {
	var addr net.Addr = address{Device: "loop", Qual: 5}
	assert.Equal(t, "loop", addr.Network())
	assert.Equal(t, "loop:5", addr.String())
}

func TestAnAttemptWithoutAnAcceptorIsRefused(t *testing.T) {
	dev := open(t, uniqueName())
	ln, _ := listen(t, dev, 1)
	require.NoError(t, ln.Close())
	shy, err := dev.Listen(hw.ListenConfig{Qual: 2, OnRequest: func(hw.Request) bool { return false }})
	require.NoError(t, err)
	defer shy.Close()
	for name, c := range map[string]struct {
		addr string
		qual uint64
		why  hw.Reason
		by   hw.Side
	}{
		"no such device":              {uniqueName(), 1, hw.ReasonUnreachable, hw.SideLocal},
		"nobody listens":              {dev.Attr().Address, 77, hw.ReasonRejected, hw.SideLocal},
		"nobody listens on 0":         {dev.Attr().Address, 0, hw.ReasonRejected, hw.SideLocal},
		"the listener has closed":     {dev.Attr().Address, 1, hw.ReasonRejected, hw.SideLocal},
		"the listener has no room":    {dev.Attr().Address, 2, hw.ReasonRejected, hw.SidePeer},
		"the default device is other": {"", 2, hw.ReasonUnreachable, hw.SideLocal},
	} {
		t.Run(name, func(t *testing.T) {
			a := newSide(t, dev, nil)
			a.recv(1)
			require.NoError(t, a.qp.Connect(hw.ConnectConfig{Addr: c.addr, Qual: c.qual}))
			assert.Equal(t, c.why, a.facts.isRefused())
			assert.Equal(t, c.by, a.facts.cause.Found)
			assert.Empty(t, a.recvs.all(), "Break flushes, not the refusal")
			require.ErrorIs(t, a.qp.Connect(hw.ConnectConfig{}), hw.ErrInvalidState, "one attempt in a life")
			require.ErrorIs(t, a.qp.Close(), hw.ErrInvalidState)
			require.ErrorIs(t, a.qp.Reset(), hw.ErrInvalidState)
			a.qp.Break(true)
			assert.Equal(t, append(flushed(hw.OpRecv, 1), endOf(recvEnd)), a.recvs.all())
			assert.Equal(t, []hw.WC{endOf(sendEnd)}, a.sends.all())
			a.reset()
		})
	}
}

func TestTheDefaultDeviceIsLoop(t *testing.T) {
	dev := open(t, "")
	assert.Equal(t, Name, dev.Attr().Device)
	a, b := newSide(t, dev, nil), newSide(t, dev, nil)
	ln, got := listen(t, dev, 3)
	_ = ln
	require.NoError(t, a.qp.Connect(hw.ConnectConfig{Qual: 3}))
	require.NoError(t, (*got)[0].Accept(b.qp, nil))
	assert.NotNil(t, a.facts.established())
}

func TestARejectReachesTheInitiator(t *testing.T) {
	dev := open(t, uniqueName())
	a := newSide(t, dev, nil)
	ln, got := listen(t, dev, 0)
	ask(t, a, ln, nil)
	r := (*got)[0]
	why := []byte("why")
	require.NoError(t, r.Reject(why))
	why[0] = 'X'
	assert.Equal(t, hw.ReasonPeerRejected, a.facts.isRefused())
	assert.Equal(t, "why", string(a.facts.private))
	require.ErrorIs(t, r.Reject(nil), hw.ErrInvalidHandle, "a request is answered once")
	require.ErrorIs(t, r.Accept(a.qp, nil), hw.ErrInvalidHandle)
}

func TestPrivateDataHasALimit(t *testing.T) {
	dev := open(t, uniqueName())
	limit := dev.Attr().MaxPrivate
	most, more := bytes.Repeat([]byte{1}, limit), make([]byte, limit+1)
	ln, got := listen(t, dev, 0)

	a, b := newSide(t, dev, nil), newSide(t, dev, nil)
	require.ErrorIs(t, a.qp.Connect(hw.ConnectConfig{Addr: dev.Attr().Address, Qual: ln.Qual(), Private: more}), hw.ErrInvalidParameter)
	assert.Empty(t, *got, "it did not start")
	ask(t, a, ln, most)
	require.NoError(t, (*got)[0].Accept(b.qp, most))
	assert.Equal(t, most, a.facts.established().Private)

	c, d := newSide(t, dev, nil), newSide(t, dev, nil)
	ask(t, c, ln, nil)
	require.ErrorIs(t, (*got)[1].Accept(d.qp, more), hw.ErrInvalidParameter)
	assert.Equal(t, hw.ReasonRejected, c.facts.isRefused())
	require.NoError(t, d.qp.Connect(hw.ConnectConfig{Addr: "nowhere"}), "the queue pair is still new")

	e := newSide(t, dev, nil)
	ask(t, e, ln, nil)
	require.ErrorIs(t, (*got)[2].Reject(more), hw.ErrInvalidParameter)
	assert.Equal(t, hw.ReasonPeerRejected, e.facts.isRefused())
	assert.Empty(t, e.facts.private)
}

func TestAcceptOnAQueuePairThatCantConnectRejectsTheRequest(t *testing.T) {
	dev, other := open(t, uniqueName()), open(t, uniqueName())
	x, y := newSide(t, dev, nil), newSide(t, dev, nil)
	connect(t, x, y)
	closed := newSide(t, dev, nil)
	qp := closed.qp
	require.NoError(t, qp.Close())
	broken := newSide(t, dev, nil)
	broken.qp.Break(false)
	ln, got := listen(t, dev, 0)
	for name, c := range map[string]struct {
		qp   func(a *side) hw.QP
		want error
	}{
		"nil":               {func(*side) hw.QP { return nil }, hw.ErrInvalidHandle},
		"nil inside":        {func(*side) hw.QP { return (*queuePair)(nil) }, hw.ErrInvalidHandle},
		"closed":            {func(*side) hw.QP { return qp }, hw.ErrInvalidHandle},
		"another device's":  {func(*side) hw.QP { return newSide(t, other, nil).qp }, hw.ErrInvalidHandle},
		"connected":         {func(*side) hw.QP { return x.qp }, hw.ErrInvalidState},
		"broken":            {func(*side) hw.QP { return broken.qp }, hw.ErrInvalidState},
		"the one that asks": {func(a *side) hw.QP { return a.qp }, hw.ErrInvalidState},
	} {
		t.Run(name, func(t *testing.T) {
			a := newSide(t, dev, nil)
			ask(t, a, ln, nil)
			r := (*got)[len(*got)-1]
			require.ErrorIs(t, r.Accept(c.qp(a), nil), c.want)
			assert.Equal(t, hw.ReasonRejected, a.facts.isRefused())
			require.ErrorIs(t, r.Reject(nil), hw.ErrInvalidHandle)
		})
	}
}

func TestALateAnswerToABrokenAttemptIsRefused(t *testing.T) {
	dev := open(t, uniqueName())
	a, b := newSide(t, dev, nil), newSide(t, dev, nil)
	ln, got := listen(t, dev, 0)
	ask(t, a, ln, nil)
	a.qp.Break(false)
	assert.True(t, a.sends.ended() && a.recvs.ended())
	a.reset()
	ask(t, a, ln, nil) // another life, another request

	require.NoError(t, (*got)[0].Accept(b.qp, nil))
	assert.Equal(t, hw.ReasonUnreachable, b.facts.isRefused())
	b.qp.Break(false)
	b.reset()
	require.NoError(t, (*got)[1].Accept(b.qp, nil))
	assert.NotNil(t, a.facts.established())
	assert.NotNil(t, b.facts.established())
}

func TestARequestOutlivesItsListener(t *testing.T) {
	dev := open(t, uniqueName())
	a, b := newSide(t, dev, nil), newSide(t, dev, nil)
	ln, got := listen(t, dev, 0)
	ask(t, a, ln, nil)
	require.NoError(t, ln.Close())
	require.ErrorIs(t, ln.Close(), hw.ErrInvalidHandle)
	require.NoError(t, (*got)[0].Accept(b.qp, nil))
	assert.NotNil(t, a.facts.established())
}

func TestADeviceThatClosesRefusesItsUnansweredRequests(t *testing.T) {
	dev := open(t, uniqueName())
	a := newSide(t, dev, nil)
	server, err := New().Open(hw.OpenConfig{Device: uniqueName()})
	require.NoError(t, err)
	ln, got := listen(t, server, 0)
	ask(t, a, ln, nil)
	require.NoError(t, ln.Close())
	require.NoError(t, server.Close())
	assert.Equal(t, hw.ReasonRejected, a.facts.isRefused())
	require.ErrorIs(t, (*got)[0].Accept(nil, nil), hw.ErrInvalidHandle)
}

func TestAQualifierHasOneListener(t *testing.T) {
	name := uniqueName()
	dev, same, other := open(t, name), open(t, name), open(t, uniqueName())
	_, _ = listen(t, dev, 5)
	on := func(hw.Request) bool { return true }
	_, err := same.Listen(hw.ListenConfig{Qual: 5, OnRequest: on})
	require.ErrorIs(t, err, hw.ErrConnQualInUse, "devices of one name share the qualifiers")
	_, _ = listen(t, other, 5)
	one, _ := listen(t, dev, 0)
	two, _ := listen(t, same, 0)
	assert.NotEqual(t, one.Qual(), two.Qual())
	assert.NotZero(t, one.Qual())
	_, _ = listen(t, dev, two.Qual()+1)
	three, _ := listen(t, dev, 0)
	assert.Equal(t, two.Qual()+2, three.Qual(), "a choice steps over what is taken")
}

func TestListenRefusesBadArguments(t *testing.T) {
	dev := open(t, uniqueName())
	on := func(hw.Request) bool { return true }
	for want, cfg := range map[error]hw.ListenConfig{
		hw.ErrInvalidParameter: {},
		hw.ErrInvalidAddress:   {Addr: "elsewhere", OnRequest: on},
	} {
		_, err := dev.Listen(cfg)
		require.ErrorIs(t, err, want)
	}
	ln, err := dev.Listen(hw.ListenConfig{Addr: dev.Attr().Address, OnRequest: on})
	require.NoError(t, err)
	require.NoError(t, ln.Close())
}

// The owner may call Break from inside a method of Facts. The rest of the attempt must
// not depend on when that method returns.
func TestBreakMayBeCalledFromAFact(t *testing.T) {
	dev := open(t, uniqueName())
	t.Run("Refused", func(t *testing.T) {
		a := newSide(t, dev, nil)
		a.facts.onOff = func() {
			a.qp.Break(false)
			assert.False(t, a.sends.ended(), "the end comes after the fact")
		}
		require.NoError(t, a.qp.Connect(hw.ConnectConfig{Addr: "nowhere"}))
		assert.True(t, a.sends.ended() && a.recvs.ended())
	})
	t.Run("Established", func(t *testing.T) {
		a, b := newSide(t, dev, nil), newSide(t, dev, nil)
		a.facts.onEst = func() { a.qp.Break(true) }
		ln, got := listen(t, dev, 0)
		ask(t, a, ln, nil)
		require.NoError(t, (*got)[0].Accept(b.qp, nil))
		assert.True(t, a.sends.ended() && a.recvs.ended())
		assert.NotNil(t, b.facts.established())
		assert.Equal(t, hw.ReasonPeer, b.facts.isDown())
	})
	t.Run("Down", func(t *testing.T) {
		a, b := newSide(t, dev, nil), newSide(t, dev, nil)
		connect(t, a, b)
		a.recv(1)
		a.facts.onOff = func() { a.qp.Break(true) }
		b.qp.Break(true)
		assert.True(t, a.sends.ended() && a.recvs.ended())
		assert.True(t, b.sends.ended() && b.recvs.ended())
	})
}

func TestAPostFromInsideEstablishedIsExecuted(t *testing.T) {
	dev := open(t, uniqueName())
	a, b := newSide(t, dev, nil), newSide(t, dev, nil)
	b.recv(1, b.sge(0, 8))
	a.facts.onEst = func() { a.post(send(1, a.sge(0, 8))) }
	b.facts.onEst = func() { assert.Empty(t, b.recvs.all()) }
	connect(t, a, b)
	assert.Len(t, a.sends.all(), 1)
	assert.Len(t, b.recvs.all(), 1)
}

// A pipe still flushes its other end when the queue pair at this end has a new life.
func TestANewConnectionIsNotFlushedByTheOldOnesPipe(t *testing.T) {
	x, y := pair(t, nil)
	x.qp.Break(false)
	x.reset()
	x.recv(1)
	y.recv(2)
	y.qp.Break(false)
	for _, end := range []struct {
		s    *recorder
		want []hw.WC
	}{
		{&y.sends, []hw.WC{endOf(sendEnd)}},
		{&y.recvs, append(flushed(hw.OpRecv, 2), endOf(recvEnd))},
	} {
		assert.Equal(t, end.want, end.s.all(), "each queue ends once")
	}
	assert.Empty(t, x.sends.all())
	assert.Empty(t, x.recvs.all())
	y.reset()
	connect(t, x, y)
	y.post(send(3))
	assert.Equal(t, []hw.WC{{ID: 1, Op: hw.OpRecv}}, x.recvs.all())
}

func TestAQueuePairThatNeverConnectedEndsItsQueues(t *testing.T) {
	a := newSide(t, open(t, uniqueName()), func(cfg *hw.QPConfig) { cfg.RecvDepth = 200 })
	var ids []uint64
	for id := range uint64(200) {
		a.recv(id)
		ids = append(ids, id)
	}
	a.qp.Drain() // of no effect
	a.qp.Break(true)
	assert.Equal(t, append(flushed(hw.OpRecv, ids...), endOf(recvEnd)), a.recvs.all())
	assert.Equal(t, []hw.WC{endOf(sendEnd)}, a.sends.all())
	a.qp.Break(true) // of no effect
	assert.Len(t, a.sends.all(), 1)
	_, err := a.qp.PostSend([]hw.SendWR{{}})
	require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidState, Sub: hw.StateEPDisconnected})
}

func TestAClosedQueuePairRefusesEverything(t *testing.T) {
	a := newSide(t, open(t, uniqueName()), nil)
	qp := a.qp
	require.NoError(t, qp.Close())
	_, err := qp.PostSend(nil)
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = qp.PostRecv(nil)
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	require.ErrorIs(t, qp.Connect(hw.ConnectConfig{}), hw.ErrInvalidHandle)
	require.ErrorIs(t, qp.Reset(), hw.ErrInvalidHandle)
	require.ErrorIs(t, qp.Close(), hw.ErrInvalidHandle)
	qp.Drain()
	qp.Break(false)
}
