package delivery

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"godat/internal/yield"
)

// A Lessee has reserved places of a dispatcher's main queue ahead of its posts. Any
// goroutine may call its methods.
//
// A poster that finds no room has the lessees give back what they have. Places that were
// reserved and are not with the lessee yet, or were and are not given back yet, would
// escape it; so it waits for them. It refuses its post only if, after it had counted the
// places, each lessee was settled, then gave back none, and was settled again, while no
// place was reserved or given back. Then all places have been operations' or events' at
// one moment: a lessee that was settled gets places only by a reservation.
type Lessee interface {
	// GiveBack gives back the places that the lessee has at the moment.
	GiveBack()
	// Settled reports whether no places are on their way to the lessee or back. On their
	// way nothing blocks them.
	Settled() bool
}

// Lessees are the lessees of a dispatcher.
type Lessees struct {
	q    *Queue                   // the dispatcher's main one; immutable
	list atomic.Pointer[[]Lessee] // nil: none
	mu   sync.Mutex               // held by writers of list
}

// Lessees returns the lessees of the dispatcher that the queue belongs to.
func (q *Queue) Lessees() *Lessees { return &q.d.lessees }

// maxLessees bounds what a poster does that finds no room.
const maxLessees = 8

// Add makes l a lessee. It reports false if the dispatcher lends no places: because
// its queue is of a kind that does not, or because it has lessees enough.
func (s *Lessees) Add(l Lessee) bool {
	if s.q.d.front != nil || s.q.kind != KindRing && s.q.kind != KindChannel {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all()
	if len(all) >= maxLessees {
		return false
	}
	all = append(slices.Clone(all), l)
	s.list.Store(&all)
	return true
}

// Remove undoes Add. The lessee has given back its places before, and gets no others.
func (s *Lessees) Remove(l Lessee) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(s.all()), func(o Lessee) bool { return o == l })
	if len(all) == 0 {
		s.list.Store(nil)
	} else {
		s.list.Store(&all)
	}
}

func (s *Lessees) all() []Lessee {
	if all := s.list.Load(); all != nil {
		return *all
	}
	return nil
}

// Lend reserves n places of the dispatcher's main queue for a lessee. It lends only while half of all places
// remain free, so that the lessees of a short queue don't take them from each other.
func (s *Lessees) Lend(n int) bool {
	p := &s.q.places
	r := p.reserved.Load()
	if r >= closedBit {
		return false
	}
	yield.Point()
	free := s.q.freed(p.allDone())
	if r-free+uint64(n) > p.limit.Load()/2 || !p.reserved.CompareAndSwap(r, r+uint64(n)) {
		return false
	}
	p.seen.Store(free)
	return true
}

// reclaim has the lessees give back what they have of q, which lends nothing unless it
// is the main queue.
func (s *Lessees) reclaim(q *Queue) {
	if q != s.q {
		return
	}
	for _, l := range s.all() {
		settle(l)
		l.GiveBack()
		settle(l)
	}
}

// settle waits until no places are on their way to the lessee or back. That takes some
// instructions of another goroutine.
func settle(l Lessee) {
	for !l.Settled() {
		runtime.Gosched()
	}
}
