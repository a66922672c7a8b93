package runtime

// minSweep is how many children an adapter remembers before it drops the closed ones.
const minSweep = 64

// children are the objects of one kind that were made on an adapter. Some of them may
// be closed. IA.mu guards them.
type children[T comparable] struct {
	live    func(T) bool
	all     map[T]struct{}
	sweepAt int
	made    uint64

	madeBefore, freedBefore uint64 // at the last reset of the counters
}

func newChildren[T comparable](live func(T) bool) children[T] {
	return children[T]{live: live, all: make(map[T]struct{}), sweepAt: minSweep}
}

func (c *children[T]) add(child T) {
	if len(c.all) >= c.sweepAt {
		c.sweepAt = max(minSweep, 2*c.count())
	}
	c.all[child] = struct{}{}
	c.made++
}

// count drops the closed children and counts the others.
func (c *children[T]) count() int {
	for child := range c.all {
		if !c.live(child) {
			delete(c.all, child)
		}
	}
	return len(c.all)
}

// list returns the children, some of which may be closed.
func (c *children[T]) list() []T {
	list := make([]T, 0, len(c.all))
	for child := range c.all {
		list = append(list, child)
	}
	return list
}
