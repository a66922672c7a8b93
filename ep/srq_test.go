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

// srq makes a shared receive queue; the rig closes it after the endpoints.
func (r *rig) srq(attr SRQAttr) *SRQ {
	q, err := r.adapter.NewSRQ(r.pz, attr)
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
	p, err := q.Query(SRQFieldAvailable | SRQFieldOutstanding)
	require.NoError(r.t, err)
	return p.Available, p.Outstanding
}

func TestASharedQueueTellsWhatItIs(t *testing.T) {
	r := newRig(t)
	r.adapter.ia = "the adapter"
	q := r.srq(SRQAttr{MaxRecvDTOs: 5, MaxRecvIOV: 3})
	require.NoError(t, q.SetLowWatermark(0))
	require.NoError(t, q.PostRecv(1, r.lmr.Segment(0, 8)))
	p, err := q.Query(0xFF)
	require.NoError(t, err)
	assert.Equal(t, SRQParam{
		IA: r.adapter.ia, State: 1, PZ: r.pz, MaxRecvDTOs: 5, MaxRecvIOV: 3, Available: 1, Outstanding: 1,
	}, p)
	for mask, want := range map[SRQField]SRQParam{
		0x01: {IA: r.adapter.ia}, 0x02: {State: 1}, 0x04: {PZ: r.pz}, 0x08: {MaxRecvDTOs: 5},
		0x10: {MaxRecvIOV: 3}, 0x20: {}, 0x40: {Available: 1}, 0x80: {Outstanding: 1},
	} {
		p, err := q.Query(mask)
		require.NoError(t, err)
		assert.Equal(t, want, p, "mask %#x", mask)
	}
	_, err = q.Query(0x100)
	require.ErrorIs(t, err, hw.ErrInvalidParameter)

	e := r.taker(q, r.dto)
	ep, err := e.Query(0x800)
	require.NoError(t, err)
	assert.Equal(t, Param{SRQ: q}, ep)
}

func TestASharedQueueHasDefaults(t *testing.T) {
	r := newRig(t)
	p, err := r.srq(SRQAttr{}).Query(SRQFieldMaxRecvDTOs | SRQFieldMaxRecvIOV)
	require.NoError(t, err)
	assert.Equal(t, SRQParam{MaxRecvDTOs: 16, MaxRecvIOV: 4}, p)
}

func TestASharedReceiveCompletesWhereItWasTaken(t *testing.T) {
	r := newRig(t)
	q := r.srq(SRQAttr{})
	x, y := r.dispatcher(evd.ModeQueue, 32), r.dispatcher(evd.ModeQueue, 32)
	t.Cleanup(func() {
		require.NoError(t, r.adapter.Close())
		require.NoError(t, x.Close())
		require.NoError(t, y.Close())
	})
	toA, a := r.feeder(q, x)
	toB, b := r.feeder(q, y)
	for i := range 4 {
		require.NoError(t, q.PostRecv(uint64(100+i), r.lmr.Segment(64*i, 64)))
	}
	for i, at := range []struct {
		from, by *Endpoint
		d        *evd.Dispatcher
	}{{toA, a, x}, {toB, b, y}, {toB, b, y}, {toA, a, x}} {
		msg := r.lmr.Bytes()[4096 : 4096+16]
		msg[0] = byte(i + 1)
		require.NoError(t, at.from.PostSend(7, hw.Suppress, r.lmr.Segment(4096, 16)))
		ev := r.next(at.d)
		assert.Equal(t, event.DTOCompletion, ev.Number)
		assert.Equal(t, hw.OpRecv, ev.Op)
		assert.Equal(t, hw.StatusSuccess, ev.Status)
		assert.EqualValues(t, 100+i, ev.Cookie)
		assert.EqualValues(t, 16, ev.Length)
		assert.Same(t, at.by, Of(ev))
		assert.EqualValues(t, i+1, r.lmr.Bytes()[64*i], "the data is in the buffer that was posted %d.", i)
	}
	r.none(x)
	r.none(y)
	available, outstanding := r.counts(q)
	assert.Zero(t, available)
	assert.Zero(t, outstanding)
}

func TestSharedReceivesRetireInAnyOrder(t *testing.T) {
	r := newRig(t)
	q := r.srq(SRQAttr{MaxRecvDTOs: 4})
	e := r.taker(q, r.dto)
	post := func(cookie uint64) uint64 {
		wrs, err := q.admit(cookie, nil)
		require.NoError(t, err)
		return wrs[0].ID
	}
	var ids [5]uint64
	for i := range 4 {
		ids[i] = post(uint64(i))
	}
	done := func(i int, status hw.Status) {
		e.box.recvs.Complete([]hw.WC{{ID: ids[i], Status: status}})
		ev := r.next(r.dto)
		assert.EqualValues(t, i, ev.Cookie)
		assert.Equal(t, status, ev.Status)
		assert.Same(t, e, Of(ev))
	}
	assert.ErrorIs(t, q.Resize(3), &hw.Error{Type: hw.InvalidState, Sub: 85}, "the device has none of them any more")
	done(2, hw.StatusSuccess)
	done(0, hw.StatusFlushed)
	ids[4] = post(4) // in a slot that another receive has freed
	done(3, hw.StatusLocalLength)
	done(4, hw.StatusSuccess)
	done(1, hw.StatusSuccess)
	_, outstanding := r.counts(q)
	assert.Zero(t, outstanding)
}

func TestASharedQueueRefusesBadArguments(t *testing.T) {
	r := newRig(t)
	q := r.srq(SRQAttr{MaxRecvDTOs: 2, MaxRecvIOV: 2})
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
		"create: nil zone":       {r.newSRQ(nil, SRQAttr{}), hw.Error{Type: hw.InvalidHandle, Sub: 15}},
		"create: too long":       {r.newSRQ(r.pz, SRQAttr{MaxRecvDTOs: 1 << 30}), hw.Error{Type: hw.InvalidParameter}},
		"create: negative":       {r.newSRQ(r.pz, SRQAttr{MaxRecvDTOs: -1}), hw.Error{Type: hw.InvalidParameter}},
		"create: many segments":  {r.newSRQ(r.pz, SRQAttr{MaxRecvIOV: 1 << 20}), hw.Error{Type: hw.InvalidParameter}},
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
		"query":     func() error { _, err := q.Query(0); return err },
		"endpoint":  r.newTaker(Config{PZ: r.pz, SRQ: q, Attr: &Attr{}}),
	} {
		assert.ErrorIs(t, call(), &hw.Error{Type: hw.InvalidHandle, Sub: 25}, "%s after Close", name)
	}
	require.NoError(t, foreign.Free())
	require.NoError(t, other.Close())
	require.NoError(t, readOnly.Free())
}

func (r *rig) newSRQ(pz *mem.PZ, attr SRQAttr) func() error {
	return func() error { _, err := r.adapter.NewSRQ(pz, attr); return err }
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
			q := r.srq(SRQAttr{})
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

func TestReceivesOfASharedQueueOutliveAnEndpoint(t *testing.T) {
	r := newRig(t)
	q := r.srq(SRQAttr{})
	_, a := r.feeder(q, r.dto)
	toB, b := r.feeder(q, r.dto)
	for i := range 3 {
		require.NoError(t, q.PostRecv(uint64(i), r.lmr.Segment(0, 8)))
	}
	assert.ErrorIs(t, q.Close(), &hw.Error{Type: hw.InvalidState, Sub: 87})
	require.NoError(t, a.Close())
	available, outstanding := r.counts(q)
	assert.Equal(t, 3, available)
	assert.Equal(t, 3, outstanding)
	r.none(r.dto)
	require.NoError(t, toB.PostSend(9, hw.Suppress, r.lmr.Segment(64, 8)))
	ev := r.next(r.dto)
	assert.EqualValues(t, 0, ev.Cookie)
	assert.Same(t, b, Of(ev))
	require.NoError(t, b.Close())
	require.NoError(t, q.Close(), "what is left is dropped")
	r.none(r.dto)
}

func TestASharedReceiveHasRoomWhereverItMayComplete(t *testing.T) {
	r := newRig(t)
	q := r.srq(SRQAttr{MaxRecvDTOs: 8})
	x, y, z := r.dispatcher(evd.ModeQueue, 3), r.dispatcher(evd.ModeQueue, 2), r.dispatcher(evd.ModeQueue, 1)
	t.Cleanup(func() {
		require.NoError(t, r.adapter.Close())
		for _, d := range []*evd.Dispatcher{x, y, z} {
			require.NoError(t, d.Close())
		}
	})
	free := func(d *evd.Dispatcher) (n int) {
		for wiring(d).Main().Reserve(1) {
			n++
		}
		wiring(d).Main().Release(n)
		return n
	}
	toA, a := r.feeder(q, x)
	require.NoError(t, q.PostRecv(1))
	assert.Equal(t, 2, free(x))
	_, b := r.feeder(q, y)
	assert.Equal(t, 1, free(y), "a new dispatcher has room for what was posted before")
	second := r.taker(q, y)
	assert.Equal(t, 1, free(y), "and only once")

	require.NoError(t, q.PostRecv(2))
	assert.ErrorIs(t, q.PostRecv(3), &hw.Error{Type: hw.InsufficientResources, Sub: 5})
	assert.Equal(t, 1, free(x), "a refused post gives back what it has reserved")
	available, outstanding := r.counts(q)
	assert.Equal(t, 2, available)
	assert.Equal(t, 2, outstanding)

	_, err := r.adapter.NewEndpoint(Config{PZ: r.pz, Recv: z, SRQ: q, Attr: &Attr{}})
	assert.ErrorIs(t, err, &hw.Error{Type: hw.InsufficientResources, Sub: 5})
	assert.Equal(t, 1, free(z), "a refused endpoint gives back what it has reserved")

	require.NoError(t, toA.PostSend(1, hw.Suppress))
	assert.Same(t, a, Of(r.next(x)))
	assert.Equal(t, 2, free(x))
	assert.Equal(t, 1, free(y), "the completion gives the room elsewhere back")

	require.NoError(t, b.Close())
	assert.Equal(t, 1, free(y), "another endpoint still completes there")
	require.NoError(t, second.Close())
	assert.Equal(t, 2, free(y))
	require.NoError(t, q.PostRecv(4))
	require.NoError(t, q.PostRecv(5))
	assert.Zero(t, free(x))
	require.NoError(t, a.Close())
	assert.Equal(t, 3, free(x))
}

func TestASharedReceiveFollowsTheRouteOfItsCookie(t *testing.T) {
	r := newRig(t)
	q := r.srq(SRQAttr{})
	d := r.dispatcher(evd.ModeQueue, 8)
	route, err := d.Route(0xF0, 0x10, 1)
	require.NoError(t, err)
	from, e := r.feeder(q, d)
	require.NoError(t, q.PostRecv(0x11))
	require.NoError(t, q.PostRecv(0x21))
	require.NoError(t, from.PostSend(0, hw.Suppress))
	require.NoError(t, from.PostSend(0, hw.Suppress))
	ev := <-route.C()
	assert.EqualValues(t, 0x11, ev.Cookie)
	assert.EqualValues(t, 0x21, r.next(d).Cookie)
	require.NoError(t, e.Close())
	require.NoError(t, d.Close())
}

func TestCompletionsOfAnEndpointWithoutADispatcherAreDropped(t *testing.T) {
	r := newRig(t)
	q := r.srq(SRQAttr{MaxRecvDTOs: 1})
	from, _ := r.feeder(q, nil)
	for range 3 {
		require.NoError(t, q.PostRecv(1))
		require.NoError(t, from.PostSend(2, 0))
		assert.EqualValues(t, 2, r.next(r.dto).Cookie)
	}
}

func TestResizeKeepsWhatIsOutstanding(t *testing.T) {
	r := newRig(t)
	q := r.srq(SRQAttr{MaxRecvDTOs: 3, MaxRecvIOV: 1})
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
	r.adapter.async = async
	q := r.srq(SRQAttr{MaxRecvDTOs: 8})
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

	p, err := q.Query(SRQFieldLowWatermark)
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
	q := r.srq(SRQAttr{})
	assert.Nil(t, r.adapter.FailSRQ(nil))
	assert.Same(t, q, r.adapter.FailSRQ(q.hw))
	p, err := q.Query(SRQFieldState)
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
	q := r.srq(SRQAttr{})
	r.feeder(q, r.dto)
	require.NoError(t, q.PostRecv(1))
	before := r.adapter.Len()
	assert.Equal(t, 4, before, "two endpoints, a queue and a service point")
	require.NoError(t, r.adapter.Close())
	assert.Zero(t, r.adapter.Len())
	_, err := q.Query(0)
	assert.ErrorIs(t, err, hw.ErrInvalidHandle)
}

func TestManyEndpointsShareAQueue(t *testing.T) {
	const (
		endpoints = 6
		messages  = 200
		depth     = 12
	)
	r := newRig(t)
	q := r.srq(SRQAttr{MaxRecvDTOs: depth})
	recv := r.dispatcher(evd.ModeQueue, 2*depth)
	t.Cleanup(func() {
		require.NoError(t, r.adapter.Close())
		require.NoError(t, recv.Close())
	})
	from := make([]*Endpoint, endpoints)
	number := make(map[*Endpoint]int)
	for i := range from {
		e := r.endpointOf(Config{PZ: r.pz, Conn: r.conn, Attr: &Attr{MaxRequestDTOs: 8}})
		to := r.taker(q, recv)
		r.connect(e, to)
		from[i], number[to] = e, i
	}
	for i := range depth {
		require.NoError(t, q.PostRecv(uint64(i), r.lmr.Segment(8*i, 8)))
	}
	errs := make(chan error, endpoints+1)
	for i, e := range from {
		go func() { errs <- r.sendNumbers(e, 1024+i*64, messages) }()
	}
	stop := make(chan struct{})
	go func() { errs <- resizeUntil(stop, q, depth) }()
	var seen [endpoints]int
	for range endpoints * messages {
		ev := r.next(recv)
		require.Equal(t, hw.StatusSuccess, ev.Status)
		i, ok := number[Of(ev)]
		require.True(t, ok)
		at := 8 * ev.Cookie
		require.EqualValues(t, seen[i], uint64(r.lmr.Bytes()[at])|uint64(r.lmr.Bytes()[at+1])<<8, "each endpoint's messages come in order")
		seen[i]++
		require.NoError(t, q.PostRecv(ev.Cookie, r.lmr.Segment(int(at), 8)))
	}
	close(stop)
	for range endpoints + 1 {
		require.NoError(t, <-errs)
	}
	available, outstanding := r.counts(q)
	assert.Equal(t, depth, available)
	assert.Equal(t, depth, outstanding)
}

// sendNumbers sends 0, 1, 2… from its own part of the region.
func (r *rig) sendNumbers(e *Endpoint, off, n int) error {
	shot := r.dto.NewOneShot()
	defer shot.Release()
	for i := range n {
		at := off + i%8*8
		r.lmr.Bytes()[at], r.lmr.Bytes()[at+1] = byte(i), byte(i>>8)
		d := []DTO{{Op: hw.OpSend, Segments: []mem.Segment{r.lmr.Segment(at, 8)}, OneShot: shot}}
		if k, err := e.PostBatch(d); err != nil || k != 1 {
			return fmt.Errorf("send %d: %w", i, err)
		}
		if ev, err := shot.Wait(r.t.Context()); err != nil || ev.Status != hw.StatusSuccess {
			return fmt.Errorf("send %d: %v %w", i, ev, err)
		}
	}
	return nil
}

func resizeUntil(stop chan struct{}, q *SRQ, depth int) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
			if err := q.Resize(depth + i%50); err != nil {
				return err
			}
		}
	}
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
	q := r.srq(SRQAttr{MaxRecvDTOs: 2})
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
	p, err := q.Query(SRQFieldOutstanding | SRQFieldLowWatermark)
	require.NoError(t, err)
	assert.Zero(t, p)
	for i := range uint64(2) {
		require.NoError(t, q.PostRecv(i, r.lmr.Segment(0, 8)))
	}
	require.NoError(t, r.adapter.Close())
	require.NoError(t, narrow.Close())
}
