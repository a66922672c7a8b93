package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// srq makes a shared receive queue; the rig closes it after the endpoints.
func (r *rig) srq(receives, segments int) *SRQ {
	q, err := r.adapter.NewSRQ(r.pz, receives, segments)
	require.NoError(r.t, err)
	return q
}

// taker makes an endpoint that takes its receives from q and completes them to
// recv.
func (r *rig) taker(q *SRQ, recv *evd.Dispatcher) *Endpoint {
	return r.endpointOf(Config{PZ: r.pz, Recv: recv, Request: r.dto, Conn: r.conn, SRQ: q, Attr: &Attr{}})
}

// feeder makes an endpoint that is connected to a new taker.
func (r *rig) feeder(q *SRQ, recv *evd.Dispatcher) (feeder, taker *Endpoint) {
	feeder, taker = r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Conn: r.conn, Request: r.dto}), r.taker(q, recv)
	r.connect(feeder, taker)
	return feeder, taker
}

func (r *rig) counts(q *SRQ) (available, outstanding int) {
	p, err := q.Query()
	require.NoError(r.t, err)
	return p.Available, p.Outstanding
}

func TestASharedQueueTellsWhatItIs(t *testing.T) {
	r := newRig(t)
	q := r.srq(5, 3)
	require.NoError(t, q.SetLowWatermark(0))
	require.NoError(t, q.PostRecv(1, r.lmr.Segment(0, 8)))
	p, err := q.Query()
	require.NoError(t, err)
	assert.Equal(t, SRQParam{
		State: 1, PZ: r.pz, MaxRecvDTOs: 5, MaxRecvIOV: 3, Available: 1, Outstanding: 1,
	}, p)

	e := r.taker(q, r.dto)
	ep, err := e.Query()
	require.NoError(t, err)
	assert.Same(t, q, ep.SRQ)
}

func TestASharedQueueHasDefaults(t *testing.T) {
	r := newRig(t)
	p, err := r.srq(0, 0).Query()
	require.NoError(t, err)
	assert.Equal(t, 16, p.MaxRecvDTOs)
	assert.Equal(t, 4, p.MaxRecvIOV)
}

func TestASharedQueueRefusesBadArguments(t *testing.T) {
	r := newRig(t)
	q := r.srq(2, 2)
	other, err := r.domain.NewPZ()
	require.NoError(t, err)
	foreign, err := other.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	readOnly, err := r.pz.Alloc(64, hw.LocalRead)
	require.NoError(t, err)
	freed, err := r.pz.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	require.NoError(t, freed.Free())
	seg := r.lmr.Segment(0, 8)
	for name, c := range map[string]struct {
		segs []mem.Segment
		want hw.Error
	}{
		"segments":  {[]mem.Segment{seg, seg, seg}, hw.Error{Type: hw.InvalidParameter}},
		"zone":      {[]mem.Segment{foreign.Segment(0, 8)}, hw.Error{Type: hw.ProtectionViolation}},
		"privilege": {[]mem.Segment{readOnly.Segment(0, 8)}, hw.Error{Type: hw.PrivilegesViolation, Sub: hw.PrivilegesWrite}},
		"bounds":    {[]mem.Segment{seg, r.lmr.Segment(64<<10-4, 8)}, hw.Error{Type: hw.ProtectionViolation}},
		"freed":     {[]mem.Segment{freed.Segment(0, 8)}, hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleLMR}},
	} {
		assert.ErrorIs(t, q.PostRecv(1, c.segs...), &c.want, name)
	}
	available, outstanding := r.counts(q)
	assert.Zero(t, available, "a refused post has no effect")
	assert.Zero(t, outstanding)
	require.NoError(t, q.PostRecv(1))
	require.NoError(t, q.PostRecv(2, seg, seg))
	assert.ErrorIs(t, q.PostRecv(3), &hw.Error{Type: hw.InsufficientResources, Sub: 10})

	for name, c := range map[string]struct {
		call func() error
		want hw.Error
	}{
		"resize to 0":            {func() error { return q.Resize(0) }, hw.Error{Type: hw.InvalidParameter}},
		"resize beyond":          {func() error { return q.Resize(1 << 30) }, hw.Error{Type: hw.InvalidParameter}},
		"resize below":           {func() error { return q.Resize(1) }, hw.Error{Type: hw.InvalidState, Sub: 85}},
		"negative watermark":     {func() error { return q.SetLowWatermark(-1) }, hw.Error{Type: hw.InvalidParameter}},
		"watermark beyond":       {func() error { return q.SetLowWatermark(3) }, hw.Error{Type: hw.InvalidParameter}},
		"nil post":               {func() error { return (*SRQ)(nil).PostRecv(1) }, hw.Error{Type: hw.InvalidHandle, Sub: 25}},
		"nil close":              {func() error { return (*SRQ)(nil).Close() }, hw.Error{Type: hw.InvalidHandle, Sub: 25}},
		"nil resize":             {func() error { return (*SRQ)(nil).Resize(4) }, hw.Error{Type: hw.InvalidHandle, Sub: 25}},
		"nil watermark":          {func() error { return (*SRQ)(nil).SetLowWatermark(1) }, hw.Error{Type: hw.InvalidHandle, Sub: 25}},
		"create: nil zone":       {r.newSRQ(nil, 0, 0), hw.Error{Type: hw.InvalidHandle, Sub: 15}},
		"create: too long":       {r.newSRQ(r.pz, 1<<30, 0), hw.Error{Type: hw.InvalidParameter}},
		"create: negative":       {r.newSRQ(r.pz, -1, 0), hw.Error{Type: hw.InvalidParameter}},
		"create: many segments":  {r.newSRQ(r.pz, 0, 1<<20), hw.Error{Type: hw.InvalidParameter}},
		"endpoint: no attr":      {r.newTaker(Config{PZ: r.pz, SRQ: q}), hw.Error{Type: hw.InvalidParameter}},
		"endpoint: another zone": {r.newTaker(Config{PZ: other, SRQ: q, Attr: &Attr{}}), hw.Error{Type: hw.ProtectionViolation}},
		"its zone":               {r.pz.Close, hw.Error{Type: hw.InvalidState, Sub: 83}},
	} {
		assert.ErrorIs(t, c.call(), &c.want, name)
	}
	require.NoError(t, q.Close())
	require.NoError(t, q.Close(), "a second time does nothing")
	for name, call := range map[string]func() error{
		"post": func() error { return q.PostRecv(1, seg) }, "resize": func() error { return q.Resize(4) },
		"watermark": func() error { return q.SetLowWatermark(1) },
		"query":     func() error { _, err := q.Query(); return err },
		"endpoint":  r.newTaker(Config{PZ: r.pz, SRQ: q, Attr: &Attr{}}),
	} {
		assert.ErrorIs(t, call(), &hw.Error{Type: hw.InvalidHandle, Sub: 25}, "%s after Close", name)
	}
	require.NoError(t, foreign.Free())
	require.NoError(t, other.Close())
	require.NoError(t, readOnly.Free())
}

func (r *rig) newSRQ(pz *mem.PZ, receives, segments int) func() error {
	return func() error { _, err := r.adapter.NewSRQ(pz, receives, segments); return err }
}

func (r *rig) newTaker(cfg Config) func() error {
	return func() error { _, err := r.adapter.NewEndpoint(cfg); return err }
}

func TestAnEndpointWithASharedQueueTakesNoReceivesOfItsOwn(t *testing.T) {
	for _, state := range []State{
		Unconnected, Reserved, PassiveConnectionPending, ActiveConnectionPending, TentativeConnectionPending,
		CompletionPending, Connected, DisconnectPending, Disconnected,
	} {
		t.Run(state.String(), func(t *testing.T) {
			r := newRig(t)
			q := r.srq(0, 0)
			feeder, e := r.endpoint(nil), r.taker(q, r.dto)
			switch state {
			case Connected, Disconnected:
				r.connect(feeder, e)
				if state == Disconnected {
					require.NoError(t, e.Disconnect(Abrupt))
					r.next(r.conn)
				}
			default:
				r.force(e, state)
			}
			want := &hw.Error{Type: hw.InvalidState, Sub: 87}
			assert.ErrorIs(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)), want)
			n, err := e.PostRecvBatch([]DTO{{}})
			assert.Zero(t, n)
			assert.ErrorIs(t, err, want)
			require.NoError(t, q.PostRecv(1), "the queue itself takes them in any state")
		})
	}
}

func TestResizeKeepsWhatIsOutstanding(t *testing.T) {
	r := newRig(t)
	q := r.srq(3, 1)
	from, _ := r.feeder(q, r.dto)
	next := 0
	post := func(n int) {
		for range n {
			require.NoError(t, q.PostRecv(uint64(next), r.lmr.Segment(8*next, 8)))
			next++
		}
	}
	full := func() {
		assert.ErrorIs(t, q.PostRecv(99), &hw.Error{Type: hw.InsufficientResources, Sub: 10})
	}
	taken := 0
	take := func(n int) {
		for range n {
			r.lmr.Bytes()[4096] = byte(taken + 1)
			require.NoError(t, from.PostSend(0, hw.Suppress, r.lmr.Segment(4096, 1)))
			assert.EqualValues(t, taken, r.next(r.dto).Cookie)
			assert.EqualValues(t, taken+1, r.lmr.Bytes()[8*taken])
			taken++
		}
	}
	post(3)
	full()
	require.NoError(t, q.Resize(7))
	post(4)
	full()
	take(5)
	assert.ErrorIs(t, q.Resize(1), &hw.Error{Type: hw.InvalidState, Sub: 85})
	require.NoError(t, q.Resize(2))
	full()
	take(1)
	post(1)
	full()
	require.NoError(t, q.Resize(20))
	post(18)
	full()
	take(20)
}

func TestTheLowWatermarkIsReportedOnceForEachTimeItIsSet(t *testing.T) {
	r := newRig(t)
	async := r.dispatcher(evd.ModeQueue, 4)
	r.adapter.cfg.Async = async
	q := r.srq(8, 0)
	from, _ := r.feeder(q, r.dto)
	post := func(n int) {
		for range n {
			require.NoError(t, q.PostRecv(1))
		}
	}
	take := func() {
		require.NoError(t, from.PostSend(0, hw.Suppress))
		r.next(r.dto)
	}
	low := func() {
		t.Helper()
		ev := r.next(async)
		assert.Equal(t, event.AsyncEPBroken, ev.Number)
		source, why, ok := ev.Async()
		assert.True(t, ok)
		assert.Same(t, q, source)
		assert.Same(t, q, SRQOf(ev))
		assert.EqualValues(t, 2, why)
		r.none(async)
	}
	post(4)
	require.NoError(t, q.SetLowWatermark(3))
	take()
	r.none(async) // 3 are left: not fewer than 3
	take()
	low()
	take()
	r.none(async) // once

	p, err := q.Query()
	require.NoError(t, err)
	assert.Equal(t, 3, p.LowWatermark)
	require.NoError(t, q.SetLowWatermark(2))
	low() // only 1 is left already

	require.NoError(t, q.SetLowWatermark(1))
	require.NoError(t, q.SetLowWatermark(0))
	take()
	r.none(async) // the request was withdrawn
	require.NoError(t, r.adapter.Close())
	require.NoError(t, async.Close())
}

func TestAFailedSharedQueueTakesNoMore(t *testing.T) {
	r := newRig(t)
	q := r.srq(0, 0)
	assert.Nil(t, r.adapter.FailSRQ(nil))
	assert.Same(t, q, r.adapter.FailSRQ(q.hw))
	p, err := q.Query()
	require.NoError(t, err)
	assert.EqualValues(t, 0, p.State)
	want := &hw.Error{Type: hw.InvalidState, Sub: 86}
	assert.ErrorIs(t, q.PostRecv(1), want)
	assert.ErrorIs(t, q.Resize(20), want)
	assert.ErrorIs(t, q.SetLowWatermark(1), want)
	require.NoError(t, q.Close())
}

func TestSharedQueuesCloseAfterTheirEndpoints(t *testing.T) {
	r := newRig(t)
	q := r.srq(0, 0)
	r.feeder(q, r.dto)
	require.NoError(t, q.PostRecv(1))
	before := r.adapter.Len()
	assert.Equal(t, 4, before, "two endpoints, a queue and a service point")
	require.NoError(t, r.adapter.Close())
	assert.Zero(t, r.adapter.Len())
	_, err := q.Query()
	assert.ErrorIs(t, err, hw.ErrInvalidHandle)
}

// refusingSRQ is a device's queue that refuses receives and watermarks.
type refusingSRQ struct {
	hw.SRQ
	err error
}

func (q refusingSRQ) PostRecv([]hw.RecvWR) (int, error) { return 0, q.err }
func (q refusingSRQ) Arm(int) error                     { return q.err }

func TestACallThatTheDeviceRefusesLeavesASharedQueueAsItWas(t *testing.T) {
	r := newRig(t)
	q := r.srq(2, 0)
	narrow := r.dispatcher(evd.ModeQueue, 2)
	r.taker(q, narrow)
	require.NoError(t, q.SetLowWatermark(0))
	device := q.hw
	q.hw = refusingSRQ{device, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceDevice}}
	for i := range uint64(3) { // more than there are slots and places in the dispatcher
		require.ErrorIs(t, q.PostRecv(i, r.lmr.Segment(0, 8)), &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceDevice})
	}
	require.ErrorIs(t, q.SetLowWatermark(1), &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceDevice})
	q.hw = device
	p, err := q.Query()
	require.NoError(t, err)
	assert.Zero(t, p.Outstanding)
	assert.Zero(t, p.LowWatermark)
	for i := range uint64(2) {
		require.NoError(t, q.PostRecv(i, r.lmr.Segment(0, 8)))
	}
	require.NoError(t, r.adapter.Close())
	require.NoError(t, narrow.Close())
}
