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

// lessees are the lessees of a dispatcher.
type lessees struct {
	list atomic.Pointer[[]Lessee] // nil: none
	mu   sync.Mutex               // held by writers of list
}

// maxLessees bounds what a poster does that finds no room.
const maxLessees = 8

// AddLessee makes l a lessee. It reports false if the dispatcher lends no places: because
// its queue is of a kind that does not, or because it has lessees enough.
func (d *Dispatcher) AddLessee(l Lessee) bool {
	q := &d.main
	if d.front != nil || q.kind != KindRing && q.kind != KindChannel {
		return false
	}
	d.lessees.mu.Lock()
	defer d.lessees.mu.Unlock()
	all := d.lessees.all()
	if len(all) >= maxLessees {
		return false
	}
	all = append(slices.Clone(all), l)
	d.lessees.list.Store(&all)
	return true
}

// RemoveLessee undoes AddLessee of the dispatcher whose main queue q is. The lessee has
// given back its places before, and gets no others.
func (q *Queue) RemoveLessee(l Lessee) {
	s := &q.d.lessees
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(s.all()), func(o Lessee) bool { return o == l })
	if len(all) == 0 {
		s.list.Store(nil)
	} else {
		s.list.Store(&all)
	}
}

func (s *lessees) all() []Lessee {
	if all := s.list.Load(); all != nil {
		return *all
	}
	return nil
}

// Lend reserves n places for a lessee of the queue. It lends only while half of all places
// remain free, so that the lessees of a short queue don't take them from each other.
func (q *Queue) Lend(n int) bool {
	p := &q.places
	r := p.reserved.Load()
	if r >= closedBit {
		return false
	}
	yield.Point()
	free := q.freed(p.allDone())
	if r-free+uint64(n) > p.limit.Load()/2 || !p.reserved.CompareAndSwap(r, r+uint64(n)) {
		return false
	}
	p.seen.Store(free)
	return true
}

// reclaim has the lessees of the queue give back what they have.
func (q *Queue) reclaim() {
	if q != &q.d.main {
		return
	}
	for _, l := range q.d.lessees.all() {
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
