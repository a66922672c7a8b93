package ep

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"godat/hw"
	"godat/hw/event"
)

const (
	lastEnds = 64  // ends that an adapter remembers in whole: orderly ones, and others
	mostEnds = 256 // kinds of ends that it counts apart: a peer chooses the code of a Terminate
)

// ends counts how connections ended, and remembers the last ones.
type ends struct {
	mu     sync.Mutex
	counts map[endKind]uint64
	last   []end // the oldest first
}

// endKind is what ends are counted by.
type endKind struct {
	number event.Number // 0: the endpoint was closed
	layer  hw.Layer
	code   int
}

// end is one connection that ended, or one attempt.
type end struct {
	endKind
	at            time.Time
	name, owner   string
	cause         *hw.Cause
	local, remote address
	story         []StoryLine
}

// note notes an end.
func (n *ends) note(one end) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.counts == nil {
		n.counts = make(map[endKind]uint64)
	}
	kind := one.endKind
	if _, known := n.counts[kind]; !known && len(n.counts) >= mostEnds {
		kind.code = -1
	}
	n.counts[kind]++
	if n.last = append(n.last, one); len(n.last) > lastEnds {
		n.forget()
	}
}

// forget forgets the oldest end of those of which there are more: of the orderly ones, or of the others. So many orderly
// ends do not hide a break.
func (n *ends) forget() {
	orderly := 0
	for i := range n.last {
		if n.last[i].isOrderly() {
			orderly++
		}
	}
	more := orderly > lastEnds/2
	at := slices.IndexFunc(n.last, func(e end) bool { return e.isOrderly() == more })
	n.last = slices.Delete(n.last, at, at+1)
}

// isOrderly reports whether an end of the connection was asked for.
func (k endKind) isOrderly() bool { return k.number == 0 || k.number == event.Disconnected }

// EndCount says how many connections, and attempts, ended in one way.
type EndCount struct {
	Event string // as [event.Number] names it; CLOSED: the endpoint was closed
	Layer string // of the cause, see [hw.Cause]
	Code  int    // of the cause; -1 stands for those that came when 256 codes were counted
	Count uint64
}

// EndSnapshot is one connection that ended, or one attempt.
type EndSnapshot struct {
	At            time.Time
	Name          string // of the endpoint
	Owner         string // the connection whose endpoint it was; empty for the program's own
	Event         string // see EndCount
	Cause         *CauseSnapshot
	Local, Remote string
	Story         []StoryLine // what led to the end
}

func (k endKind) event() string {
	if k.number == 0 {
		return "CLOSED"
	}
	return k.number.String()
}

// snapshot returns how connections ended, and the last of them, the oldest first.
func (n *ends) snapshot() (counts []EndCount, last []EndSnapshot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for kind, count := range n.counts {
		counts = append(counts, EndCount{Event: kind.event(), Layer: kind.layer.String(), Code: kind.code, Count: count})
	}
	slices.SortFunc(counts, func(a, b EndCount) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Code, b.Code))
	})
	for i := range n.last {
		one := &n.last[i]
		last = append(last, EndSnapshot{
			At: one.at, Name: one.name, Owner: one.owner, Event: one.event(), Cause: describeCause(one.cause),
			Local: one.local.String(), Remote: one.remote.String(), Story: one.story,
		})
	}
	return counts, last
}
