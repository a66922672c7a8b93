package ep

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/internal/door"
	"godat/mem"
)

// deaf is a queue pair that takes all posts and does nothing. It counts those of the short ways.
type deaf struct {
	mute
	short int
}

func (d *deaf) PostRun(_ hw.Op, _ hw.WRFlags, _ uint64, _ *hw.SGE, _ uintptr, n int, _ uint32, _ uint64) int {
	d.short += n
	return n
}

func (d *deaf) RecvRun(_ uint64, _ *hw.SGE, _ uintptr, n int) int {
	d.short += n
	return n
}

func (d *deaf) PostRecv(wrs []hw.RecvWR) (int, error) { return len(wrs), nil }
func (d *deaf) Kick()                                 {}

// admission has two endpoints that are alike. The posts of one go the short way if they can, those of the other
// the long way.
type admission struct {
	*rig
	rand        *rand.Rand
	short, long *Endpoint
	to          [2]*evd.Dispatcher
	device      *deaf // of short
	segments    []mem.Segment
	remotes     []mem.RemoteSegment
}

// A short way is the long way in one piece: it is there for speed, and nobody may notice it.
func TestAPostIsAdmittedAlikeOnTheShortWayAndOnTheLongWay(t *testing.T) {
	r := newRig(t)
	elsewhere, err := r.domain.NewPZ()
	require.NoError(t, err)
	far, err := elsewhere.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	readOnly, err := r.pz.Alloc(64, hw.LocalRead)
	require.NoError(t, err)
	gone, err := r.pz.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	freed := gone.Segment(0, 8)
	require.NoError(t, gone.Free())
	segments := []mem.Segment{freed, far.Segment(0, 8), readOnly.Segment(0, 8), {Addr: math.MaxUint64, Len: 8}}
	remotes := []mem.RemoteSegment{r.lmr.Remote(0, 8), r.lmr.Remote(64<<10, 8), r.lmr.Remote(0, 64), r.lmr.Remote(0, 4<<10)}
	took, short := 0, 0
	for seed := range uint64(150) {
		a := &admission{rig: r, rand: rand.New(rand.NewPCG(seed, 0)), segments: segments, remotes: remotes}
		took += a.try(seed)
		short += a.device.short
	}
	assert.Greater(t, took, 2000, "posts that both took")
	assert.Greater(t, short, 1000, "of them, those that went the short way")
	require.NoError(t, far.Free())
	require.NoError(t, elsewhere.Close())
	require.NoError(t, readOnly.Free())
}

// try posts at random, and returns how many posts both endpoints took.
func (a *admission) try(seed uint64) (took int) {
	a.drop(a.conn) // the ends of the connections before
	qlen := 16 << a.rand.IntN(4)
	attr := Attr{MaxRequestDTOs: 4 << a.rand.IntN(4), MaxRecvDTOs: 4 << a.rand.IntN(4), MaxMessageSize: 2048, MaxRequestIOV: 3, MaxRecvIOV: 3}
	last := a.rand.IntN(2) == 0
	for i, e := range []**Endpoint{&a.short, &a.long} {
		a.to[i] = a.dispatcher(evd.ModeQueue, qlen)
		*e = a.endpointOf(Config{PZ: a.pz, Recv: a.to[i], Request: a.to[i], Conn: a.conn, Attr: &attr, EndIsLast: last})
		peer := a.endpoint(nil)
		a.connect(*e, peer)
		own := (*e).box.QP()
		d := &deaf{mute: mute{own.(hw.Runner)}}
		(*e).box.SetQP(d)
		if i == 0 {
			a.device = d
		}
		defer func(e, peer *Endpoint, to *evd.Dispatcher) {
			e.box.SetState(Connected.inBox())
			e.box.SetQP(own)
			require.NoError(a.t, e.Close())
			require.NoError(a.t, peer.Close())
			a.drop(to)
			require.NoError(a.t, to.Close())
		}(*e, peer, a.to[i])
		if seed%3 == 0 {
			(*e).Own(door.Key{}).Reserve()
		}
	}
	for range 60 {
		state := Connected
		if a.rand.IntN(4) == 0 {
			state = []State{Unconnected, TentativeConnectionPending, DisconnectPending, Disconnected, CompletionPending}[a.rand.IntN(5)]
		}
		for _, e := range []*Endpoint{a.short, a.long} {
			e.box.SetState(state.inBox())
			e.box.Tell(0) // the step follows each change of the state
		}
		took += a.post(seed)
	}
	return took
}

// post posts some operations to both endpoints and compares what came of them.
func (a *admission) post(seed uint64) (took int) {
	recvs := a.rand.IntN(3) == 0
	shortQ, longQ := &a.short.box.Requests, &a.long.box.Requests
	batch := a.short.PostBatch
	if recvs {
		shortQ, longQ, batch = &a.short.box.Recvs, &a.long.box.Recvs, a.short.PostRecvBatch
	}
	dtos := make([]DTO, 1+a.rand.IntN(4)*a.rand.IntN(3))
	for i := range dtos {
		dtos[i] = a.dto()
	}
	first := a.short.box.Inside().Tail(shortQ)
	require.Equal(a.t, first, a.long.box.Inside().Tail(longQ))
	n, err := batch(dtos)
	var longErr error
	for took = 0; took < len(dtos); took++ {
		if longErr = a.long.box.Inside().PostLong(longQ, posts(dtos)[took]); longErr != nil {
			break
		}
	}
	require.Equal(a.t, took, n, "seed %d: %v, %v", seed, err, longErr)
	require.Equal(a.t, kindOfError(longErr), kindOfError(err), "seed %d: %v, %v", seed, err, longErr)
	require.Equal(a.t, a.short.box.Inside().Tail(shortQ), a.long.box.Inside().Tail(longQ))
	for i := range uint32(n) {
		s, l := a.short.box.Inside().Slot(shortQ, first+i), a.long.box.Inside().Slot(longQ, first+i)
		require.Same(a.t, wiring(a.to[0]).Main(), s.To)
		require.Same(a.t, wiring(a.to[1]).Main(), l.To)
		s.To, l.To = nil, nil
		require.Equal(a.t, l, s, "seed %d", seed)
	}
	reserved, _ := wiring(a.to[0]).Main().Places()
	longReserved, _ := wiring(a.to[1]).Main().Places()
	require.Equal(a.t, longReserved, reserved, "seed %d", seed)
	return n
}

// dto is an operation with one or two things that are wrong, now and then.
func (a *admission) dto() DTO {
	odd := func() bool { return a.rand.IntN(8) == 0 }
	segment := func() mem.Segment {
		if odd() {
			return a.segments[a.rand.IntN(len(a.segments))]
		}
		return a.lmr.Segment(8*a.rand.IntN(64), []int{0, 1, 8, 8, 8, 8, 8, 64, 4096}[a.rand.IntN(9)])
	}
	d := DTO{Op: []hw.Op{hw.OpSend, hw.OpWrite, hw.OpRead}[a.rand.IntN(3)], Cookie: uint64(a.rand.Uint32()), Segment: segment(), Remote: a.remotes[a.rand.IntN(len(a.remotes))]}
	if odd() {
		d.Op = hw.Op(a.rand.IntN(40))
	}
	if odd() {
		d.Flags = hw.Flags(1 << a.rand.IntN(7))
	}
	if odd() {
		d.Cookie |= 1 << 63
	}
	if odd() {
		d.Segments = make([]mem.Segment, a.rand.IntN(5))
		for i := range d.Segments {
			d.Segments[i] = segment()
		}
	}
	return d
}

// kindOfError is the type and subtype of an error.
func kindOfError(err error) (kind [2]any) {
	var e *hw.Error
	if errors.As(err, &e) {
		kind = [2]any{e.Type, e.Sub}
	}
	return kind
}
