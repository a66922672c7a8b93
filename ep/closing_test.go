package ep

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

// hookedDevice runs a test's hooks inside calls of the device.
type hookedDevice struct {
	hw.Device
	onRequest     func()            // before the owner gets a request; may be nil
	listening     func(hw.Listener) // before Listen returns; may be nil
	closeListener func() error      // before a listener closes; may be nil
	rejected      func()            // before a request is rejected; may be nil
}

func (d *hookedDevice) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	take := cfg.OnRequest
	cfg.OnRequest = func(r hw.Request) bool { return take(&hookedRequest{r, d}) }
	l, err := d.Device.Listen(cfg)
	if err == nil && d.listening != nil {
		d.listening(l)
	}
	return &hookedListener{l, d}, err
}

type hookedRequest struct {
	hw.Request
	dev *hookedDevice
}

func (r *hookedRequest) Private() ([]byte, bool) {
	if r.dev.onRequest != nil {
		r.dev.onRequest()
	}
	return r.Request.Private()
}

func (r *hookedRequest) Reject(private []byte) error {
	if r.dev.rejected != nil {
		r.dev.rejected()
	}
	return r.Request.Reject(private)
}

type hookedListener struct {
	hw.Listener
	dev *hookedDevice
}

func (l *hookedListener) Close() error {
	if l.dev.closeListener != nil {
		if err := l.dev.closeListener(); err != nil {
			return err
		}
	}
	return l.Listener.Close()
}

// stop is a place where a call stops until the test lets it continue.
type stop struct{ reached, on chan struct{} }

func newStop() *stop { return &stop{make(chan struct{}), make(chan struct{})} }

// here stops its caller; it is called once.
func (s *stop) here() {
	close(s.reached)
	<-s.on
}

// behind runs f, which must wait until s continues. It checks that f has not
// returned when all other goroutines are idle, lets s continue, and returns the
// result of f. One processor runs all of them, so that f gets its turns however busy
// the machine is.
func (s *stop) behind(t *testing.T, f func() error) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	done := make(chan error, 1)
	go func() { done <- f() }()
	for range 1000 {
		runtime.Gosched()
		select {
		case err := <-done:
			require.Fail(t, "it did not wait", "%v", err)
		default:
		}
	}
	close(s.on)
	return <-done
}

// closers make a service point of each kind, each on a dispatcher of its own.
var closers = map[string]func(r *rig) (io.Closer, uint64){
	"PSP": func(r *rig) (io.Closer, uint64) {
		p, err := r.adapter.NewPSP(PSPConfig{Dispatcher: r.cr})
		require.NoError(r.t, err)
		return p, p.Qual()
	},
	"PSP that makes endpoints": func(r *rig) (io.Closer, uint64) {
		p, err := r.adapter.NewPSP(PSPConfig{Dispatcher: r.cr, Flags: PSPProvider})
		require.NoError(r.t, err)
		return p, p.Qual()
	},
	"RSP": func(r *rig) (io.Closer, uint64) {
		p, err := r.adapter.NewRSP(RSPConfig{Endpoint: r.endpoint(nil), Dispatcher: r.cr})
		require.NoError(r.t, err)
		return p, p.Qual()
	},
	"CSP": func(r *rig) (io.Closer, uint64) {
		p, err := r.adapter.NewCSP(CSPConfig{Address: ":4711", Dispatcher: r.cr})
		require.NoError(r.t, err)
		return p, 4711
	},
}

func TestASecondCloserOfAServicePointWaitsForTheFirst(t *testing.T) {
	closeBehind(t, func(_ *rig, point io.Closer) error { return point.Close() })
}

func TestTheAdaptersCloseWaitsForAServicePointThatCloses(t *testing.T) {
	closeBehind(t, func(r *rig, _ io.Closer) error {
		err := r.adapter.Close()
		assert.Zero(t, r.adapter.Len())
		return err
	})
}

// closeBehind calls second while a service point closes, and requires that it waits.
func closeBehind(t *testing.T, second func(*rig, io.Closer) error) {
	for name, make := range closers {
		t.Run(name, func(t *testing.T) {
			dev := &hookedDevice{Device: loopDevice(t)}
			r := newRigOn(t, dev)
			point, _ := make(r)
			closing := newStop()
			dev.closeListener = func() error { closing.here(); return nil }
			first := goResult(point.Close)
			<-closing.reached
			dev.closeListener = nil
			require.NoError(t, closing.behind(t, func() error { return second(r, point) }))
			require.NoError(t, <-first)
			require.NoError(t, second(r, point))
		})
	}
}

func TestARequestOnItsWayInIsRejectedByTheAdaptersClose(t *testing.T) {
	for name, make := range closers {
		t.Run(name, func(t *testing.T) {
			dev := &hookedDevice{Device: loopDevice(t)}
			r := newRigOn(t, dev)
			_, qual := make(r)
			// The peer belongs to another adapter, so that this adapter's Close
			// does not close it.
			peer := newRig(t)
			coming := newStop()
			dev.onRequest = coming.here
			asks := goResult(func() error { return peer.endpoint(nil).Connect(ConnectConfig{Qual: qual}) })
			<-coming.reached
			require.NoError(t, coming.behind(t, r.adapter.Close))
			require.NoError(t, <-asks)
			assert.Equal(t, event.PeerRejected, peer.next(peer.conn).Number)
			assert.Zero(t, r.adapter.Len())
			assert.Empty(t, r.adapter.crs.list())
		})
	}
}

func TestTheAdaptersCloseWaitsForARequestThatIsBeingRejected(t *testing.T) {
	dev := &hookedDevice{Device: loopDevice(t)}
	r := newRigOn(t, dev)
	_, cr, _ := r.asked(r.endpoint(nil))
	rejecting := newStop()
	dev.rejected = rejecting.here
	first := goResult(func() error { return cr.Reject(nil) })
	<-rejecting.reached
	require.NoError(t, rejecting.behind(t, r.adapter.Close), "the endpoint was still the request's")
	require.NoError(t, <-first)
}

func TestAServicePointThatCantBeClosedMayBeClosedOnceMore(t *testing.T) {
	for name, make := range closers {
		t.Run(name, func(t *testing.T) {
			dev := &hookedDevice{Device: loopDevice(t)}
			r := newRigOn(t, dev)
			point, qual := make(r)
			failure := errors.New("the device is busy")
			dev.closeListener = func() error { return failure }
			require.ErrorIs(t, point.Close(), failure)
			peer := newRig(t)
			require.NoError(t, peer.endpoint(nil).Connect(ConnectConfig{Qual: qual}))
			assert.Equal(t, event.NonPeerRejected, peer.next(peer.conn).Number, "it hands out no requests")
			require.ErrorIs(t, r.adapter.Close(), failure)
			dev.closeListener = nil
			require.NoError(t, r.adapter.Close())
			require.NoError(t, point.Close())
			assert.Zero(t, r.adapter.Len())
		})
	}
}

func TestARequestBeforeItsServicePointIsMadeMayCloseThePoint(t *testing.T) {
	for name, make := range closers {
		t.Run(name, func(t *testing.T) {
			dev := &hookedDevice{Device: loopDevice(t)}
			r, peer := newRigOn(t, dev), newRig(t)
			require.NoError(t, r.psp.Close())
			var (
				source io.Closer
				closed <-chan error
			)
			dev.listening = func(l hw.Listener) {
				require.NoError(t, peer.endpoint(nil).Connect(ConnectConfig{Qual: l.Qual()}))
				source = r.next(r.cr).Source.(io.Closer)
				closed = goResult(func() error {
					if p, ok := source.(interface{ Qual() uint64 }); ok {
						assert.NotZero(t, p.Qual())
					}
					return source.Close()
				})
				takeTurns()
			}
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			point, _ := make(r)
			require.NoError(t, <-closed)
			assert.Same(t, point, source)
			assert.Empty(t, r.adapter.points.list())
		})
	}
}

func TestLenCountsAnEndpointThatARequestBringsWhileItsServicePointCloses(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r, peer := newRig(t), newRig(t)
	require.NoError(t, r.psp.Close())
	point, qual := closers["PSP that makes endpoints"](r)
	require.Equal(t, 1, r.adapter.Len())
	count := make(chan int, 1)
	r.adapter.srqs.mu.Lock() // Len waits behind what it has counted
	go func() { count <- r.adapter.Len() }()
	takeTurns()
	assert.NoError(t, peer.endpoint(nil).Connect(ConnectConfig{Qual: qual}))
	assert.NoError(t, point.Close())
	r.adapter.srqs.mu.Unlock()
	assert.NotZero(t, <-count, "there was a service point, then also an endpoint, and then the endpoint")
	assert.Equal(t, 1, r.adapter.Len())
}

func TestWhatIsNotListedAnyMoreIsCountedAsFreed(t *testing.T) {
	r := newRig(t)
	a := r.adapter
	e, q := r.endpoint(nil), r.srq(0, 0)
	for name, object := range map[string]struct {
		list  *sync.Mutex
		close func() error
		freed *counter
	}{
		"an endpoint":            {&a.eps.mu, e.Close, &a.counters.endpointsFreed},
		"a shared receive queue": {&a.srqs.mu, q.Close, &a.counters.srqsFreed},
		"a service point":        {&a.points.mu, r.psp.Close, &a.counters.pointsFreed},
	} {
		object.list.Lock()
		closed := goResult(object.close)
		assert.Eventually(t, func() bool { return object.freed.all() == 1 }, time.Minute, time.Millisecond, name)
		object.list.Unlock()
		require.NoError(t, <-closed)
	}
}

// takeTurns lets all other goroutines go on until they wait, on one processor.
func takeTurns() {
	for range 1000 {
		runtime.Gosched()
	}
}

func goResult(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}
