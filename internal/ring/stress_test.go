package ring

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// item has its producer and its place among that producer's items; wide makes a
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

// expect checks that each producer's items come in order, and each only once.
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

func TestManyProducersReachTheConsumerInOrder(t *testing.T) {
	const producers, each = 4, 5000
	atEach(t, []int{1, 2, 8}, func(t *testing.T) {
		r := NewMPSC[item](32)
		var wg sync.WaitGroup
		for p := range producers {
			wg.Go(func() { produce(p, each, r.Push, r.PushAll) })
		}
		consume(&expect{t, make([]int, producers), producers * each}, r.Pop, r.PopAll)
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
