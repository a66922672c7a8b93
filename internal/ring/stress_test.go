package ring

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// item names its producer and its place in what that one sends; wide makes a
// torn copy show.
type item struct {
	producer, n int
	wide        [4]int
}

func newItem(producer, n int) item { return item{producer, n, [4]int{n, n, n, n}} }

func atEach(t *testing.T, procs []int, f func(t *testing.T)) {
	for _, p := range procs {
		t.Run(fmt.Sprintf("procs=%d", p), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
			f(t)
		})
	}
}

// expect checks that each producer's items come in order, each once.
type expect struct {
	t    *testing.T
	next []int
	left int
}

func (e *expect) got(it item) {
	require.Equal(e.t, newItem(it.producer, e.next[it.producer]), it)
	e.next[it.producer]++
	e.left--
}

// owned is a Reserved ring whose owner counts the places as a dispatcher does.
type owned struct {
	ring   *Reserved[item]
	places atomic.Int64
}

// reserve takes up to n places.
func (o *owned) reserve(n int) int {
	for {
		free := o.places.Load()
		k := min(int64(n), free)
		if o.places.CompareAndSwap(free, free-k) {
			return int(k)
		}
	}
}

func (o *owned) push(it *item) bool {
	if o.reserve(1) == 0 {
		return false
	}
	o.ring.Put(it)
	return true
}

func (o *owned) pushAll(its []item) int {
	n := o.reserve(len(its))
	if n > 0 {
		o.ring.PutAll(its[:n])
	}
	return n
}

func (o *owned) pop(it *item) bool {
	var one [1]item
	n := o.popAll(one[:])
	*it = one[0]
	return n == 1
}

func (o *owned) popAll(buf []item) int {
	n := o.ring.Take(buf)
	o.places.Add(int64(n))
	return n
}

func TestManyProducersReachTheConsumerInOrder(t *testing.T) {
	const producers, each = 4, 5000
	atEach(t, []int{1, 2, 8}, func(t *testing.T) {
		r := &owned{NewReserved[item](32), atomic.Int64{}}
		r.places.Store(32)
		var wg sync.WaitGroup
		for p := range producers {
			wg.Go(func() { produce(p, each, r.push, r.pushAll) })
		}
		consume(&expect{t, make([]int, producers), producers * each}, r.pop, r.popAll)
		wg.Wait()
	})
}

func TestOneProducerReachesTheConsumerInOrder(t *testing.T) {
	const each = 20000
	atEach(t, []int{1, 2, 8}, func(t *testing.T) {
		r := NewSPSC[item](32)
		var wg sync.WaitGroup
		wg.Go(func() { produce(0, each, r.Push, r.PushAll) })
		consume(&expect{t, make([]int, 1), each}, r.Pop, r.PopAll)
		wg.Wait()
	})
}

// produce pushes n items, by turns one by one and in batches.
func produce(producer, n int, push func(*item) bool, pushAll func([]item) int) {
	batch := make([]item, 0, 7)
	for i := 0; i < n; {
		if i%3 == 0 {
			it := newItem(producer, i)
			if push(&it) {
				i++
				continue
			}
			runtime.Gosched()
			continue
		}
		batch = batch[:0]
		for j := i; j < n && len(batch) < cap(batch); j++ {
			batch = append(batch, newItem(producer, j))
		}
		k := pushAll(batch)
		if k == 0 {
			runtime.Gosched()
		}
		i += k
	}
}

func consume(e *expect, pop func(*item) bool, popAll func([]item) int) {
	buf := make([]item, 5)
	for e.left > 0 {
		before := e.left
		var it item
		if pop(&it) {
			e.got(it)
		}
		for _, it := range buf[:popAll(buf)] {
			e.got(it)
		}
		if e.left == before {
			runtime.Gosched()
		}
	}
}
