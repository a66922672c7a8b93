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

// rmr makes a window of the zone; the rig frees it when no bind is outstanding.
func (r *rig) rmr() *mem.RMR {
	w, err := r.pz.NewRMR()
	require.NoError(r.t, err)
	r.windows = append(r.windows, w)
	return w
}

// bind binds w, waits for the completion, and returns the name.
func (r *rig) bind(e *Endpoint, w *mem.RMR, to mem.Binding) mem.RemoteSegment {
	r.t.Helper()
	remote, err := e.PostBind(77, 0, w, to)
	require.NoError(r.t, err)
	ev := r.next(r.dto)
	assert.Equal(r.t, event.Number(0x01001), ev.Number)
	assert.Equal(r.t, hw.OpBind, ev.Op)
	assert.Equal(r.t, hw.StatusSuccess, ev.Status)
	assert.EqualValues(r.t, 77, ev.Cookie)
	assert.Same(r.t, e, Of(ev))
	assert.Same(r.t, w, RMROf(ev))
	return remote
}

// write8 writes 8 bytes and returns the status of the write.
func (r *rig) write8(e *Endpoint, to mem.RemoteSegment) hw.Status {
	r.t.Helper()
	to.Len = 8
	require.NoError(r.t, e.PostRDMAWrite(5, 0, to, r.lmr.Segment(0, 8)))
	return r.next(r.dto).Status
}

func (r *rig) broken(n int) {
	r.t.Helper()
	for range n {
		assert.Equal(r.t, event.Broken, r.next(r.conn).Number)
	}
}

const readWrite = hw.RemoteRead | hw.RemoteWrite

// unshared allocates a region that peers reach through windows only.
func (r *rig) unshared() *mem.LMR {
	l, err := r.pz.Alloc(4096, hw.LocalRead|hw.LocalWrite)
	require.NoError(r.t, err)
	return l
}

func TestABoundWindowIsReachedUntilItIsBoundAgain(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	l := r.unshared()
	w := r.rmr()
	first := r.bind(b, w, mem.Binding{Segment: l.Segment(64, 16), Privileges: readWrite})
	assert.Equal(t, l.Segment(64, 16).Addr, first.Addr)
	assert.EqualValues(t, 16, first.Len)
	assert.NotZero(t, first.Context)
	copy(r.lmr.Bytes(), "window!!")
	require.Equal(t, hw.StatusSuccess, r.write8(a, first))
	assert.Equal(t, "window!!", string(l.Bytes()[64:72]))
	require.NoError(t, a.PostRDMARead(6, 0, first, r.lmr.Segment(128, 16)))
	assert.Equal(t, hw.StatusSuccess, r.next(r.dto).Status)
	assert.Equal(t, "window!!", string(r.lmr.Bytes()[128:136]))

	p, err := w.Query()
	require.NoError(t, err)
	assert.Equal(t, mem.RMRParam{Binding: mem.Binding{Segment: l.Segment(64, 16), Privileges: readWrite}, RemoteContext: first.Context, Scope: 1}, p)
	assert.ErrorIs(t, l.Free(), &hw.Error{Type: hw.InvalidState, Sub: 81}, "LMR_IN_USE")
	assert.NotNil(t, l.Bytes(), "a refused Free has no effect")

	second := r.bind(b, w, mem.Binding{Segment: l.Segment(0, 8), Privileges: hw.RemoteWrite})
	assert.NotEqual(t, first.Context, second.Context, "each bind gives another context")
	require.Equal(t, hw.StatusSuccess, r.write8(a, second))
	assert.Equal(t, "window!!", string(l.Bytes()[:8]))

	l.Bytes()[64] = 'x'
	assert.Equal(t, hw.StatusRemoteAccess, r.write8(a, first), "the old context is dead")
	assert.EqualValues(t, 'x', l.Bytes()[64])
	r.broken(2)

	require.NoError(t, w.Free(), "which unbinds")
	require.NoError(t, l.Free())
}

func TestAnUnboundWindowIsNotReached(t *testing.T) {
	for name, none := range map[string]mem.Binding{
		"zero":          {},
		"length 0":      {Privileges: readWrite, Segment: mem.Segment{Addr: 12345, Context: 999}},
		"no privileges": {Segment: mem.Segment{Addr: 12345, Len: 8, Context: 999}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a, b := r.pair(nil)
			l, w := r.unshared(), r.rmr()
			remote := r.bind(b, w, mem.Binding{Segment: l.Segment(0, 8), Privileges: readWrite})
			assert.Zero(t, r.bind(b, w, none))
			p, err := w.Query()
			require.NoError(t, err)
			assert.Equal(t, mem.RMRParam{Scope: mem.RMRScopePZ}, p)
			require.NoError(t, l.Free(), "nothing is bound to it")
			assert.Equal(t, hw.StatusRemoteAccess, r.write8(a, remote))
			r.broken(2)
		})
	}
}

// The cases say what a window allows, by the privileges it was bound with. They are
// typed from DAT's table of privileges: 0x02 for a peer's read, 0x20 for its write.
func TestAWindowAllowsWhatItWasBoundWith(t *testing.T) {
	for _, c := range []struct {
		priv        hw.Privileges
		read, write bool
	}{{0x02, true, false}, {0x20, false, true}, {0x22, true, true}, {0x33, true, true}} {
		for _, op := range []string{"read", "write"} {
			t.Run(fmt.Sprintf("%#x %s", int(c.priv), op), func(t *testing.T) {
				r := newRig(t)
				a, b := r.pair(nil)
				l, w := r.unshared(), r.rmr()
				remote := r.bind(b, w, mem.Binding{Segment: l.Segment(0, 8), Privileges: c.priv})
				allowed := c.read
				if op == "read" {
					require.NoError(t, a.PostRDMARead(1, 0, remote, r.lmr.Segment(0, 8)))
				} else {
					allowed = c.write
					require.NoError(t, a.PostRDMAWrite(1, 0, remote, r.lmr.Segment(0, 8)))
				}
				want := hw.StatusRemoteAccess
				if allowed {
					want = hw.StatusSuccess
				}
				assert.Equal(t, want, r.next(r.dto).Status)
				if !allowed {
					r.broken(2)
				}
				require.NoError(t, w.Free())
				require.NoError(t, l.Free())
			})
		}
	}
}

// The cases say what a bind needs of its region, typed from DAT: a remote read
// needs the local read privilege 0x01, a remote write the local write privilege
// 0x10, and so does an atomic (0x40).
func TestABindNeedsThePrivilegesOfItsRegion(t *testing.T) {
	r := newRig(t)
	_, b := r.pair(nil)
	for _, local := range []hw.Privileges{0x01, 0x10, 0x11} {
		l, err := r.pz.Alloc(64, local)
		require.NoError(t, err)
		for _, c := range []struct {
			priv hw.Privileges
			need hw.Privileges
			sub  hw.Subtype // the subtype of the first privilege that is missing
		}{{0x02, 0x01, 89}, {0x20, 0x10, 90}, {0x22, 0x11, 0}, {0x40, 0x10, 90}, {0x42, 0x11, 0}} {
			w, err := r.pz.NewRMR()
			require.NoError(t, err)
			_, err = b.PostBind(1, 0, w, mem.Binding{Segment: l.Segment(0, 8), Privileges: c.priv})
			if local&c.need == c.need {
				require.NoError(t, err, "%#x of a region with %#x", c.priv, local)
				assert.Equal(t, hw.StatusSuccess, r.next(r.dto).Status)
			} else {
				want := &hw.Error{Type: hw.PrivilegesViolation, Sub: c.sub}
				assert.ErrorIs(t, err, want, "%#x of a region with %#x", c.priv, local)
				r.none(r.dto)
			}
			require.NoError(t, w.Free())
		}
		require.NoError(t, l.Free())
	}
}

func TestBindRefusesBadArguments(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	w := r.rmr()
	other, err := r.domain.NewPZ()
	require.NoError(t, err)
	foreign, err := other.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	foreignRMR, err := other.NewRMR()
	require.NoError(t, err)
	freed := r.unshared()
	gone := freed.Segment(0, 8)
	require.NoError(t, freed.Free())
	freedRMR, err := r.pz.NewRMR()
	require.NoError(t, err)
	require.NoError(t, freedRMR.Free())
	mine, err := a.NewRMR()
	require.NoError(t, err)
	deaf, err := evd.New(evd.Config{QLen: 8, Streams: event.StreamDTO})
	require.NoError(t, err)
	quiet := r.endpointOf(Config{PZ: r.pz, Request: deaf, Conn: r.conn})
	r.connect(r.endpoint(nil), quiet)
	seg := r.lmr.Segment(0, 8)
	good := mem.Binding{Segment: seg, Privileges: readWrite}
	beyond := seg
	beyond.Addr += 64<<10 - 4
	for name, c := range map[string]struct {
		e     *Endpoint
		w     *mem.RMR
		to    mem.Binding
		flags hw.Flags
		want  hw.Error
	}{
		"nil endpoint":      {nil, w, good, 0, hw.Error{Type: hw.InvalidHandle, Sub: 12}},
		"nil window":        {b, nil, good, 0, hw.Error{Type: hw.InvalidHandle, Sub: 14}},
		"freed window":      {b, freedRMR, good, 0, hw.Error{Type: hw.InvalidHandle, Sub: 14}},
		"window's zone":     {b, foreignRMR, good, 0, hw.Error{Type: hw.ProtectionViolation}},
		"other endpoint's":  {b, mine, good, 0, hw.Error{Type: hw.ProtectionViolation}},
		"region's zone":     {b, w, mem.Binding{Segment: foreign.Segment(0, 8), Privileges: readWrite}, 0, hw.Error{Type: hw.ProtectionViolation}},
		"freed region":      {b, w, mem.Binding{Segment: gone, Privileges: readWrite}, 0, hw.Error{Type: hw.InvalidHandle, Sub: 13}},
		"out of bounds":     {b, w, mem.Binding{Segment: beyond, Privileges: readWrite}, 0, hw.Error{Type: hw.InvalidParameter}},
		"only local":        {b, w, mem.Binding{Segment: seg, Privileges: 0x11}, 0, hw.Error{Type: hw.InvalidParameter}},
		"unknown privilege": {b, w, mem.Binding{Segment: seg, Privileges: 0x80}, 0, hw.Error{Type: hw.InvalidParameter}},
		"solicited":         {b, w, good, hw.SolicitedWait, hw.Error{Type: hw.InvalidParameter}},
		"unsignalled":       {b, w, good, hw.Unsignalled, hw.Error{Type: hw.InvalidParameter}},
		"threshold":         {b, w, good, hw.EVDThreshold, hw.Error{Type: hw.InvalidParameter}},
		"no bind stream":    {quiet, w, good, 0, hw.Error{Type: hw.InvalidState, Sub: 60}},
	} {
		_, err := c.e.PostBind(1, c.flags, c.w, c.to)
		assert.ErrorIs(t, err, &c.want, name)
	}
	n, err := b.PostBatch([]DTO{{Op: hw.OpBind}})
	assert.Zero(t, n)
	assert.ErrorIs(t, err, hw.ErrInvalidParameter)
	r.none(r.dto)
	p, err := w.Query()
	require.NoError(t, err)
	assert.Equal(t, mem.RMRParam{Scope: mem.RMRScopePZ}, p, "a refused bind has no effect")
	r.bind(b, w, good)

	require.NoError(t, quiet.Close())
	require.NoError(t, deaf.Close())
	require.NoError(t, mine.Free())
	require.NoError(t, foreignRMR.Free())
	require.NoError(t, foreign.Free())
	require.NoError(t, other.Close())
}

func TestAnEndpointsWindowIsReachedByItsPeerAlone(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	stranger, _ := r.pair(nil)
	w, err := b.NewRMR()
	require.NoError(t, err)
	p, err := w.Query()
	require.NoError(t, err)
	assert.Equal(t, mem.RMRParam{Scope: 0}, p)
	remote := r.bind(b, w, mem.Binding{Segment: r.lmr.Segment(64, 8), Privileges: readWrite})
	assert.Equal(t, hw.StatusSuccess, r.write8(a, remote))
	assert.Equal(t, hw.StatusRemoteAccess, r.write8(stranger, remote))
	r.broken(2)
	require.NoError(t, w.Free())
}

func TestAddressesOfAZeroBasedWindowCountFromItsFirstByte(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	l, w := r.unshared(), r.rmr()
	remote := r.bind(b, w, mem.Binding{Segment: l.Segment(100, 16), Privileges: readWrite, ZeroBased: true})
	assert.Zero(t, remote.Addr)
	copy(r.lmr.Bytes(), "12345678")
	remote.Addr = 8
	require.Equal(t, hw.StatusSuccess, r.write8(a, remote))
	assert.Equal(t, "12345678", string(l.Bytes()[108:116]))
	p, err := w.Query()
	require.NoError(t, err)
	assert.True(t, p.ZeroBased)
	remote.Addr = 9
	assert.Equal(t, hw.StatusRemoteAccess, r.write8(a, remote))
	r.broken(2)
	require.NoError(t, w.Free())
	require.NoError(t, l.Free())
}

func TestASuppressedBindIsSilentWhenItSucceeds(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	w := r.rmr()
	for i := range 40 { // more than the depth
		remote, err := b.PostBind(1, hw.Suppress, w, mem.Binding{Segment: r.lmr.Segment(8*i, 8), Privileges: readWrite})
		require.NoError(t, err)
		p, err := w.Query()
		require.NoError(t, err)
		assert.Equal(t, remote.Context, p.RemoteContext)
		require.Equal(t, hw.StatusSuccess, r.write8(a, remote))
	}
	r.none(r.dto)
	status, err := b.Status()
	require.NoError(t, err)
	assert.True(t, status.RequestIdle)
}

func TestARequestPostedAfterABindFindsItDone(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	w := r.rmr()
	require.NoError(t, b.PostSend(1, hw.Suppress, r.lmr.Segment(0, 8))) // delays what follows
	remote, err := b.PostBind(2, hw.Suppress, w, mem.Binding{Segment: r.lmr.Segment(256, 8), Privileges: readWrite})
	require.NoError(t, err)
	name, err := remote.AppendBinary(nil)
	require.NoError(t, err)
	copy(r.lmr.Bytes()[512:], name)
	require.NoError(t, b.PostSend(3, hw.Suppress, r.lmr.Segment(512, len(name))))
	_, err = b.PostBind(4, hw.Suppress, w, mem.Binding{})
	require.NoError(t, err, "an unbind may follow a bind at once")
	require.NoError(t, a.PostRecv(5, 0, r.lmr.Segment(1024, 64)))
	assert.EqualValues(t, 5, r.next(r.dto).Cookie)
	require.NoError(t, a.PostRecv(6, 0, r.lmr.Segment(1024, 64)))
	assert.EqualValues(t, 6, r.next(r.dto).Cookie)
	got, err := mem.ParseRemoteSegment(r.lmr.Bytes()[1024:])
	require.NoError(t, err)
	assert.Equal(t, remote, got)
	assert.Equal(t, hw.StatusRemoteAccess, r.write8(a, got), "it was unbound behind the message")
	r.broken(2)
}

func TestAPeerThatInvalidatesAWindowUnbindsIt(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	l, w := r.unshared(), r.rmr()
	remote := r.bind(b, w, mem.Binding{Segment: l.Segment(0, 8), Privileges: readWrite})
	require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(64, 8)))
	require.NoError(t, a.PostSendInvalidate(2, 0, remote.Context, r.lmr.Segment(0, 4)))
	ev := r.next(r.dto)
	assert.EqualValues(t, 1, ev.Cookie)
	assert.Equal(t, hw.Op(4), ev.Op, "RECEIVE_WITH_INVALIDATE")
	context, ok := ev.InvalidatedContext()
	assert.True(t, ok)
	assert.Equal(t, remote.Context, context)
	assert.EqualValues(t, 4, ev.Length)
	ev = r.next(r.dto)
	assert.EqualValues(t, 2, ev.Cookie)
	assert.Equal(t, hw.OpSend, ev.Op)
	p, err := w.Query()
	require.NoError(t, err)
	assert.Equal(t, mem.RMRParam{Scope: mem.RMRScopePZ}, p, "the window is unbound")
	require.NoError(t, l.Free())
	assert.Equal(t, hw.StatusRemoteAccess, r.write8(a, remote))
	r.broken(2)
}

func TestTheEventOfABindFollowsTheRouteOfItsCookie(t *testing.T) {
	r := newRig(t)
	d := r.dispatcher(evd.ModeQueue, 8)
	route, err := d.Route(^uint64(0), 7, 4)
	require.NoError(t, err)
	e := r.endpointOf(Config{PZ: r.pz, Request: d, Conn: r.conn})
	r.connect(r.endpoint(nil), e)
	w := r.rmr()
	_, err = e.PostBind(7, 0, w, mem.Binding{})
	require.NoError(t, err)
	assert.Same(t, w, RMROf(<-route.C()))
	require.NoError(t, e.Close())
	require.NoError(t, d.Close())
}
