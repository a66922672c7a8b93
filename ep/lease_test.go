package ep

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw/event"
	"godat/internal/owner"
	"godat/internal/yield"
)

// lenders are three connected endpoints whose requests complete to one dispatcher.
type lenders struct {
	r    *rig
	d    *evd.Dispatcher
	ends [3]*Endpoint
	all  []*Endpoint
}

const lenderLen = 128

func newLenders(r *rig) *lenders {
	l := &lenders{r: r, d: r.dispatcher(evd.ModeQueue, lenderLen)}
	for i := range l.ends {
		peer := r.endpoint(nil)
		l.ends[i] = r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: l.d, Conn: r.conn, Attr: &Attr{MaxRecvDTOs: 32}})
		r.connect(l.ends[i], peer)
		l.all = append(l.all, l.ends[i], peer)
	}
	return l
}

// post posts n requests to an endpoint, and returns how many were taken.
func (l *lenders) post(i, n int) (taken int) {
	for ; taken < n; taken++ {
		from, to := l.r.lmr.Segment(0, 8), l.r.lmr.Remote(8, 8)
		if l.ends[i].PostRDMAWrite(1, 0, to, from) != nil {
			break
		}
	}
	return taken
}

// lease posts until the endpoint has leased places, and takes the events.
func (l *lenders) lease(i int) {
	l.posts(i, leaseAt+1)
	l.r.takeEvents(l.d, leaseAt+1)
	require.EqualValues(l.r.t, leaseSize, l.leased(i))
}

func (l *lenders) posts(i, n int) { require.Equal(l.r.t, n, l.post(i, n)) }

func (l *lenders) leased(i int) uint64 {
	return l.ends[i].box.token.Load() >> (requestShift - placeBits) & placeMask
}

// close closes everything, and finds that no place is lost.
func (l *lenders) close() {
	for _, e := range l.all {
		require.NoError(l.r.t, e.Close())
		assert.Zero(l.r.t, e.box.token.Load()>>(requestShift-placeBits)&placeMask)
	}
	l.r.drop(l.r.conn)
	require.NoError(l.r.t, l.d.Close())
}

// What an endpoint has leased and does not use is there for the others' posts: there are
// exactly as many places as the dispatcher has.
func TestAnIdleEndpointKeepsNoPlaceFromOthers(t *testing.T) {
	l := newLenders(newRig(t))
	l.lease(0)
	l.posts(0, 3)
	assert.Equal(t, lenderLen-3, l.post(1, lenderLen))
	assert.Zero(t, l.leased(0))
	assert.Zero(t, l.post(0, 1))
	assert.Zero(t, l.post(2, 1))
	l.r.takeEvents(l.d, lenderLen)
	l.posts(0, lenderLen)
	l.r.takeEvents(l.d, lenderLen)
	l.close()
}

// A dispatcher lends while half of it remains free, so that those that share a short one
// do not take the places from each other.
func TestADispatcherThatIsHalfFullLendsNoPlaces(t *testing.T) {
	l := newLenders(newRig(t))
	l.posts(0, leaseAt)
	l.posts(1, lenderLen/2-leaseSize-leaseAt)
	l.posts(0, 1) // one more than half are taken then
	assert.Zero(t, l.leased(0))
	l.r.takeEvents(l.d, 1)
	l.posts(0, leaseAt+1)
	assert.Zero(t, l.leased(0))
	l.r.takeEvents(l.d, lenderLen/2-leaseSize+leaseAt+1)
	l.lease(0)
	l.close()
}

// The places are given back when the connection ends, whoever ends it.
func TestADisconnectedEndpointHasLeasedNothing(t *testing.T) {
	r := newRig(t)
	for _, by := range []int{0, 1} { // the endpoint itself, its peer
		for _, how := range []CloseFlags{Graceful, Abrupt} {
			l := newLenders(r)
			l.lease(0)
			require.NoError(t, l.all[by].Disconnect(how))
			r.takeEvents(r.conn, 2)
			assert.Zero(t, l.leased(0))
			reserved, _ := wiring(l.d).Main().Places()
			assert.Zero(t, reserved)
			assert.Nil(t, l.ends[0].box.requests.lender.Load())
			l.close()
		}
	}
}

// A post whose event goes elsewhere takes a place there.
func TestAPostToARouteTakesNoPlaceOfTheQueueThatLends(t *testing.T) {
	l := newLenders(newRig(t))
	l.lease(0)
	route, err := l.d.Route(1<<40, 1<<40, 4)
	require.NoError(t, err)
	for range 4 {
		require.NoError(t, l.ends[0].PostRDMAWrite(1<<40, 0, l.r.lmr.Remote(8, 8), l.r.lmr.Segment(0, 8)))
	}
	assert.EqualValues(t, leaseSize, l.leased(0))
	for range 4 {
		<-route.C()
	}
	route.Close()
	_, open := <-route.C()
	assert.False(t, open)
	l.close()
}

func TestAReceiveForARouteTakesNoPlaceOfTheQueueThatLends(t *testing.T) {
	l := newLenders(newRig(t))
	recvs := func(n int, cookie uint64) {
		for range n {
			require.NoError(t, l.ends[0].PostRecv(cookie, 0, l.r.lmr.Segment(0, 8)))
		}
	}
	leased := func() uint64 { return l.ends[0].box.token.Load() & placeMask }
	recvs(leaseAt+1, 1)
	require.EqualValues(t, leaseSize, leased())
	route, err := l.r.dto.Route(1<<40, 1<<40, 4)
	require.NoError(t, err)
	recvs(4, 1<<40)
	assert.EqualValues(t, leaseSize, leased())
	recvs(4, 1)
	assert.EqualValues(t, leaseSize-4, leased())
	l.close()
	assert.Zero(t, leased())
	for range 4 {
		<-route.C()
	}
	route.Close()
	l.r.drop(l.r.dto)
}

// Two posts want the last place that is leased; one of them takes its own.
func TestTheLastLeasedPlaceIsTakenOnce(t *testing.T) {
	r := newRig(t)
	yield.Interleave(func() (first, second, check func()) {
		l := newLenders(r)
		l.lease(0)
		l.posts(0, leaseSize-1)
		require.EqualValues(t, 1, l.leased(0))
		post := func() { l.posts(0, 1) }
		return post, post, func() {
			w := l.ends[0].box.token.Load()
			require.EqualValues(t, leaseAt+1+leaseSize+1, l.ends[0].box.requests.tail(w))
			r.takeEvents(l.d, leaseSize+1)
			l.close()
		}
	})
}

// beside lets an endpoint post so many requests in another goroutine, at a point of a
// call, and waits some time for the end of that. The function that it returns tells how
// many were taken.
func (l *lenders) beside(i, n int) (begin func(), taken func() int) {
	done := make(chan int, 1)
	begin = func() {
		go func() { done <- l.post(i, n) }()
		for range 500 { // the goroutine may have to wait for the caller
			if len(done) == 0 {
				runtime.Gosched()
			}
		}
	}
	return begin, func() int { return <-done }
}

// An endpoint leases places; at each point another one posts as much as there is room for,
// or the same one posts once more.
func TestNoPostMissesPlacesOnTheirWayToALessee(t *testing.T) {
	r := newRig(t)
	for beside, n := range []int{1, lenderLen - 1} {
		yield.Interleave(func() (first, second, check func()) {
			l := newLenders(r)
			l.posts(0, leaseAt)
			r.takeEvents(l.d, leaseAt)
			second, taken := l.beside(beside, n)
			first = func() { l.posts(0, 1) }
			check = func() {
				require.Equal(t, n, taken(), "all but the place of the first post")
				r.takeEvents(l.d, n+1)
				l.close()
			}
			return first, second, check
		})
	}
}

// A poster that finds no room has an idle endpoint give back its places; at each point
// another poster looks for room, or the idle endpoint's connection ends.
func TestNoPostMissesPlacesOnTheirWayBack(t *testing.T) {
	r := newRig(t)
	for name, first := range map[string]func(*lenders){
		"for another poster":             func(l *lenders) { l.posts(1, 1) },
		"at the end of their connection": func(l *lenders) { _ = l.ends[0].Disconnect(Abrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			yield.Interleave(func() (_, _, check func()) {
				l := newLenders(r)
				l.lease(0)
				l.posts(1, lenderLen-leaseSize)
				require.EqualValues(t, leaseSize, l.leased(0))
				second, taken := l.beside(2, 1)
				check = func() {
					require.Equal(t, 1, taken())
					r.takeEvents(l.d, lenderLen-leaseSize+1)
					l.close()
				}
				return func() { first(l) }, second, check
			})
		})
	}
}

// The holder clears the marks of published slots. They would mean the same again 2^24
// tickets later, when a poster has the ticket and has not filled the slot.
func TestASlotIsNotPublishedOnceItsPostHasBeenTaken(t *testing.T) {
	r := newRig(t)
	a, all, m := meddled(r)
	m.meddle = func() {
		for i := range uint64(3) {
			r.write(a, 2+i)
		}
	}
	r.write(a, 1)
	r.takeEvents(all, 4)
	for i := range a.box.requests.slots {
		assert.Zero(t, a.box.requests.slots[i].seq.Load(), i)
	}
	require.NoError(t, a.Close())
	r.drop(all)
	require.NoError(t, all.Close())
}

// Posters that share a dispatcher leave each other room: each has no more requests and events
// than its share. So none is refused, whoever has leased what.
func TestPostersThatKeepToTheirSharesAreNotRefused(t *testing.T) {
	for _, others := range []int{1, 2} {
		l := newLenders(newRig(t))
		share := lenderLen / (others + 1)
		rounds := 200 * lenderLen
		if testing.Short() || owner.Enabled {
			rounds = 20 * lenderLen
		}
		var posters sync.WaitGroup
		var taken [3]atomic.Int64
		var refused atomic.Int64
		for i := range others + 1 {
			posters.Go(func() {
				for n := range rounds {
					for n-int(taken[i].Load()) >= share {
						runtime.Gosched()
					}
					if l.ends[i].PostRDMAWrite(uint64(i), 0, l.r.lmr.Remote(8, 8), l.r.lmr.Segment(0, 8)) != nil {
						refused.Add(1)
						taken[i].Add(1)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { posters.Wait(); close(done) }()
		var buf [32]event.Event
		for open := true; open; {
			select {
			case <-done:
				open = false
			default:
			}
			n, err := l.d.Dequeue(buf[:])
			require.NoError(t, err)
			for _, ev := range buf[:n] {
				taken[ev.Cookie].Add(1)
			}
			if n == 0 {
				runtime.Gosched()
			}
			open = open || n > 0
		}
		assert.Zero(t, refused.Load())
		l.close()
	}
}
