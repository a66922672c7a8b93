package ep

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/token"
)

// The page of dat_ep_query lists the states in which the addresses of the connection are valid.
// The page of dat_ep_get_status leaves COMPLETION_PENDING out; both calls tell it.
func TestAQueryHasTheAddressesOfTheConnectionInTheStatesOfThePage(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(nil)
	known, err := a.Query()
	require.NoError(t, err)
	require.NotZero(t, known.RemoteQual)
	a.profile.local.qual = 7 // loop has no ports of its own
	for state, valid := range map[State]struct{ local, remote bool }{
		Unconnected:                {false, false},
		Reserved:                   {false, false},
		PassiveConnectionPending:   {true, true},
		ActiveConnectionPending:    {true, true},
		TentativeConnectionPending: {false, true},
		CompletionPending:          {true, true},
		Connected:                  {true, true},
		DisconnectPending:          {true, true},
		Disconnected:               {false, false},
	} {
		t.Run(fmt.Sprint(state), func(t *testing.T) {
			defer a.box.SetState(Connected.inBox())
			a.box.SetState(state.inBox())
			p, err := a.Query()
			require.NoError(t, err)
			st, err := a.Status()
			require.NoError(t, err)
			assert.Equal(t, state, p.State)
			assert.Equal(t, Status{State: state, RecvIdle: true, RequestIdle: true}, st)
			assert.NotNil(t, p.LocalAddr, "the adapter's in every state")
			assert.Equal(t, valid.local, p.LocalQual == 7)
			assert.Equal(t, valid.local, p.LocalQual != 0)
			assert.Equal(t, valid.remote, p.RemoteAddr != nil)
			assert.Equal(t, valid.remote, p.RemoteQual == known.RemoteQual)
		})
	}
}

// A cookie means nothing to the endpoint.
func TestTheSameCookieMayBeOutstandingTwiceInEachDirection(t *testing.T) {
	r := newRig(t)
	a, b := r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: r.dto, Conn: r.conn}), r.endpoint(nil)
	r.connect(a, b)
	seg := r.lmr.Segment(0, 8)
	cookies := []uint64{0, 0, 5, 5, math.MaxUint64, math.MaxUint64}
	for _, c := range cookies {
		require.NoError(t, a.PostSend(c, 0, seg)) // it waits for a receive
	}
	for _, c := range cookies {
		require.NoError(t, b.PostRecv(c, 0, seg))
	}
	seen := map[any][]uint64{}
	for range 2 * len(cookies) {
		ev := r.next(r.dto)
		require.NoError(t, ev.Err())
		seen[ev.Op] = append(seen[ev.Op], ev.Cookie)
	}
	assert.Equal(t, map[any][]uint64{hw.OpSend: cookies, hw.OpRecv: cookies}, seen)
}

// A dispatcher calls back for events that notify; silent ones come along.
func TestAFailureNotifiesAlthoughItsRequestIsUnsignalled(t *testing.T) {
	r := newRig(t)
	upcalls := make(chan []event.Event, 8)
	d, err := evd.New(evd.Config{QLen: 64, Mode: evd.ModeCallback, Callback: func(evs []event.Event) {
		upcalls <- append([]event.Event(nil), evs...)
	}})
	require.NoError(t, err)
	a := r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: d, Conn: r.conn, Attr: &Attr{RequestFlags: hw.Unsignalled}})
	b := r.endpoint(nil)
	r.connect(a, b)
	seg := r.lmr.Segment(0, 8)
	for i, flags := range []hw.Flags{hw.Unsignalled, hw.Suppress | hw.Unsignalled} {
		require.NoError(t, b.PostRecv(uint64(i), 0, seg))
		require.NoError(t, a.PostSend(uint64(i), flags, seg))
		require.Equal(t, uint64(i), r.next(r.dto).Cookie)
	}
	require.NoError(t, a.Disconnect(Abrupt))
	require.Empty(t, upcalls, "a success is silent")
	require.NoError(t, a.PostSend(2, hw.Suppress|hw.Unsignalled, seg))
	var got []event.Event
	for len(got) < 2 {
		select {
		case evs := <-upcalls:
			got = append(got, evs...)
		case <-time.After(time.Minute):
			require.Fail(t, "the failure did not notify")
		}
	}
	require.Len(t, got, 2, "a suppressed success has no event")
	assert.Equal(t, uint64(0), got[0].Cookie)
	assert.Equal(t, uint64(2), got[1].Cookie)
	assert.Equal(t, hw.StatusFlushed, got[1].Status)
	require.NoError(t, a.Close())
	require.NoError(t, d.Close())
}

// A callback may post receives where a post waits for the holder of the endpoint's token: it
// waits there as anywhere else, and the holder does not wait for the callback.
func TestAReceivePostedInAnUpcallIsTheDevicesWhenItsPostReturns(t *testing.T) {
	r := newRig(t)
	r.adapter.attr.NotReadyWait = false
	var a *Endpoint
	var w *witness
	given := make(chan int32, 1)
	d, err := evd.New(evd.Config{QLen: 64, Mode: evd.ModeCallback, Callback: func(evs []event.Event) {
		if evs[0].Cookie == 1 {
			assert.NoError(t, a.PostRecv(2, 0, r.lmr.Segment(0, 8)))
			given <- w.received.Load()
		}
	}})
	require.NoError(t, err)
	a = r.endpointOf(Config{PZ: r.pz, Recv: d, Request: r.dto, Conn: r.conn})
	b := r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: r.dto, Conn: r.conn})
	r.connect(a, b)
	m := &meddler{QP: a.box.QP(), peer: b}
	w = &witness{meddler: m}
	a.box.SetQP(w)
	require.NoError(t, a.PostRecv(1, 0, r.lmr.Segment(0, 8)))
	m.meddle = func() { // the goroutine of this test holds the token
		assert.NoError(t, b.PostSend(3, hw.Suppress, r.lmr.Segment(8, 8)))
		r.await(func() bool { return a.box.Token.Load()&token.Kicked != 0 })
		for i := 0; i < 10_000 && len(given) == 0; i++ {
			runtime.Gosched() // without its wait the post would return here
		}
	}
	r.write(a, 4)
	assert.Equal(t, int32(2), <-given)
	assert.Equal(t, uint64(4), r.next(r.dto).Cookie)
	require.NoError(t, a.Close())
	require.NoError(t, d.Close())
}
