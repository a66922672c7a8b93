package mem

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"godat/internal/memory"
	"godat/internal/yield"
)

// PoolSnapshot describes a pool of buffers. Snapshot looks at one after the other, so it may count those that
// change hands meanwhile as they were before or as they are then.
type PoolSnapshot struct {
	Name    string // as in String
	Buffers int
	Size    int // bytes of each

	Free    int // that nobody has
	Held    int // that the program has, or has lent out
	Sending int // that the program gave to operations under way
	Posted  int // that the pool's connection gave to operations, as receives
	Waiting int // calls that wait for a buffer
	// HeldAge is for how long at least the program has had the one of the held buffers that it has had
	// longest: since the first snapshot that saw it, where HeldAge is 0.
	HeldAge time.Duration

	// Holders says which calls took those that the program has, the most frequent first, of
	// a pool with Debug.
	Holders []Holder
}

// Holder is a place of the program that took buffers of a pool.
type Holder struct {
	Call    string // function, file and line
	Buffers int    // of its, that were not given back
}

// mostHolders is how many places a snapshot names.
const mostHolders = 8

// Snapshot describes the pool now. It disturbs nobody. That of a nil pool is empty.
func (p *BufferPool) Snapshot() PoolSnapshot {
	if p == nil {
		return PoolSnapshot{}
	}
	s, _ := p.count()
	s.Name, s.Buffers, s.Size = p.String(), len(p.buffers), p.size
	s.Waiting = int(p.waiters.n.Load() + p.waiting.n.Load())
	if s.Held > 0 {
		s.HeldAge = p.heldAge()
	}
	if p.watch != nil && s.Held > 0 {
		s.Holders = p.watch.holders(p)
	}
	return s
}

// count counts the pool's buffers by their owner, one after the other. turns changes whenever somebody gets
// a buffer.
func (p *BufferPool) count() (s PoolSnapshot, turns uint64) {
	for i := range p.buffers {
		yield.Point()
		o := &p.buffers[i].owner
		turns += o.Turn() // before its owner: see InUse
		switch o.Owner() {
		case memory.Pool:
			s.Free++
		case memory.Holder, memory.Lent:
			s.Held++
		case memory.Operation:
			if o.IsFromHolder() {
				s.Sending++
			} else {
				s.Posted++
			}
		}
	}
	return s, turns
}

// heldAge is for how long the program has had the buffer that it has had longest.
func (p *BufferPool) heldAge() (age time.Duration) {
	l := &p.looks
	l.mu.Lock()
	defer l.mu.Unlock()
	held, now := make(map[uint32]look), time.Now()
	for i := range p.buffers {
		o := &p.buffers[i].owner
		turn := o.Turn()
		if owner := o.Owner(); owner != memory.Holder && owner != memory.Lent {
			continue
		}
		seen, known := l.held[uint32(i)]
		if !known || seen.turn != turn {
			seen = look{turn, now}
		}
		held[uint32(i)], age = seen, max(age, now.Sub(seen.at))
	}
	l.held = held
	return age
}

// looks are the buffers that the last snapshot saw with the program, by index, and when one saw each first.
// Snapshots alone read the clock: a Get and a Put don't.
type looks struct {
	mu   sync.Mutex
	held map[uint32]look
}

type look struct {
	turn uint64 // of the buffer, which begins anew when it has been given back
	at   time.Time
}

// holders says which calls of the program took the buffers that it has.
func (w *watch) holders(p *BufferPool) []Holder {
	took := make(map[string]int)
	w.mu.Lock()
	for i := range p.buffers {
		if owner := p.buffers[i].owner.Owner(); owner == memory.Holder || owner == memory.Lent {
			took[w.traces[i].got.caller()]++
		}
	}
	w.mu.Unlock()
	calls := slices.SortedFunc(maps.Keys(took), func(a, b string) int {
		return cmp.Or(cmp.Compare(took[b], took[a]), cmp.Compare(a, b))
	})
	list := make([]Holder, 0, mostHolders)
	for _, call := range calls[:min(len(calls), mostHolders)] {
		list = append(list, Holder{Call: call, Buffers: took[call]})
	}
	return list
}

// caller names the call behind those of the library.
func (t *trace) caller() string {
	frames := runtime.CallersFrames(t.pcs[:t.n])
	for {
		f, more := frames.Next()
		own := strings.HasPrefix(f.Function, "godat/mem.(") || strings.HasPrefix(f.Function, "godat/runtime.(")
		if !own || !more {
			return fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line)
		}
	}
}

// Pools describes the pools of the domain that are complete and not closed, by name, but for
// those that are named elsewhere.
func (d *Domain) Pools(elsewhere map[*BufferPool]bool) (list []PoolSnapshot) {
	for _, l := range d.lmrs.all() {
		if p, ok := l.owner.(*BufferPool); ok && p.made.Load() && !elsewhere[p] {
			list = append(list, p.Snapshot())
		}
	}
	slices.SortFunc(list, func(a, b PoolSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
