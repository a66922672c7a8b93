package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

func TestTheSoftWatermarkIsReportedOnceForEachTimeItIsSet(t *testing.T) {
	r := newRig(t)
	async := r.dispatcher(evd.ModeQueue, 4)
	r.adapter.cfg.Async = async
	q := r.srq(64, 0)
	from, e := r.feeder(q, r.dto)
	burst := func(n int) { // the endpoint takes its receives together
		t.Helper()
		sends := make([]DTO, n)
		for i := range sends {
			require.NoError(t, q.PostRecv(1))
			sends[i] = DTO{Op: hw.OpSend, Flags: hw.Suppress}
		}
		_, err := from.PostBatch(sends)
		require.NoError(t, err)
		for range n {
			assert.Equal(t, hw.StatusSuccess, r.next(r.dto).Status)
		}
	}
	high := func() {
		t.Helper()
		ev := r.next(async)
		assert.Equal(t, event.AsyncEPBroken, ev.Number)
		source, why, ok := ev.Async()
		assert.True(t, ok)
		assert.Same(t, e, source)
		assert.EqualValues(t, 2, why)
		r.none(async)
	}
	burst(8)
	r.none(async)
	require.NoError(t, e.SetWatermark(5, NoWatermark))
	p, err := e.Query()
	require.NoError(t, err)
	assert.Equal(t, 5, p.Attr.SoftHighWatermark)
	burst(5)
	r.none(async) // 5 is not more than 5
	burst(6)
	high()
	burst(6)
	r.none(async) // once
	require.NoError(t, e.SetWatermark(3, NoWatermark))
	burst(6)
	high()
	require.NoError(t, e.SetWatermark(3, NoWatermark))
	require.NoError(t, e.SetWatermark(NoWatermark, NoWatermark))
	burst(6)
	r.none(async) // the bound was withdrawn
	require.ErrorIs(t, e.SetWatermark(-2, 0), hw.ErrInvalidParameter)
	require.ErrorIs(t, e.SetWatermark(0, -2), hw.ErrInvalidParameter)

	require.NoError(t, e.SetWatermark(NoWatermark, 4))
	burst(4)
	assert.Equal(t, Connected, e.State())
	burst(5)
	for range 2 {
		assert.Equal(t, event.Broken, r.next(r.conn).Number, "beyond the hard one")
	}
	require.NoError(t, r.adapter.Close())
	require.NoError(t, async.Close())
}

func TestTheSoftWatermarkIsAnAttribute(t *testing.T) {
	r := newRig(t)
	async := r.dispatcher(evd.ModeQueue, 4)
	r.adapter.cfg.Async = async
	q := r.srq(0, 0)
	e := r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Conn: r.conn, SRQ: q, Attr: &Attr{SoftHighWatermark: 9}})
	require.NoError(t, e.Modify(Param{Attr: Attr{SoftHighWatermark: 1}}, "SoftHighWatermark"))
	a := r.endpoint(nil)
	r.connect(a, e)
	for range 2 {
		require.NoError(t, q.PostRecv(1))
	}
	_, err := a.PostBatch([]DTO{{Op: hw.OpSend, Flags: hw.Suppress}, {Op: hw.OpSend, Flags: hw.Suppress}})
	require.NoError(t, err)
	source, _, _ := r.next(async).Async()
	assert.Same(t, e, source)
	require.NoError(t, r.adapter.Close())
	require.NoError(t, async.Close())
}

func TestReceivesAreCounted(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	count := func(e *Endpoint, want int) {
		t.Helper()
		allocated, span, err := e.RecvQuery()
		require.NoError(t, err)
		assert.Equal(t, want, allocated)
		assert.Equal(t, want, span)
	}
	count(b, 0)
	for range 3 {
		require.NoError(t, b.PostRecv(1, 0))
	}
	count(b, 3)
	require.NoError(t, a.PostSend(2, hw.Suppress))
	r.next(r.dto)
	count(b, 2)
	_, shared := r.feeder(r.srq(0, 0), r.dto)
	require.NoError(t, shared.srq.PostRecv(1))
	count(shared, 0)
	require.NoError(t, b.Close())
	_, _, err := b.RecvQuery()
	require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleEP})
}

// DAT's marker idiom: a program that has seen the completion of the last post, made
// in DISCONNECTED, has seen all completions, and may call Reset.
func TestTheMarkerIsTheLastToBeSeen(t *testing.T) {
	for _, shared := range []bool{true, false} {
		r := newRig(t)
		recv, request := r.dispatcher(evd.ModeQueue, 64), r.dispatcher(evd.ModeQueue, 64)
		if shared {
			request = recv
		}
		e := r.endpointOf(Config{PZ: r.pz, Recv: recv, Request: request, Conn: r.conn})
		r.connect(e, r.endpoint(nil))
		const each = 6
		for i := range each {
			require.NoError(t, e.PostRecv(uint64(i), 0, r.lmr.Segment(0, 8)))
			require.NoError(t, e.PostSend(uint64(100+i), 0, r.lmr.Segment(0, 8))) // the peer has no receive
		}
		require.NoError(t, e.Disconnect(Abrupt))
		require.Equal(t, event.Disconnected, r.next(r.conn).Number)
		const recvMarker, requestMarker = 1000, 2000
		require.NoError(t, e.PostRecv(recvMarker, 0))
		require.NoError(t, e.PostSend(requestMarker, 0))
		seen := map[uint64]int{}
		see := func(d *evd.Dispatcher, marker uint64) {
			for {
				ev := r.next(d)
				assert.Equal(t, hw.StatusFlushed, ev.Status)
				seen[ev.Cookie]++
				if ev.Cookie == marker {
					return
				}
			}
		}
		if _, done := seen[recvMarker]; !done {
			see(recv, recvMarker)
		}
		if _, done := seen[requestMarker]; !done {
			see(request, requestMarker)
		}
		assert.Len(t, seen, 2*each+2)
		r.none(recv)
		r.none(request)
		require.NoError(t, e.Reset())
		require.NoError(t, e.Close())
		r.none(recv)
		require.NoError(t, r.adapter.Close())
	}
}

// With EVD_THRESHOLD, the default, Wait returns when as many events have come as it
// asks for.
func TestTheThresholdIsTheWaiters(t *testing.T) {
	r := newRig(t)
	d := r.dispatcher(evd.ModeQueue, 64)
	e := r.endpointOf(Config{PZ: r.pz, Recv: d, Request: r.dto, Conn: r.conn, Attr: &Attr{
		RecvFlags: hw.EVDThreshold, RequestFlags: hw.EVDThreshold,
	}})
	p, err := e.Query()
	require.NoError(t, err)
	assert.Equal(t, hw.EVDThreshold, p.Attr.RecvFlags)
	assert.Equal(t, hw.EVDThreshold, p.Attr.RequestFlags)
	q, err := d.Query()
	require.NoError(t, err)
	assert.Equal(t, evd.ConfigThreshold, q.State.Config())
	a := r.accept(e)
	for i := range 3 {
		require.NoError(t, e.PostRecv(uint64(i), 0))
	}
	got := make(chan int)
	go func() {
		_, more, err := d.Wait(t.Context(), 3)
		assert.NoError(t, err)
		got <- more
	}()
	for i := range 3 {
		select {
		case <-got:
			t.Fatalf("woken by %d events", i)
		default:
		}
		require.NoError(t, a.PostSend(uint64(i), hw.Suppress))
	}
	assert.GreaterOrEqual(t, <-got, 2)
}

// The end of an endpoint's queue comes as a completion, but it is no receive and
// must not count against the watermarks.
func TestTheEndOfAnEndpointPassesNoWatermark(t *testing.T) {
	r := newRig(t)
	async := r.dispatcher(evd.ModeQueue, 4)
	r.adapter.cfg.Async = async
	_, e := r.feeder(r.srq(0, 0), r.dto)
	require.NoError(t, e.SetWatermark(0, NoWatermark))
	require.NoError(t, e.Disconnect(Abrupt))
	for range 2 {
		assert.Equal(t, event.Disconnected, r.next(r.conn).Number)
	}
	r.none(async)
	require.NoError(t, r.adapter.Close())
	require.NoError(t, async.Close())
}
