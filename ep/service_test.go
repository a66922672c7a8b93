package ep

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// reserve makes a reserved service point for e.
func (r *rig) reserve(e *Endpoint) *RSP {
	rsp, err := r.adapter.NewRSP(RSPConfig{Endpoint: e, Dispatcher: r.cr})
	require.NoError(r.t, err)
	return rsp
}

// asked makes a reserved service point for e, and a new endpoint that sends it a
// request.
func (r *rig) asked(e *Endpoint) (rsp *RSP, cr *CR, active *Endpoint) {
	rsp, active = r.reserve(e), r.endpoint(nil)
	require.NoError(r.t, active.Connect(ConnectConfig{Qual: rsp.Qual(), Private: []byte("me")}))
	ev := r.next(r.cr)
	require.Same(r.t, rsp, ev.Source)
	return rsp, RequestOf(ev), active
}

func invalidState(sub hw.Subtype) error { return &hw.Error{Type: hw.InvalidState, Sub: sub} }

func TestAReservedEndpointTakesOneRequest(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	rsp, cr, active := r.asked(e)
	assert.Equal(t, PassiveConnectionPending, e.State())
	p, err := cr.Query()
	require.NoError(t, err)
	assert.Same(t, e, p.Endpoint)
	assert.Equal(t, rsp.Qual(), p.Qual)
	assert.Equal(t, "me", string(p.Private))
	ep, err := e.Query()
	require.NoError(t, err)
	assert.Equal(t, p.Remote, ep.RemoteAddr, "who asks is known before it is accepted")
	assert.Equal(t, p.RemoteQual, ep.RemoteQual)

	late := r.endpoint(nil)
	require.NoError(t, late.Connect(ConnectConfig{Qual: rsp.Qual()}))
	assert.Equal(t, event.NonPeerRejected, r.next(r.conn).Number, "a second request")
	r.none(r.cr)

	require.ErrorIs(t, cr.Accept(r.endpoint(nil), nil), hw.ErrInvalidParameter, "another endpoint than its own")
	require.NoError(t, cr.Accept(nil, []byte("you")))
	for range 2 {
		assert.Equal(t, event.Established, r.next(r.conn).Number)
	}
	requireWorks(t, r, active, e)
	require.NoError(t, rsp.Close())
	assert.Equal(t, Connected, e.State(), "the service point has done its work")
	require.NoError(t, rsp.Close())
	_, err = rsp.Query()
	require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleRSP})
}

// DAT has the program name no endpoint where one came with the request; naming the
// one that came is no mistake.
func TestAcceptMayNameTheEndpointThatCameWithTheRequest(t *testing.T) {
	for name, come := range map[string]func(r *rig) (*Endpoint, *CR, *Endpoint){
		"reserved": func(r *rig) (*Endpoint, *CR, *Endpoint) {
			e := r.endpoint(nil)
			_, cr, active := r.asked(e)
			return e, cr, active
		},
		"made for the request": func(r *rig) (*Endpoint, *CR, *Endpoint) {
			e, cr, active := r.tentative()
			p := Param{PZ: r.pz, Recv: r.dto, Request: r.dto, Conn: r.conn}
			require.NoError(t, e.Modify(p, "PZ", "Recv", "Request", "Conn"))
			return e, cr, active
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			e, cr, active := come(r)
			require.ErrorIs(t, cr.Accept(active, nil), hw.ErrInvalidState, "an endpoint that is in use")
			require.NoError(t, cr.Accept(e, nil))
			for range 2 {
				assert.Equal(t, event.Established, r.next(r.conn).Number)
			}
			requireWorks(t, r, active, e)
			require.ErrorIs(t, cr.Accept(e, nil), hw.ErrInvalidHandle)
		})
	}
}

func TestARejectedRequestLeavesTheReservedEndpointUnconnected(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	require.NoError(t, e.PostRecv(7, 0, r.lmr.Segment(0, 8)))
	rsp, cr, _ := r.asked(e)
	require.NoError(t, cr.Reject([]byte("no")))
	assert.Equal(t, Unconnected, e.State())
	assert.Equal(t, event.PeerRejected, r.next(r.conn).Number)
	require.NoError(t, rsp.Close())
	assert.Equal(t, Unconnected, e.State())
	r.none(r.dto)
	rsp2, cr, active := r.asked(e)
	require.NoError(t, cr.Accept(nil, nil))
	for range 2 {
		assert.Equal(t, event.Established, r.next(r.conn).Number)
	}
	require.NoError(t, active.PostSend(8, 0, r.lmr.Segment(0, 8)))
	got := map[uint64]hw.Status{}
	for range 2 {
		ev := r.next(r.dto)
		got[ev.Cookie] = ev.Status
	}
	assert.Equal(t, map[uint64]hw.Status{7: 0, 8: 0}, got, "the receive was kept")
	require.NoError(t, rsp2.Close())
}

func TestAReservedServicePointIsFreed(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	rsp := r.reserve(e)
	assert.Equal(t, Reserved, e.State())
	q, err := rsp.Query()
	require.NoError(t, err)
	assert.Equal(t, RSPConfig{Qual: rsp.Qual(), Dispatcher: r.cr, Endpoint: e}, q)
	require.NoError(t, rsp.Close())
	assert.Equal(t, Unconnected, e.State())
	require.NoError(t, r.endpoint(nil).Connect(ConnectConfig{Qual: rsp.Qual()}))
	assert.Equal(t, event.NonPeerRejected, r.next(r.conn).Number)
	require.NoError(t, e.Close())
}

func TestAReservationThatFailsHasNoEffect(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	for name, c := range map[string]struct {
		cfg  RSPConfig
		want error
	}{
		"no dispatcher":       {RSPConfig{Endpoint: e}, hw.ErrInvalidHandle},
		"no endpoint":         {RSPConfig{Dispatcher: r.cr}, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleEP}},
		"a qualifier in use":  {RSPConfig{Endpoint: e, Dispatcher: r.cr, Qual: r.psp.Qual()}, hw.ErrConnQualInUse},
		"another's endpoint":  {RSPConfig{Endpoint: newRig(t).endpoint(nil), Dispatcher: r.cr}, hw.ErrInvalidHandle},
		"an unwilling target": {RSPConfig{Endpoint: e, Dispatcher: r.unwilling()}, hw.ErrInvalidParameter},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.adapter.NewRSP(c.cfg)
			require.ErrorIs(t, err, c.want)
			assert.Equal(t, Unconnected, e.State())
		})
	}
}

// unwilling makes a dispatcher that takes no connection requests.
func (r *rig) unwilling() *evd.Dispatcher {
	d, err := evd.New(evd.Config{QLen: 1, Streams: event.StreamDTO})
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, d.Close()) })
	return d
}

func TestARequestIsHandedOff(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	rsp, first, active := r.asked(e)
	require.ErrorIs(t, first.Handoff(1), hw.ErrInvalidParameter, "nobody listens there")
	require.ErrorIs(t, first.Handoff(rsp.Qual()), hw.ErrConnQualUnavailable, "it has had its request")
	full, err := r.adapter.NewPSP(PSPConfig{Dispatcher: r.cr, Backlog: 1})
	require.NoError(t, err)
	require.NoError(t, r.endpoint(nil).Connect(ConnectConfig{Qual: full.Qual()}))
	other := RequestOf(r.next(r.cr))
	require.ErrorIs(t, first.Handoff(full.Qual()), hw.ErrInsufficientResources)
	assert.Equal(t, PassiveConnectionPending, e.State(), "the request is still there")

	require.NoError(t, first.Handoff(r.psp.Qual()))
	assert.Equal(t, Unconnected, e.State())
	_, err = first.Query()
	require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleCR})
	ev := r.next(r.cr)
	assert.Same(t, r.psp, ev.Source)
	cr := RequestOf(ev)
	p, err := cr.Query()
	require.NoError(t, err)
	assert.Equal(t, r.psp.Qual(), p.Qual)
	assert.Equal(t, "me", string(p.Private))
	assert.Nil(t, p.Endpoint)
	b := r.endpoint(nil)
	require.NoError(t, cr.Accept(b, nil))
	for range 2 {
		assert.Equal(t, event.Established, r.next(r.conn).Number)
	}
	requireWorks(t, r, active, b)
	// The request of a reserved service point may also come from another service
	// point.
	require.NoError(t, rsp.Close())
	rsp = r.reserve(e)
	require.NoError(t, other.Handoff(rsp.Qual()))
	assert.Same(t, rsp, r.next(r.cr).Source)
	assert.Equal(t, PassiveConnectionPending, e.State())
}

// A peer that gets ESTABLISHED before Accept has returned may send another request
// at once: the backlog must no longer count its first one.
func TestTheBacklogDoesNotCountARequestThatIsBeingAccepted(t *testing.T) {
	r := newRig(t)
	psp, err := r.adapter.NewPSP(PSPConfig{Dispatcher: r.cr, Backlog: 1})
	require.NoError(t, err)
	a, b, again := r.endpoint(nil), r.endpoint(nil), r.endpoint(nil)
	require.NoError(t, a.Connect(ConnectConfig{Qual: psp.Qual()}))
	cr := RequestOf(r.next(r.cr))
	cr.request = &accepting{Request: cr.request, then: func() {
		assert.Equal(t, Connected, a.State())
		require.NoError(t, again.Connect(ConnectConfig{Qual: psp.Qual()}))
	}}
	require.NoError(t, cr.Accept(b, nil))
	assert.NotNil(t, RequestOf(r.next(r.cr)))
	assert.Equal(t, ActiveConnectionPending, again.State())
}

// accepting is a request that calls the test when it is accepted, before Accept
// returns.
type accepting struct {
	hw.Request
	then func()
}

func (a *accepting) Accept(qp hw.QP, private []byte) error {
	err := a.Request.Accept(qp, private)
	a.then()
	return err
}

func TestDupConnectGoesWhereTheOtherIs(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	e := r.endpoint(nil)
	require.NoError(t, e.DupConnect(a, ConnectConfig{Addr: "ignored", Qual: 1, Private: []byte("again")}))
	ev := r.next(r.cr)
	assert.Same(t, r.psp, ev.Source)
	p, err := RequestOf(ev).Query()
	require.NoError(t, err)
	assert.Equal(t, "again", string(p.Private))
	peer := r.endpoint(nil)
	require.NoError(t, RequestOf(ev).Accept(peer, nil))
	for range 2 {
		assert.Equal(t, event.Established, r.next(r.conn).Number)
	}
	requireWorks(t, r, e, peer)
	// The endpoint that accepted knows the address and port that its peer came
	// from, and nobody listens there.
	f := r.endpoint(nil)
	require.NoError(t, f.DupConnect(b, ConnectConfig{}))
	assert.Equal(t, event.NonPeerRejected, r.next(r.conn).Number)

	g := r.endpoint(nil)
	require.ErrorIs(t, g.DupConnect(nil, ConnectConfig{}), &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleEP})
	require.ErrorIs(t, g.DupConnect(g, ConnectConfig{}), invalidState(hw.StateEPUnconnected))
	stranger, _ := newRig(t).pair(nil)
	require.ErrorIs(t, g.DupConnect(stranger, ConnectConfig{}), hw.ErrInvalidParameter)
	assert.Equal(t, Unconnected, g.State())
}

func TestAResetEndpointForgetsWhereItWasConnectedTo(t *testing.T) {
	r := newRig(t)
	e, _ := r.pair(nil)
	require.NoError(t, e.Disconnect(Abrupt))
	for range 2 {
		r.next(r.conn)
	}
	require.NoError(t, e.Reset())
	// e accepts this time. DupConnect then goes to the address and port that e's
	// peer came from, and nobody listens there.
	requireWorks(t, r, r.accept(e), e)
	require.NoError(t, r.endpoint(nil).DupConnect(e, ConnectConfig{}))
	assert.Equal(t, event.NonPeerRejected, r.next(r.conn).Number)
}

// stuckQP is a queue pair that can't begin to connect.
type stuckQP struct{ hw.QP }

func (stuckQP) Connect(hw.ConnectConfig) error {
	return &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceDevice}
}

func TestAConnectThatCantStartTakesNoEventRoom(t *testing.T) {
	r := newRig(t)
	conn := r.dispatcher(evd.ModeQueue, 2)
	e := r.endpointOf(Config{PZ: r.pz, Conn: conn})
	device := e.box.QP()
	e.box.SetQP(stuckQP{device})
	for range 100 {
		require.ErrorIs(t, e.Connect(ConnectConfig{Qual: r.psp.Qual()}), &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceDevice})
	}
	e.box.SetQP(device)
	require.NoError(t, e.Connect(ConnectConfig{Qual: r.psp.Qual()}))
	require.NoError(t, RequestOf(r.next(r.cr)).Accept(r.endpoint(nil), nil))
	assert.Equal(t, event.Established, r.next(conn).Number)
	require.NoError(t, r.adapter.Close())
	require.NoError(t, conn.Close())
}

func TestAReservedServicePointClosesBehindTheEventOfItsRequest(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r, peer := newRig(t), newRig(t)
	require.NoError(t, r.psp.Close())
	e, active := r.endpoint(nil), peer.endpoint(nil)
	rsp := r.reserve(e)
	held := newStop()
	stepped := goResult(func() error {
		assert.True(t, e.box.Token.TakeOrKick())
		held.here()
		e.box.Inside().Run()
		return nil
	})
	<-held.reached
	assert.NoError(t, active.Connect(ConnectConfig{Qual: rsp.Qual()}))
	closed := goResult(rsp.Close)
	takeTurns()
	assert.Empty(t, closed, "the endpoint's step is still to announce the request")
	close(held.on)
	require.NoError(t, <-stepped)
	require.NoError(t, <-closed)
	require.NoError(t, r.cr.Close(), "the dispatcher rejects the request, which nobody has taken")
	assert.Equal(t, event.PeerRejected, peer.next(peer.conn).Number)
	require.NoError(t, e.Close())
}
