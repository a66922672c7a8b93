package inspect

import (
	"slices"
	"time"
)

const (
	felt   = -1               // the rank of what a user feels
	unseen = 10 * time.Second // a look that is longer after the one before is a first look

	firstLook = "This is a first look: it sees what is wrong at this moment, and not yet what has waited since before it. " +
		"Whether calls, requests and buffers wait for long shows from the next look on, a second or more from now; this page renews itself."
)

// recentKey is something that is counted of an object.
type recentKey struct{ what, name string }

// growth is how much a count had grown at a look.
type growth struct {
	at time.Time
	n  uint64
}

// remember takes over what grew within the last minute. Of others nothing is kept.
func (f *finder) remember() {
	for i := range f.now.Owners {
		o := &f.now.Owners[i]
		o.take(before(f.last.Owners, o.Name, func(o *owner) string { return o.Name }), f.now.At)
	}
	f.now.lows = f.last.lows.with(f.now.At, [3]uint64{f.now.Process.Memory, uint64(f.now.Process.Goroutines), f.answers()})
	f.now.recent = make(map[recentKey][]growth)
	for key, all := range f.last.recent {
		i := slices.IndexFunc(all, func(g growth) bool { return f.now.At.Sub(g.at) < fresh })
		if i >= 0 {
			f.now.recent[key] = slices.Clip(all[i:])
		}
	}
}

// lately is by how much a count has grown within the last minute, given by how much since the last look. What came before
// a first look, or since one that is longer ago than that, may be of any time, and does not count.
func (f *finder) lately(what, name string, n uint64) (sum uint64) {
	key := recentKey{what, name}
	if n > 0 && f.now.At.Sub(f.last.At) < fresh {
		f.now.recent[key] = append(f.now.recent[key], growth{f.now.At, n})
	}
	for _, g := range f.now.recent[key] {
		sum += g.n
	}
	return sum
}
