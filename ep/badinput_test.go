package ep

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// poster is one of the four calls that post; post takes the arguments that the
// calls share.
type poster struct {
	op   hw.Op
	post func(e *Endpoint, flags hw.Flags, remote mem.RemoteSegment, segs ...mem.Segment) error
}

var posters = map[string]poster{
	"PostSend": {hw.OpSend, func(e *Endpoint, f hw.Flags, _ mem.RemoteSegment, s ...mem.Segment) error {
		return e.PostSend(1, f, s...)
	}},
	"PostRecv": {hw.OpRecv, func(e *Endpoint, f hw.Flags, _ mem.RemoteSegment, s ...mem.Segment) error {
		return e.PostRecv(1, f, s...)
	}},
	"PostRDMAWrite": {hw.OpWrite, func(e *Endpoint, f hw.Flags, r mem.RemoteSegment, s ...mem.Segment) error {
		return e.PostRDMAWrite(1, f, r, s...)
	}},
	"PostRDMARead": {hw.OpRead, func(e *Endpoint, f hw.Flags, r mem.RemoteSegment, s ...mem.Segment) error {
		return e.PostRDMARead(1, f, r, s...)
	}},
}

// TestBadArguments expects the return code of the specification, and no effect:
// after each case a good post is the first to complete.
func TestBadArguments(t *testing.T) {
	r := newRig(t)
	attr := &Attr{MaxMessageSize: 1000, MaxRDMASize: 2000, MaxRequestIOV: 2, MaxRecvIOV: 3}
	otherPZ, err := r.domain.NewPZ()
	require.NoError(t, err)
	foreign, err := otherPZ.Alloc(4096, hw.AllPrivileges)
	require.NoError(t, err)
	readOnly, err := r.pz.Alloc(4096, hw.LocalRead)
	require.NoError(t, err)
	writeOnly, err := r.pz.Alloc(4096, hw.LocalWrite)
	require.NoError(t, err)
	freed, err := r.pz.Alloc(4096, hw.AllPrivileges)
	require.NoError(t, err)
	gone := freed.Segment(0, 8)
	require.NoError(t, freed.Free())

	seg := r.lmr.Segment(0, 8)
	beyond := seg
	beyond.Addr += uint64(len(r.lmr.Bytes()) - 7)
	before := seg
	before.Addr--
	wrapped := seg
	wrapped.Addr = ^uint64(3)
	remote, nowhere := r.lmr.Remote(0, 4000), r.lmr.Remote(1, len(r.lmr.Bytes()))
	sources, sinks := []string{"PostSend", "PostRDMAWrite"}, []string{"PostRecv", "PostRDMARead"}
	all := append(append([]string{}, sources...), sinks...)

	cases := []struct {
		name   string
		calls  []string
		flags  hw.Flags
		remote mem.RemoteSegment
		segs   []mem.Segment
		want   error
	}{
		{"a region of another zone", all, 0, remote, []mem.Segment{foreign.Segment(0, 8)}, hw.ErrProtection},
		{"one byte too far", all, 0, remote, []mem.Segment{beyond}, hw.ErrProtection},
		{"a range out of the peer's region", []string{"PostRDMAWrite", "PostRDMARead"}, 0, nowhere, []mem.Segment{seg}, hw.ErrLength},
		{"one byte too early", all, 0, remote, []mem.Segment{before}, hw.ErrProtection},
		{"an address that wraps", all, 0, remote, []mem.Segment{wrapped}, hw.ErrProtection},
		{"a bad second segment", all, 0, remote, []mem.Segment{seg, beyond}, hw.ErrProtection},
		{"a freed region", all, 0, remote, []mem.Segment{gone}, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleLMR}},
		{"a context that names nothing", all, 0, remote, []mem.Segment{{Addr: seg.Addr, Len: 8, Context: 0xFFFFFFFF}}, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleLMR}},
		{"no privilege to read", sources, 0, remote, []mem.Segment{writeOnly.Segment(0, 8)}, &hw.Error{Type: hw.PrivilegesViolation, Sub: hw.PrivilegesRead}},
		{"no privilege to write", sinks, 0, remote, []mem.Segment{readOnly.Segment(0, 8)}, &hw.Error{Type: hw.PrivilegesViolation, Sub: hw.PrivilegesWrite}},
		{"too many segments", []string{"PostSend", "PostRDMAWrite", "PostRDMARead"}, 0, remote, []mem.Segment{seg, seg, seg}, hw.ErrInvalidParameter},
		{"too many segments", []string{"PostRecv"}, 0, remote, []mem.Segment{seg, seg, seg, seg}, hw.ErrInvalidParameter},
		{"a message too long", []string{"PostSend"}, 0, remote, []mem.Segment{r.lmr.Segment(0, 1001)}, hw.ErrLength},
		{"an RDMA too long", []string{"PostRDMAWrite"}, 0, remote, []mem.Segment{r.lmr.Segment(0, 2001)}, hw.ErrLength},
		{"an RDMA too long", []string{"PostRDMARead"}, 0, r.lmr.Remote(0, 2001), []mem.Segment{r.lmr.Segment(0, 2001)}, hw.ErrLength},
		{"more to write than there is room at the peer", []string{"PostRDMAWrite"}, 0, r.lmr.Remote(0, 7), []mem.Segment{seg}, hw.ErrLength},
		{"more to read than there is room here", []string{"PostRDMARead"}, 0, r.lmr.Remote(0, 9), []mem.Segment{seg}, hw.ErrLength},
	}
	for _, c := range cases {
		for _, call := range c.calls {
			t.Run(call+"/"+c.name, func(t *testing.T) {
				a, b := r.pair(attr)
				err := posters[call].post(a, c.flags, c.remote, c.segs...)
				require.ErrorIs(t, err, c.want)
				assert.ErrorContains(t, err, "ep."+call+": ")
				r.none(r.dto)
				requireWorks(t, r, a, b)
			})
		}
	}
	for _, l := range []*mem.LMR{foreign, readOnly, writeOnly} {
		require.NoError(t, l.Free())
	}
	for _, e := range r.adapterEndpoints() {
		require.NoError(t, e.Close())
	}
	require.NoError(t, otherPZ.Close())
}

// TestEachOperationTakesItsLegalFlagsAndNoOthers tries every flag on every operation against the specification's
// table, with and without the endpoint's attribute for UNSIGNALLED.
func TestEachOperationTakesItsLegalFlagsAndNoOthers(t *testing.T) {
	flags := []hw.Flags{hw.Suppress, hw.SolicitedWait, hw.Unsignalled, hw.BarrierFence, hw.EVDThreshold, 0x20, 0x8000}
	const attribute = 2 // legal if the endpoint's attributes have it
	legal := map[string][7]int{
		"PostRecv":      {0, 0, attribute, 0, 0, 0, 0},
		"PostSend":      {1, 1, attribute, 1, 0, 0, 0},
		"PostRDMARead":  {1, 0, attribute, 1, 0, 0, 0},
		"PostRDMAWrite": {1, 0, attribute, 1, 0, 0, 0},
	}
	r := newRig(t)
	for call, row := range legal {
		for i, flag := range flags {
			for _, granted := range []bool{false, true} {
				want := row[i] == 1 || row[i] == attribute && granted
				t.Run(fmt.Sprintf("%s with %#x, attribute %v", call, uint16(flag), granted), func(t *testing.T) {
					attr := &Attr{}
					if granted {
						attr.RecvFlags, attr.RequestFlags = hw.Unsignalled, hw.Unsignalled
					}
					a, b := r.pair(attr)
					err := posters[call].post(a, flag, r.lmr.Remote(0, 8), r.lmr.Segment(0, 8))
					if want {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, hw.ErrInvalidParameter)
						requireWorks(t, r, a, b)
					}
					require.NoError(t, a.Close())
					require.NoError(t, b.Close())
					r.drop(r.dto)
					r.drop(r.conn)
				})
			}
		}
	}
}

func TestNilAndClosedObjectsAreInvalidHandles(t *testing.T) {
	r := newRig(t)
	closedEP := r.endpoint(nil)
	require.NoError(t, closedEP.Close())
	require.NoError(t, closedEP.Close(), "closing again does nothing")
	for name, e := range map[string]*Endpoint{"nil": nil, "closed": closedEP} {
		seg := r.lmr.Segment(0, 64)
		for op, do := range map[string]func() error{
			"Query":         func() error { _, err := e.Query(); return err },
			"Status":        func() error { _, err := e.Status(); return err },
			"PostRecv":      func() error { return e.PostRecv(1, 0, seg) },
			"PostSend":      func() error { return e.PostSend(1, 0, seg) },
			"PostRDMARead":  func() error { return e.PostRDMARead(1, 0, r.lmr.Remote(0, 64), seg) },
			"PostRDMAWrite": func() error { return e.PostRDMAWrite(1, 0, r.lmr.Remote(0, 64), seg) },
			"Connect":       func() error { return e.Connect(ConnectConfig{Qual: r.psp.Qual()}) },
			"Accept":        func() error { return r.request().Accept(e, nil) },
			"Disconnect":    func() error { return e.Disconnect(Abrupt) },
			"Reset":         e.Reset,
		} {
			require.ErrorIs(t, do(), &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleEP}, "%s on a %s endpoint", op, name)
		}
		n, err := e.PostBatch(make([]DTO, 2))
		assert.Zero(t, n)
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		n, err = e.PostRecvBatch(make([]DTO, 2))
		assert.Zero(t, n)
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
	}
	require.ErrorIs(t, (*Endpoint)(nil).Close(), hw.ErrInvalidHandle)
	require.ErrorIs(t, (*PSP)(nil).Close(), hw.ErrInvalidHandle)
	require.ErrorIs(t, (*CR)(nil).Reject(nil), hw.ErrInvalidHandle)
	_, err := (*CR)(nil).Query()
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	assert.Nil(t, Of(event.Event{}))
	assert.Nil(t, RequestOf(event.Event{}))

	_, err = (*Adapter)(nil).NewEndpoint(Config{})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = r.adapter.NewEndpoint(Config{})
	require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandlePZ})
	pz, err := r.domain.NewPZ()
	require.NoError(t, err)
	require.NoError(t, pz.Close())
	_, err = r.adapter.NewEndpoint(Config{PZ: pz})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	d := r.dispatcher(evd.ModeQueue, 1)
	require.NoError(t, d.Close())
	_, err = r.adapter.NewEndpoint(Config{PZ: r.pz, Recv: d})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = r.adapter.NewEndpoint(Config{PZ: r.pz, Attr: &Attr{MaxRecvDTOs: 1 << 30}})
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	require.Len(t, r.requests(), r.adapter.Len()-1, "what failed left nothing: all there is are the service point and those who asked it")
}

func TestOperationsThatAreNoneAreRefused(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	for op := range 256 {
		op := hw.Op(op)
		switch op {
		case hw.OpSend, hw.OpWrite, hw.OpRead, hw.OpWriteImm, hw.OpFetchAdd, hw.OpCompareSwap, hw.OpSendInvalidate:
			continue
		}
		n, err := a.PostBatch([]DTO{{Op: op, Segments: []mem.Segment{r.lmr.Segment(0, 8)}}})
		assert.Zero(t, n)
		require.ErrorIs(t, err, hw.ErrInvalidParameter, "%v", op)
	}
	requireWorks(t, r, a, b)
}

// requireWorks checks that the next event is a message from a to b.
func requireWorks(t *testing.T, r *rig, a, b *Endpoint) {
	require.Equal(t, Connected, a.State())
	r.none(r.dto)
	require.NoError(t, b.PostRecv(77, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, a.PostSend(78, 0, r.lmr.Segment(0, 8)))
	for range 2 {
		ev := r.next(r.dto)
		require.NoError(t, ev.Err())
		require.Contains(t, []uint64{77, 78}, ev.Cookie)
	}
	r.none(r.dto)
}

// drop takes all events off d.
func (r *rig) drop(d *evd.Dispatcher) {
	var buf [16]event.Event
	for {
		n, err := d.Dequeue(buf[:])
		require.NoError(r.t, err)
		if n == 0 {
			return
		}
	}
}

func (r *rig) adapterEndpoints() (list []*Endpoint) { return r.adapter.eps.list() }

func (r *rig) requests() (list []*CR) { return r.adapter.crs.list() }

// A post that is refused for a state names that state in its error, even if the
// endpoint has another state by then.
func TestARefusalNamesTheStateThatItIsFor(t *testing.T) {
	r := newRig(t)
	a := r.endpoint(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20_000 {
			a.box.SetState([...]State{Connected, ActiveConnectionPending}[i%2].inBox())
		}
		a.box.SetState(Unconnected.inBox())
	}()
	for running := true; running; {
		if err := a.box.Inside().Check(hw.OpSend); err != nil {
			require.NotErrorIs(t, err, &hw.Error{Type: hw.InvalidState, Sub: hw.StateEPConnected})
		}
		select {
		case <-done:
			running = false
		default:
		}
	}
}
