package ep

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

func TestSendFillsTheReceiveAndBothComplete(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	copy(r.lmr.Bytes(), "hello, RDMA")
	require.NoError(t, b.PostRecv(7, 0, r.lmr.Segment(4096, 64)))
	require.NoError(t, a.PostSend(8, 0, r.lmr.Segment(0, 5), r.lmr.Segment(5, 6)))
	got := map[uint64]event.Event{}
	for range 2 {
		ev := r.next(r.dto)
		got[ev.Cookie] = ev
	}
	assert.Equal(t, event.Event{Number: event.DTOCompletion, Cookie: 7, Op: hw.OpRecv, Length: 11, Source: b}, got[7])
	assert.Equal(t, event.Event{Number: event.DTOCompletion, Cookie: 8, Op: hw.OpSend, Length: 11, Source: a}, got[8])
	assert.Equal(t, "hello, RDMA", string(r.lmr.Bytes()[4096:4107]))
}

func TestRDMAMovesBytesWithoutThePeer(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	want := bytes.Repeat([]byte{0xA5}, 1000)
	copy(r.lmr.Bytes(), want)
	require.NoError(t, a.PostRDMAWrite(1, 0, r.lmr.Remote(8192, 1000), r.lmr.Segment(0, 1000)))
	assert.Equal(t, event.Event{Number: event.DTOCompletion, Cookie: 1, Op: hw.OpWrite, Length: 1000, Source: a}, r.next(r.dto))
	assert.Equal(t, want, r.lmr.Bytes()[8192:9192])
	require.NoError(t, b.PostRDMARead(2, 0, r.lmr.Remote(8192, 500), r.lmr.Segment(16384, 300), r.lmr.Segment(20000, 700)))
	assert.Equal(t, event.Event{Number: event.DTOCompletion, Cookie: 2, Op: hw.OpRead, Length: 500, Source: b}, r.next(r.dto))
	assert.Equal(t, want[:300], r.lmr.Bytes()[16384:16684])
	assert.Equal(t, want[:200], r.lmr.Bytes()[20000:20200])
	assert.Zero(t, r.lmr.Bytes()[20200], "a read moves no more than its source has")
}

func TestABatchIsTakenInOrderAndAsFarAsThereIsRoom(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRequestDTOs: 70, MaxRecvDTOs: 96})
	recvs := make([]DTO, 96)
	for i := range recvs {
		recvs[i] = DTO{Cookie: uint64(1000 + i), Segments: []mem.Segment{r.lmr.Segment(0, 8)}}
	}
	n, err := b.PostRecvBatch(recvs)
	require.NoError(t, err)
	assert.Equal(t, 96, n)
	sends := make([]DTO, 96)
	for i := range sends {
		sends[i] = DTO{Op: hw.OpSend, Cookie: uint64(i), Segments: []mem.Segment{r.lmr.Segment(i, 8)}}
	}
	sends[80].Segments[0].Context = 0xBAD
	n, err = a.PostBatch(sends)
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	assert.Equal(t, 80, n, "loop completes while posting, so the depth of 70 is no limit here")
	var sent, received int
	for range 160 {
		ev := r.next(r.dto)
		require.NoError(t, ev.Err())
		if ev.Op == hw.OpSend {
			assert.Equal(t, uint64(sent), ev.Cookie)
			sent++
		} else {
			assert.Equal(t, uint64(1000+received), ev.Cookie)
			received++
		}
	}
	r.none(r.dto)
}

func TestAFullQueueIsRefusedAndLosesNothing(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRequestDTOs: 3})
	for i := range 3 { // the peer has no receive yet, so they stay outstanding
		require.NoError(t, a.PostSend(uint64(i), 0, r.lmr.Segment(0, 8)))
	}
	err := a.PostSend(3, 0, r.lmr.Segment(0, 8))
	require.ErrorIs(t, err, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceCredits})
	status, err := a.Status()
	require.NoError(t, err)
	assert.Equal(t, Status{State: Connected, RecvIdle: true, RequestIdle: false}, status)
	for i := range 3 {
		require.NoError(t, b.PostRecv(uint64(10+i), 0, r.lmr.Segment(0, 8)))
	}
	for range 6 {
		require.NoError(t, r.next(r.dto).Err())
	}
	require.NoError(t, b.PostRecv(20, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, a.PostSend(4, 0, r.lmr.Segment(0, 8)))
}

func TestNoEventRoomIsRefused(t *testing.T) {
	r := newRig(t)
	small := r.dispatcher(evd.ModeQueue, 1)
	a := r.endpointOf(Config{PZ: r.pz, Recv: small, Request: r.dto, Conn: r.conn, Attr: &Attr{MaxRecvDTOs: 1024}})
	var err error
	posted := 0
	for ; err == nil && posted < 1024; posted++ {
		err = a.PostRecv(uint64(posted), 0, r.lmr.Segment(0, 8))
	}
	require.ErrorIs(t, err, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceTEVD})
	assert.Greater(t, posted, 1)
	require.NoError(t, a.Close())
	for range posted - 1 {
		assert.Equal(t, hw.StatusFlushed, r.next(small).Status)
	}
	r.none(small)
	require.NoError(t, small.Close())
}

func TestSuppressedSendsNeverWedgeAndFlushesShow(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRequestDTOs: 8, MaxRecvDTOs: 64})
	for i := range 64 {
		require.NoError(t, b.PostRecv(uint64(i), 0, r.lmr.Segment(0, 8)))
	}
	for i := range 64 {
		require.NoError(t, a.PostSend(uint64(1000+i), hw.Suppress, r.lmr.Segment(0, 8)), "send %d", i)
	}
	for i := range 64 {
		ev := r.next(r.dto)
		require.Equal(t, uint64(i), ev.Cookie, "only receives complete")
	}
	r.none(r.dto)
	for i := range 5 { // the peer has no receive for these
		require.NoError(t, a.PostSend(uint64(2000+i), hw.Suppress, r.lmr.Segment(0, 8)))
	}
	require.NoError(t, a.Disconnect(Abrupt))
	for i := range 5 {
		ev := r.next(r.dto)
		assert.Equal(t, hw.StatusFlushed, ev.Status)
		assert.Equal(t, uint64(2000+i), ev.Cookie)
	}
}

func TestTheMarkerFollowsEverythingPostedBefore(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	for i := range 10 {
		require.NoError(t, a.PostRecv(uint64(i), 0, r.lmr.Segment(0, 8)))
		require.NoError(t, a.PostSend(uint64(100+i), 0, r.lmr.Segment(0, 8)))
	}
	require.NoError(t, b.Disconnect(Abrupt))
	for range 2 {
		assert.Equal(t, event.Disconnected, r.next(r.conn).Number)
	}
	require.NoError(t, a.PostRecv(99, 0))
	require.NoError(t, a.PostSend(199, 0))
	var recvs, sends []uint64
	for range 22 {
		ev := r.next(r.dto)
		assert.Equal(t, hw.StatusFlushed, ev.Status)
		if ev.Op == hw.OpRecv {
			recvs = append(recvs, ev.Cookie)
		} else {
			sends = append(sends, ev.Cookie)
		}
	}
	assert.Equal(t, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99}, recvs)
	assert.Equal(t, []uint64{100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 199}, sends)
	require.NoError(t, a.Reset())
	require.NoError(t, b.Reset())
	r.connect(a, b)
	require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, a.PostSend(2, 0, r.lmr.Segment(0, 8)))
	for range 2 {
		require.NoError(t, r.next(r.dto).Err())
	}
}

func TestPostersOfBothEndsAtOnceKeepTheirOrder(t *testing.T) {
	const posters = 4
	each := 2000
	if testing.Short() {
		each = 200
	}
	r := newRig(t)
	dispatcher := r.dispatcher(evd.ModeQueue, 4096)
	// Receives are posted when the scheduler runs their posters: on a busy machine
	// that may be later than a send waits by default.
	attr := &Attr{MaxRecvDTOs: 64, MaxRequestDTOs: 64, ReceiverNotReady: time.Hour}
	cfg := Config{PZ: r.pz, Recv: dispatcher, Request: dispatcher, Conn: r.conn, Attr: attr}
	a, b := r.endpointOf(cfg), r.endpointOf(cfg)
	r.connect(a, b)
	var wg sync.WaitGroup
	for p := range posters {
		for side, e := range []*Endpoint{a, b} {
			wg.Go(func() {
				base := uint64(side)<<56 | uint64(p)<<48
				for i := range uint64(each) {
					persist(t, func() error { return e.PostRecv(base|1<<40|i, 0, r.lmr.Segment(0, 64)) })
					persist(t, func() error { return e.PostSend(base|i, 0, r.lmr.Segment(0, 64)) })
				}
			})
		}
	}
	last := map[uint64]uint64{}
	for range 2 * 2 * posters * each {
		ev := r.next(dispatcher)
		require.NoError(t, ev.Err())
		stream, i := ev.Cookie>>40, ev.Cookie&(1<<40-1)
		require.Equal(t, last[stream], i, "stream %#x", stream)
		last[stream]++
	}
	wg.Wait()
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	r.none(dispatcher)
	require.NoError(t, dispatcher.Close())
}

// persist repeats a post until there is room.
func persist(t *testing.T, post func() error) {
	for {
		err := post()
		if err == nil {
			return
		}
		if !assert.ErrorIs(t, err, hw.ErrInsufficientResources) {
			return
		}
	}
}

func BenchmarkPair(bb *testing.B) {
	for _, size := range []int{8, 64, 4096} {
		bb.Run(fmt.Sprintf("delivery=poll/size=%d", size), func(bb *testing.B) {
			r := newRig(bb)
			a, b := r.pair(nil)
			from, into := r.lmr.Segment(0, size), r.lmr.Segment(8192, size)
			var buf [4]event.Event
			bb.ReportAllocs()
			for bb.Loop() {
				_ = b.PostRecv(1, 0, into)
				_ = a.PostSend(2, 0, from)
				for n := 0; n < 2; {
					m, _ := r.dto.Dequeue(buf[:])
					n += m
				}
			}
		})
	}
}

func TestAConsumerThatHasTheEventMayPostAgain(t *testing.T) {
	const rounds = 2000
	r := newRig(t)
	events := r.dispatcher(evd.ModeChannel, 64)
	attr := &Attr{MaxRequestDTOs: 1, MaxRecvDTOs: 1}
	cfg := Config{PZ: r.pz, Recv: events, Request: r.dto, Conn: r.conn, Attr: attr}
	a, b := r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: r.dto, Conn: r.conn, Attr: attr}), r.endpointOf(cfg)
	r.connect(a, b)
	require.NoError(t, b.PostRecv(0, 0, r.lmr.Segment(0, 8)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range rounds {
			<-events.C()
			if !assert.NoError(t, b.PostRecv(uint64(i), 0, r.lmr.Segment(0, 8)), "the only receive has just completed") {
				return
			}
		}
	}()
	for i := range rounds {
		require.NoError(t, a.PostSend(uint64(i), 0, r.lmr.Segment(0, 8)))
		require.NoError(t, r.next(r.dto).Err())
	}
	<-done
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.NoError(t, events.Close())
}

func TestRefusalsLeaveNoReservation(t *testing.T) {
	r := newRig(t)
	small := r.dispatcher(evd.ModeQueue, 4)
	a := r.endpointOf(Config{PZ: r.pz, Recv: small, Request: small, Conn: r.conn, Attr: &Attr{MaxRecvDTOs: 2}})
	for i := range 2 {
		require.NoError(t, a.PostRecv(uint64(i), 0, r.lmr.Segment(0, 8)))
	}
	for range 1000 {
		require.ErrorIs(t, a.PostRecv(9, 0, r.lmr.Segment(0, 8)), &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceCredits})
		n, err := a.PostRecvBatch([]DTO{{Segments: []mem.Segment{r.lmr.Segment(0, 8)}}, {}})
		require.Zero(t, n)
		require.ErrorIs(t, err, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceCredits})
	}
	b := r.endpointOf(Config{PZ: r.pz, Recv: small, Conn: r.conn})
	for i := range 2 {
		require.NoError(t, b.PostRecv(uint64(i), 0, r.lmr.Segment(0, 8)), "the dispatcher still has the room")
	}
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.NoError(t, small.Close())
}

func TestSuppressedSendsNeverUseUpTheDispatcher(t *testing.T) {
	r := newRig(t)
	small := r.dispatcher(evd.ModeQueue, 8)
	a := r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: small, Conn: r.conn, Attr: &Attr{MaxRequestDTOs: 4}})
	b := r.endpoint(&Attr{MaxRecvDTOs: 64})
	r.connect(a, b)
	for i := range 64 {
		require.NoError(t, b.PostRecv(uint64(i), 0, r.lmr.Segment(0, 8)))
		require.NoError(t, a.PostSend(uint64(i), hw.Suppress, r.lmr.Segment(0, 8)))
	}
	for range 16 { // sends that wait for receives, and then complete together
		for i := range 4 {
			require.NoError(t, a.PostSend(uint64(i), hw.Suppress, r.lmr.Segment(0, 8), r.lmr.Segment(8, 8)))
		}
		_, err := b.PostRecvBatch(slices.Repeat([]DTO{{Segment: r.lmr.Segment(0, 16)}}, 4))
		require.NoError(t, err)
	}
	r.none(small)
	require.NoError(t, a.Close())
	require.NoError(t, small.Close())
}

func TestSuppressedRequestsGiveTheirRoomBack(t *testing.T) {
	r := newRig(t)
	few := r.dispatcher(evd.ModeQueue, 8)
	a, b := r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: few, Conn: r.conn}), r.endpoint(nil)
	r.connect(a, b)
	for range 5 {
		for range 3 {
			require.NoError(t, a.PostRDMAWrite(1, hw.Suppress, r.lmr.Remote(0, 8), r.lmr.Segment(64, 8)))
		}
		require.NoError(t, a.PostRDMAWrite(2, 0, r.lmr.Remote(0, 8), r.lmr.Segment(64, 8)))
		require.Equal(t, uint64(2), r.next(few).Cookie)
	}
	r.finish(a, few)
}
