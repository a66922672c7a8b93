package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

func TestACommonServicePointListensAtAnAddress(t *testing.T) {
	r := newRig(t)
	cfg := CSPConfig{Address: "loop:4711", Dispatcher: r.cr, Comm: Comm{Domain: 2, Type: 1, Protocol: 6}}
	csp, err := r.adapter.NewCSP(cfg)
	require.NoError(t, err)
	q, err := csp.Query()
	require.NoError(t, err)
	assert.Equal(t, CSPConfig{Comm: cfg.Comm, Address: csp.Addr().String(), Dispatcher: r.cr, Backlog: 128}, q)
	a, b := r.endpoint(nil), r.endpoint(nil)
	require.NoError(t, a.CommonConnect("loop:4711", ConnectConfig{}))
	ev := r.next(r.cr)
	assert.Same(t, csp, ev.Source)
	require.NoError(t, RequestOf(ev).Accept(b, nil))
	for range 2 {
		assert.Equal(t, event.Established, r.next(r.conn).Number)
	}
	require.NoError(t, csp.Close())
	require.NoError(t, csp.Close())
	_, err = csp.Query()
	require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleCSP})

	e := r.endpoint(nil)
	for _, address := range []string{"", "loop", "loop:", "loop:x", "loop:-1"} {
		require.ErrorIs(t, e.CommonConnect(address, ConnectConfig{}), &hw.Error{Type: hw.InvalidAddress, Sub: hw.AddressMalformed})
		cfg.Address = address
		_, err = r.adapter.NewCSP(cfg)
		require.ErrorIs(t, err, hw.ErrInvalidAddress)
	}
	cfg.Address, cfg.Comm.Type = "loop:4711", 2
	_, err = r.adapter.NewCSP(cfg)
	require.ErrorIs(t, err, hw.ErrCommNotSupported)
	assert.Equal(t, Unconnected, e.State())
}

func TestAPublicServicePointTellsOfItself(t *testing.T) {
	r := newRig(t)
	q, err := r.psp.Query()
	require.NoError(t, err)
	assert.Equal(t, PSPConfig{Qual: r.psp.Qual(), Dispatcher: r.cr, Backlog: 128}, q)
	var none *PSP
	_, err = none.Query()
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
}

// tentative returns an endpoint that a service point has made, its request, and the
// endpoint that sent the request.
func (r *rig) tentative() (e *Endpoint, cr *CR, active *Endpoint) {
	psp, err := r.adapter.NewPSP(PSPConfig{Dispatcher: r.cr, Flags: PSPProvider})
	require.NoError(r.t, err)
	active = r.endpoint(nil)
	require.NoError(r.t, active.Connect(ConnectConfig{Qual: psp.Qual()}))
	cr = RequestOf(r.next(r.cr))
	p, err := cr.Query()
	require.NoError(r.t, err)
	require.NotNil(r.t, p.Endpoint)
	return p.Endpoint, cr, active
}

func TestAServicePointMakesEndpointsIfAsked(t *testing.T) {
	r := newRig(t)
	e, cr, active := r.tentative()
	assert.Equal(t, TentativeConnectionPending, e.State())
	p, err := e.Query()
	require.NoError(t, err)
	assert.Nil(t, p.PZ)
	assert.Nil(t, p.Recv)
	assert.Nil(t, p.Request)
	assert.Nil(t, p.Conn)
	assert.Equal(t, 16, p.Attr.MaxRecvDTOs)
	assert.NotNil(t, p.RemoteAddr)
	require.ErrorIs(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)), invalidState(hw.StateEPPZ))
	n, err := e.PostRecvBatch([]DTO{{}})
	assert.Zero(t, n)
	require.ErrorIs(t, err, invalidState(hw.StateEPPZ))
	require.ErrorIs(t, e.PostSend(1, 0), invalidState(hw.StateEPTentativeConnectionPending))
	require.ErrorIs(t, cr.Accept(nil, nil), invalidState(hw.StateEPPZ))
	require.ErrorIs(t, cr.Accept(r.endpoint(nil), nil), hw.ErrInvalidParameter)
	require.NoError(t, e.Modify(Param{PZ: r.pz}, "PZ"))
	require.ErrorIs(t, cr.Accept(nil, nil), invalidState(hw.StateEPEVDConnect))
	more := Param{Recv: r.dto, Request: r.dto, Conn: r.conn, Attr: Attr{MaxRecvDTOs: 40}}
	require.NoError(t, e.Modify(more, "Recv", "Request", "Conn", "MaxRecvDTOs"))
	require.NoError(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)), "before it is accepted")
	require.NoError(t, cr.Accept(nil, []byte("you")))
	for range 2 {
		assert.Equal(t, event.Established, r.next(r.conn).Number)
	}
	require.NoError(t, active.PostSend(2, 0, r.lmr.Segment(0, 8)))
	for range 2 {
		assert.Equal(t, hw.StatusSuccess, r.next(r.dto).Status)
	}
	requireWorks(t, r, active, e)
	require.NoError(t, e.Disconnect(Abrupt))
	require.NoError(t, e.Close(), "it is the program's")
}

func TestAnEndpointMadeForARequestGoesWithIt(t *testing.T) {
	r := newRig(t)
	gone := func(e *Endpoint) {
		_, err := e.Query()
		require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleEP})
		require.NoError(t, e.Close(), "closing it again does nothing")
	}
	before := r.adapter.Len()
	bare, cr, _ := r.tentative()
	require.NoError(t, cr.Reject(nil))
	gone(bare)
	assert.Equal(t, event.PeerRejected, r.next(r.conn).Number)
	half, cr, _ := r.tentative()
	require.NoError(t, half.Modify(Param{PZ: r.pz, Recv: r.dto}, "PZ", "Recv"))
	require.NoError(t, half.PostRecv(5, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, cr.Reject(nil))
	gone(half)
	assert.Equal(t, hw.StatusFlushed, r.next(r.dto).Status)
	handed, cr, _ := r.tentative()
	require.NoError(t, cr.Handoff(r.psp.Qual()))
	gone(handed)
	assert.Equal(t, before+3+3, r.adapter.Len(), "three service points and three that asked")
}
