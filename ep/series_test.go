package ep

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// mute is a queue pair that takes all requests and does nothing.
type mute struct{ hw.Runner }

func (mute) PostSend(wrs []hw.SendWR) (int, error) { return len(wrs), nil }

func (mute) PostRun(_ hw.Op, _ hw.WRFlags, _ uint64, _ *hw.SGE, _ uintptr, n int, _ uint32, _ uint64) int {
	return n
}

// request is a request of a series: what the program posts, and what the provider says of it.
type request struct {
	name      string
	op        hw.Op
	size      int
	flags     hw.Flags
	elsewhere bool // it completes to a route
	heard     bool // it completes to a sink
	status    hw.Status
}

// The requests that differ in how their completions go. A failed one and an atomic never come
// alone, as hw.SeriesSink says.
var seriesRequests = []request{
	{name: "small", op: hw.OpWrite, size: 8},
	{name: "large", op: hw.OpRead, size: line.MaxKept},
	{name: "silent", op: hw.OpWrite, size: 8, flags: hw.Unsignalled},
	{name: "suppressed", op: hw.OpWrite, size: 8, flags: hw.Suppress},
	{name: "routed", op: hw.OpSend, size: 8, elsewhere: true},
	{name: "large routed", op: hw.OpRead, size: line.MaxKept, elsewhere: true},
	{name: "heard", op: hw.OpSend, size: 8, heard: true},
	{name: "invalidating", op: hw.OpSendInvalidate, size: 8, heard: true},
	{name: "atomic", op: hw.OpFetchAdd, size: 8},
	{name: "failed", op: hw.OpWrite, size: 8, status: hw.StatusRemoteAccess},
}

// The ways in which a provider completes a request.
const (
	withMore = iota // CompleteOne; more follow
	alone           // CompleteOne
	inArray         // Complete
	unheard         // not at all: a suppressed request that is not signaled
	manners
)

// completesBy reports whether a provider may complete the request that way.
func (q *request) completesBy(manner int) bool {
	switch manner {
	case withMore, alone:
		return q.op <= hw.OpRecv && q.status == hw.StatusSuccess
	case unheard:
		return q.flags&hw.Suppress != 0 && q.status == hw.StatusSuccess
	}
	return true
}

// seriesRig is an endpoint whose test completes its requests in place of the device, and its
// dispatcher with a route and a sink.
type seriesRig struct {
	*rig
	e     *Endpoint
	d     *evd.Dispatcher
	cno   *evd.CNO
	route *evd.Route
	next  uint64      // cookie and ticket of the next request
	seen  [2][]uint64 // what has come from the dispatcher and from the route in this series
}

const (
	routedCookie = 1 << 62
	heardCookie  = 1 << 61
)

func newSeriesRig(t *testing.T, mode evd.Mode) *seriesRig {
	r := &seriesRig{rig: newRig(t)}
	r.d = r.dispatcher(mode, 64)
	var err error
	if mode == evd.ModeQueue {
		r.cno, err = evd.NewCNO(evd.CNOConfig{})
		require.NoError(t, err)
		require.NoError(t, r.d.ModifyCNO(r.cno))
	}
	r.route, err = r.d.Route(routedCookie, routedCookie, 64)
	require.NoError(t, err)
	wiring(r.d).FuncRoute(heardCookie, heardCookie, func(any, hw.Status, uint64) {})
	r.e = r.endpointOf(Config{PZ: r.pz, Request: r.d, Conn: r.conn, Attr: &Attr{RequestFlags: hw.Unsignalled}})
	b := r.endpoint(nil)
	r.connect(r.e, b)
	qp := r.e.box.QP()
	r.e.box.SetQP(mute{qp.(hw.Runner)})
	t.Cleanup(func() {
		r.e.box.SetQP(qp)
		require.NoError(t, r.e.Close())
		require.NoError(t, b.Close())
		require.NoError(t, r.d.Close())
	})
	return r
}

// post posts a request, and returns its cookie.
func (r *seriesRig) post(q *request) (cookie uint64) {
	cookie = r.next
	r.next++
	if q.elsewhere {
		cookie |= routedCookie
	}
	if q.heard {
		cookie |= heardCookie
	}
	_, err := r.e.PostBatch([]DTO{{
		Op: q.op, Flags: q.flags, Cookie: cookie,
		Segment: r.lmr.Segment(0, q.size), Remote: r.lmr.Remote(0, q.size),
	}})
	require.NoError(r.t, err)
	return cookie
}

// complete completes the request of a ticket, as a provider does.
func (r *seriesRig) complete(q *request, manner int, ticket uint32) {
	s := &r.e.box.Requests
	id, n, op := r.e.box.Inside().ID(s, ticket), uint32(q.size), q.op
	if op == hw.OpSendInvalidate {
		op = hw.OpSend
	}
	switch manner {
	case withMore:
		s.CompleteOne(id, op, n, hw.WCMore)
	case alone:
		s.CompleteOne(id, op, n, 0)
	case inArray:
		s.Complete([]hw.WC{{ID: id, Op: op, Len: n, Status: q.status}})
	}
}

// look takes what the consumers see now, without a call that would flush it. Nothing tells a
// consumer of a ring but the CNO.
func (r *seriesRig) look() {
	take := func(to int, evs ...event.Event) {
		for i := range evs {
			r.seen[to] = append(r.seen[to], evs[i].Cookie)
		}
	}
	for more := true; more; {
		select {
		case ev := <-r.route.C():
			take(1, ev)
		case ev := <-r.d.C():
			take(0, ev)
		case b := <-r.d.Batches():
			take(0, b.Events()...)
			b.Release()
		default:
			more = false
		}
	}
	if r.cno == nil {
		return
	}
	if _, err := r.cno.Trigger(); err == nil {
		var buf [16]event.Event
		n, err := r.d.Dequeue(buf[:])
		require.NoError(r.t, err)
		take(0, buf[:n]...)
	}
}

// A series of completions ends with the first that does not say that more follow, or with
// Flush. Then the consumers see every event that notifies: of each dispatcher, whatever the
// completions were, in whatever order they came.
func TestASeriesOfCompletionsLeavesNothingUnseen(t *testing.T) {
	for _, mode := range []evd.Mode{evd.ModeQueue, evd.ModeChannel, evd.ModeBatch} {
		r := newSeriesRig(t, mode)
		var steps []step
		for i := range seriesRequests {
			for manner := range manners {
				if seriesRequests[i].completesBy(manner) {
					steps = append(steps, step{&seriesRequests[i], manner})
				}
			}
		}
		for _, first := range steps {
			for _, second := range steps {
				for _, third := range steps {
					r.series(first, second, third)
				}
			}
		}
	}
}

// step is a request and the manner of its completion.
type step struct {
	*request
	manner int
}

func (s step) String() string {
	return s.name + [manners]string{" more", " alone", " in an array", " unheard"}[s.manner]
}

// series posts the requests, completes them, and ends the series with Flush if the last
// completion has not.
func (r *seriesRig) series(steps ...step) {
	what := fmt.Sprint(r.d.Mode(), steps)
	var cookies [3]uint64
	first := uint32(r.next)
	for i, s := range steps {
		cookies[i] = r.post(s.request)
	}
	r.seen = [2][]uint64{}
	var want, due [2][]uint64 // all events so far, and those up to the last that notifies
	open := false
	for i, s := range steps {
		r.complete(s.request, s.manner, first+uint32(i))
		to := 0
		if s.elsewhere {
			to = 1
		}
		if !s.heard && s.flags&hw.Suppress == 0 {
			if want[to] = append(want[to], cookies[i]); s.flags&hw.Unsignalled == 0 {
				due[to] = want[to]
			}
		}
		if s.manner == unheard {
			continue
		}
		if open = s.manner == withMore; !open {
			r.check(what, want, due)
		}
	}
	if open {
		r.e.box.Requests.Flush()
		r.check(what, want, due)
	}
	r.d.Flush()
	r.look()
	if steps[len(steps)-1].manner == unheard { // until a later one completes
		r.series(step{&seriesRequests[0], inArray})
	}
}

// check compares what the consumers have seen with what they must have seen.
func (r *seriesRig) check(what string, want, due [2][]uint64) {
	r.look()
	for to := range want {
		n := len(r.seen[to])
		require.GreaterOrEqual(r.t, n, len(due[to]), "%s: an event has not come", what)
		require.LessOrEqual(r.t, n, len(want[to]), what)
		for i := range n {
			assert.Equal(r.t, want[to][i], r.seen[to][i], what)
		}
	}
}

// Before ESTABLISHED is announced the completions of a series wait, and whoever announces it delivers them.
func TestTheEndOfASeriesThatKeptNothingLeavesTheCompleterAlone(t *testing.T) {
	r := newSeriesRig(t, evd.ModeQueue)
	q := &r.e.box.Requests
	r.e.box.Inside().Completer(q).Acquire() // which panics if there is an owner, in a build with the race detector
	q.Flush()
	r.e.box.Inside().Completer(q).Release()
}
