package runtime

// minSweep is how many children an adapter remembers before it looks which of
// them are closed.
const minSweep = 64

// children are objects of one kind that were made on an adapter, with some that
// the program has closed. IA.mu guards them.
type children[T comparable] struct {
	live    func(T) bool
	all     map[T]struct{}
	sweepAt int
	made    uint64

	madeBefore, freedBefore uint64 // when the counters were reset
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

// count counts those that are not closed, and forgets the others.
func (c *children[T]) count() int {
	for child := range c.all {
		if !c.live(child) {
			delete(c.all, child)
		}
	}
	return len(c.all)
}

// list are the children, some of which may be closed.
func (c *children[T]) list() []T {
	list := make([]T, 0, len(c.all))
	for child := range c.all {
		list = append(list, child)
	}
	return list
}
