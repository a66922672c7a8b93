package runtime

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
)

func TestRefusalsSayWhatToMend(t *testing.T) {
	r := newCauseRig(t, "loop")
	m, err := r.pz.Alloc(8192, hw.AllPrivileges)
	require.NoError(t, err)
	a, _ := r.pair()
	_, noLen := r.ia.NewDispatcher(evd.Config{Mode: evd.ModeChannel})
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"a segment out of bounds", "offset 8000, length 1000 is not within the region of 8192 bytes", a.PostSend(1, 0, m.Segment(8000, 1000))},
		{"a segment before its region", "offset -8, length 4 is not within", a.PostSend(1, 0, m.Segment(-8, 4))},
		{"a negative length", "a negative length", a.PostSend(1, 0, m.Segment(0, -4))},
		{"a flag that the attributes lack", "UNSIGNALLED needs ep.Attr.RequestFlags", a.PostSend(1, hw.Unsignalled, m.Segment(0, 1))},
		{"a flag for receives", "UNSIGNALLED needs ep.Attr.RecvFlags", a.PostRecv(1, hw.Unsignalled, m.Segment(0, 1))},
		{"a flag of other operations", "SUPPRESS does not go with RECEIVE", a.PostRecv(1, hw.Suppress, m.Segment(0, 1))},
		{"no length", "QLen is required", noLen},
	} {
		require.Error(t, c.err, c.name)
		assert.Contains(t, c.err.Error(), c.want, c.name)
		assert.NotContains(t, c.err.Error(), "argument", c.name)
	}
}

func TestTheErrorOfAFullDispatcherNamesItAndItsUsers(t *testing.T) {
	r := newCauseRig(t, "loop")
	m, err := r.pz.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	small, err := r.ia.NewDispatcher(evd.Config{QLen: 3})
	require.NoError(t, err)
	e, err := r.ia.NewEndpoint(ep.Config{PZ: r.pz, Recv: small, Request: small, Conn: r.events})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, e.PostRecv(1, 0, m.Segment(0, 8)))
	}
	err = e.PostRecv(1, 0, m.Segment(0, 8))
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	for _, want := range []string{small.String(), "QLen is 3", "3 places are reserved", e.String(), "0 requests and 3 receives outstanding"} {
		assert.Contains(t, err.Error(), want)
	}
}

func TestAnAddressWithAPortIsRefusedWithWords(t *testing.T) {
	r := newCauseRig(t, "iwarp")
	err := r.endpoint().Connect(ep.ConnectConfig{Addr: "localhost:4444", Qual: 1})
	require.ErrorIs(t, err, hw.ErrInvalidAddress)
	assert.Contains(t, err.Error(), "the port 4444 goes into Qual")
}

func TestIWARPOpensAtAnInterfaceAndRefusesWhatIsNone(t *testing.T) {
	_, err := Open(t.Context(), "iwarp:no-such-interface.invalid")
	require.ErrorIs(t, err, hw.ErrInvalidAddress)
	assert.Contains(t, err.Error(), "no-such-interface.invalid")
	ifcs, err := net.Interfaces()
	require.NoError(t, err)
	for _, ifc := range ifcs {
		if ifc.Flags&net.FlagLoopback != 0 {
			ia := open(t, "iwarp:"+ifc.Name)
			assert.NotNil(t, net.ParseIP(ia.Attr().Address), ia.Attr().Address)
			return
		}
	}
	t.Fatal("no loopback interface")
}

func TestEveryHandlePrintsAsAShortName(t *testing.T) {
	r := newCauseRig(t, "loop")
	a, _ := r.pair()
	m, err := r.pz.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	cno, err := r.ia.NewCNO(evd.CNOConfig{})
	require.NoError(t, err)
	route, err := r.events.Route(1<<63, 1<<63, 1)
	require.NoError(t, err)
	srq, err := r.ia.NewSRQ(r.pz, 4, 1)
	require.NoError(t, err)
	rmr, err := r.pz.NewRMR()
	require.NoError(t, err)
	for _, h := range []any{
		r.ia, r.pz, m, rmr, a, r.events, cno, r.point, srq, route, r.events.NewOneShot(), &ep.RSP{}, &ep.CSP{}, &ep.CR{},
		(*IA)(nil), (*ep.Endpoint)(nil), (*ep.CR)(nil), (*ep.SRQ)(nil), (*ep.PSP)(nil), (*evd.Dispatcher)(nil), (*evd.Route)(nil),
		(*evd.OneShot)(nil), (*evd.CNO)(nil), listen(t, r.ia, ConnConfig{}), ep.NewOutbox(a, 1),
		(*Listener)(nil), (*Conn)(nil), (*ep.Outbox)(nil),
	} {
		s := fmt.Sprintf("%v %+v", h, h)
		assert.Less(t, len(s), 120, s)
		assert.NotContains(t, s, "{", "%T", h)
	}
}
