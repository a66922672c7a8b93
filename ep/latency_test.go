package ep

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
)

// measured is how many requests the rig's dispatcher has measured.
func (r *rig) measured() uint64 {
	if s := r.dto.Snapshot().Latency; s != nil {
		return s.Count
	}
	return 0
}

// sends sends so many messages from a to b, and takes their events.
func (r *rig) sends(a, b *Endpoint, n int) {
	for range n {
		require.NoError(r.t, b.PostRecv(1, 0, r.lmr.Segment(0, 64)))
		require.NoError(r.t, a.PostSend(1, 0, r.lmr.Segment(64, 8)))
		r.next(r.dto)
		r.next(r.dto)
	}
}

func TestRequestsAreMeasuredWhileSomebodyMeasures(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	r.sends(a, b, 5)
	assert.Nil(t, r.dto.Snapshot().Latency)
	stop, other := r.adapter.MeasureLatency(door.Key{}), r.adapter.MeasureLatency(door.Key{})
	r.sends(a, b, 5)
	assert.EqualValues(t, 5, r.measured(), "the receives are not measured")
	stop()
	stop()
	r.sends(a, b, 5)
	assert.EqualValues(t, 10, r.measured(), "another one measures still")
	late, peer := r.pair(nil)
	r.sends(late, peer, 5)
	assert.EqualValues(t, 15, r.measured(), "of an endpoint that was made meanwhile")
	other()
	for _, e := range []*Endpoint{a, late} {
		posts, completions := e.box.Inside().ShortWays(&e.box.Requests)
		assert.True(t, posts, "the short way of a post is free")
		assert.True(t, completions, "and that of a completion")
	}
	r.sends(a, b, 5)
	assert.EqualValues(t, 15, r.measured())
}

// Every way to post comes to the place that writes the time: those that go together, those of
// several segments, and those of RDMA.
func TestEachWayToPostIsMeasured(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRecvDTOs: 64, MaxRequestDTOs: 64})
	defer r.adapter.MeasureLatency(door.Key{})()
	for range 20 {
		require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 64)))
	}
	seg := r.lmr.Segment(1024, 8)
	require.NoError(t, a.PostSend(1, 0, seg, seg))
	require.NoError(t, a.PostRDMAWrite(1, 0, r.lmr.Remote(2048, 8), seg))
	require.NoError(t, a.PostRDMARead(1, 0, r.lmr.Remote(2048, 8), seg))
	dtos := make([]DTO, 16)
	for i := range dtos {
		dtos[i] = DTO{Op: hw.OpSend, Segment: seg}
	}
	n, err := a.PostBatch(dtos)
	require.NoError(t, err)
	require.Equal(t, len(dtos), n)
	one := r.dto.NewOneShot()
	n, err = a.PostBatch([]DTO{{Op: hw.OpSend, Segment: seg, OneShot: one}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	<-one.C()
	assert.EqualValues(t, 20, r.measured())
	require.NoError(t, a.PostSend(1, hw.Suppress, seg))
	require.NoError(t, a.PostSend(1, hw.Suppress, seg, seg))
	r.await(func() bool { return b.Snapshot().Receives.Outstanding == 0 })
	assert.EqualValues(t, 20, r.measured(), "what is suppressed has no event")
	one.Release()
}

// A send that waits for its receive takes as long as the receive lets it wait.
func TestALatencyIsTheTimeFromThePostToTheCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a, b := r.pair(nil)
		stop := r.adapter.MeasureLatency(door.Key{})
		defer stop()
		require.NoError(t, a.PostSend(1, 0, r.lmr.Segment(64, 8)))
		time.Sleep(40 * time.Millisecond)
		require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 64)))
		r.next(r.dto)
		r.next(r.dto)
		s := r.dto.Snapshot().Latency
		require.NotNil(t, s)
		assert.InDelta(t, 40*time.Millisecond, s.Max, 1000)
		assert.Equal(t, s.Max, s.P50)
	})
}

func TestARequestCountsOnlyIfAllItsTimeWasMeasured(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	send := func() { require.NoError(t, a.PostSend(1, 0, r.lmr.Segment(64, 8))) }
	receive := func() {
		require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 64)))
		r.next(r.dto)
		r.next(r.dto)
	}
	send()
	stop := r.adapter.MeasureLatency(door.Key{})
	receive()
	assert.Zero(t, r.measured(), "it was posted before")
	send()
	stop()
	stop = r.adapter.MeasureLatency(door.Key{})
	defer func() { stop() }()
	receive()
	assert.Zero(t, r.measured(), "it was posted in an earlier measurement")
	send()
	require.NoError(t, a.Disconnect(Abrupt))
	r.await(func() bool { return a.Snapshot().Requests.Flushed == 1 })
	assert.Zero(t, r.measured(), "it was flushed")
}

// The time that a slot has from an earlier post is not the time of one that goes the short way:
// its poster has read the rules before.
func TestASlotForgetsTheTimeOfItsPost(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRecvDTOs: 8, MaxRequestDTOs: 1})
	defer r.adapter.MeasureLatency(door.Key{})()
	r.sends(a, b, 1)
	assert.Zero(t, a.box.Inside().Posted(&a.box.Requests, 0))
}

func TestAModifiedEndpointIsStillMeasured(t *testing.T) {
	r := newRig(t)
	a, b := r.endpoint(nil), r.endpoint(nil)
	other := r.dispatcher(evd.ModeQueue, 1024)
	stop := r.adapter.MeasureLatency(door.Key{})
	defer stop()
	require.NoError(t, a.Modify(Param{Request: other}, "Request"))
	r.connect(a, b)
	require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 64)))
	require.NoError(t, a.PostSend(1, 0, r.lmr.Segment(64, 8)))
	r.next(other)
	require.NotNil(t, other.Snapshot().Latency)
	assert.EqualValues(t, 1, other.Snapshot().Latency.Count)
	require.NoError(t, a.Close())
	require.NoError(t, other.Close())
}

func TestMeasuringAllocatesNothing(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	defer r.adapter.MeasureLatency(door.Key{})()
	into, from := r.lmr.Segment(0, 64), r.lmr.Segment(64, 8)
	var events [2]event.Event
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = b.PostRecv(1, 0, into)
		_ = a.PostSend(1, 0, from)
		_, _ = r.dto.Dequeue(events[:])
	}))
	assert.EqualValues(t, 101, r.measured())
}

// No completion of its own ends a suppressed request, so its time would stay in the slot.
func TestASuppressedRequestWritesNoTime(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	defer r.adapter.MeasureLatency(door.Key{})()
	require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 64)))
	require.NoError(t, a.PostSend(1, hw.Suppress, r.lmr.Segment(64, 8)))
	assert.Zero(t, a.box.Inside().Posted(&a.box.Requests, 0))
}
