package ep

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
)

// A worker does what a poster leaves to it, although no goroutine posts or kicks the
// step any more.
func TestPostsBeyondTheBudgetAreLeftToAWorker(t *testing.T) {
	r := newRig(t)
	all := r.dispatcher(evd.ModeQueue, 1024)
	a, b := r.endpointOf(Config{PZ: r.pz, Recv: all, Request: all, Conn: r.conn, Attr: &Attr{MaxRequestDTOs: 4 * line.Budget}}), r.endpoint(nil)
	r.connect(a, b)
	a.box.SetQP(&meddler{QP: a.box.QP(), meddle: func() {
		for i := range uint64(3 * line.Budget) {
			require.NoError(t, a.PostRDMAWrite(1+i, 0, r.lmr.Remote(0, 8), r.lmr.Segment(64, 8)))
		}
	}})
	r.write(a, 0)
	for i := range uint64(1 + 3*line.Budget) {
		require.Equal(t, i, r.next(all).Cookie)
	}
	r.finish(a, all)
}

// The workers end with the adapter, so a poster leaves nothing of a closed endpoint
// to them.
func TestPostsThatRaceCloseAreFlushedByTheirPoster(t *testing.T) {
	r := newRig(t)
	all := r.dispatcher(evd.ModeQueue, 1024)
	a, b := r.endpointOf(Config{PZ: r.pz, Recv: all, Request: all, Conn: r.conn, Attr: &Attr{MaxRequestDTOs: 4 * line.Budget}}), r.endpoint(nil)
	r.connect(a, b)
	require.NoError(t, a.Close())
	// These posts were checked before Close, and get their tickets after it.
	q, posts := &a.box.Requests, uint32(3*line.Budget)
	require.True(t, wiring(all).Main().Reserve(int(posts)))
	ticket, _, mine := a.box.Inside().Claim(q)
	require.True(t, mine)
	for range posts - 1 {
		_, ok, _ := a.box.Inside().Claim(q)
		require.True(t, ok)
	}
	for i := range posts {
		a.box.Inside().Fill(q, (ticket+i)&line.TicketMask, hw.OpWrite, uint64(i), wiring(all).Main())
	}
	a.box.Inside().Submit(q, ticket, posts, mine)
	for i := range uint64(posts) {
		ev := r.next(all)
		require.Equal(t, i, ev.Cookie)
		require.Equal(t, hw.StatusFlushed, ev.Status)
	}
	r.finish(a, all)
}

// One endpoint never runs out of posts, and yet the only worker serves another.
func TestAWorkerServesEndpointsInTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // an adapter has a worker for each processor
	r := newRig(t)
	busy, _, enough := r.busy()
	r.write(busy, 0) // returns, because a worker goes on

	all := r.dispatcher(evd.ModeQueue, 1024)
	a := r.endpointOf(Config{PZ: r.pz, Recv: all, Request: all, Conn: r.conn, Attr: &Attr{MaxRequestDTOs: 4 * line.Budget}})
	r.connect(a, r.endpoint(nil))
	a.box.SetQP(&meddler{QP: a.box.QP(), meddle: func() {
		for i := range uint64(3 * line.Budget) {
			require.NoError(t, a.PostRDMAWrite(1+i, 0, r.lmr.Remote(0, 8), r.lmr.Segment(64, 8)))
		}
	}})
	r.write(a, 0)
	for i := range uint64(1 + 3*line.Budget) {
		require.Equal(t, i, r.next(all).Cookie)
	}
	enough.Store(true)
	r.finish(a, all)
}

func TestCloseWaitsForAnAlarmThatIsGoingOff(t *testing.T) {
	r := newRig(t)
	ringing := newStop()
	r.adapter.alarms.Add(1)
	go func() {
		<-ringing.on
		r.adapter.alarms.Done()
	}()
	require.NoError(t, ringing.behind(t, r.adapter.Close))
}
