package ring

import (
	"testing"

	"pgregory.net/rapid"
)

// TestBoundedRingsAgreeWithASlice drives each ring and a slice with the same
// calls.
func TestBoundedRingsAgreeWithASlice(t *testing.T) {
	for name, make := range boundedRings {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkBounded(t, make) })
		})
	}
}

func checkBounded(t *rapid.T, makeRing func(int) bounded) {
	capacity := rapid.IntRange(1, 80).Draw(t, "capacity")
	r := makeRing(capacity)
	var model []int
	count := 0
	values := func(n int) []int {
		vs := make([]int, n)
		for i := range vs {
			vs[i] = count + i
		}
		return vs
	}
	t.Repeat(map[string]func(*rapid.T){
		"push": func(t *rapid.T) {
			ok := r.Push(&count)
			if !ok && len(model) < capacity {
				t.Fatalf("refused with %d of %d", len(model), capacity)
			}
			if ok {
				model = append(model, count)
				count++
			}
		},
		"push all": func(t *rapid.T) {
			vs := values(rapid.IntRange(0, 100).Draw(t, "n"))
			n := r.PushAll(vs)
			if n < len(vs) && len(model)+n < capacity {
				t.Fatalf("took %d of %d with %d of %d", n, len(vs), len(model), capacity)
			}
			model = append(model, vs[:n]...)
			count += n
		},
		"pop": func(t *rapid.T) {
			got := -1
			ok := r.Pop(&got)
			if ok != (len(model) > 0) {
				t.Fatalf("popped %v of %d", ok, len(model))
			}
			if ok {
				if got != model[0] {
					t.Fatalf("got %d, want %d", got, model[0])
				}
				model = model[1:]
			}
		},
		"pop all": func(t *rapid.T) {
			buf := make([]int, rapid.IntRange(0, 100).Draw(t, "n"))
			n := r.PopAll(buf)
			if n != min(len(buf), len(model)) {
				t.Fatalf("popped %d of %d into %d", n, len(model), len(buf))
			}
			for i, got := range buf[:n] {
				if got != model[i] {
					t.Fatalf("got %d, want %d", got, model[i])
				}
			}
			model = model[n:]
		},
	})
}

// reservedWorld is a ring and the values that it should hold. Claimed places may
// stay unpublished for a while.
type reservedWorld struct {
	r         *Reserved[int]
	places    int
	values    []int // by position
	published []bool
	open      []claim
	taken     int
}

type claim struct{ at, n int }

// ready counts the values that the consumer can take.
func (w *reservedWorld) ready() (n int) {
	for w.taken+n < len(w.values) && w.published[w.taken+n] {
		n++
	}
	return n
}

func (w *reservedWorld) claim(t *rapid.T) {
	room := w.places - (len(w.values) - w.taken)
	if room == 0 {
		return
	}
	n := rapid.IntRange(1, room).Draw(t, "n")
	w.open = append(w.open, claim{int(w.r.tail.Add(uint64(n))) - n, n})
	for range n {
		w.values = append(w.values, len(w.values)*3)
		w.published = append(w.published, false)
	}
}

func (w *reservedWorld) publish(t *rapid.T) {
	if len(w.open) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.open)-1).Draw(t, "which")
	c := w.open[i]
	w.open = append(w.open[:i], w.open[i+1:]...)
	w.r.publishAll(uint64(c.at), w.values[c.at:c.at+c.n])
	for i := range c.n {
		w.published[c.at+i] = true
	}
}

func (w *reservedWorld) take(t *rapid.T) {
	buf := make([]int, rapid.IntRange(0, w.places+1).Draw(t, "n"))
	want := min(w.ready(), len(buf))
	if got := w.r.Take(buf); got != want {
		t.Fatalf("took %d, want %d", got, want)
	}
	for i, got := range buf[:want] {
		if got != w.values[w.taken+i] {
			t.Fatalf("got %d, want %d", got, w.values[w.taken+i])
		}
	}
	w.taken += want
}

func (w *reservedWorld) check(t *rapid.T) {
	if got := w.r.Ready(uint64(w.places)); got != uint64(w.ready()) {
		t.Fatalf("%d ready, want %d", got, w.ready())
	}
	if w.r.Next() != uint64(w.taken) || w.r.Tail() != uint64(len(w.values)) {
		t.Fatalf("next %d tail %d, want %d %d", w.r.Next(), w.r.Tail(), w.taken, len(w.values))
	}
}

func TestReservedAgreesWithASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(1, 40).Draw(t, "places")
		w := &reservedWorld{r: NewReserved[int](places), places: places}
		t.Repeat(map[string]func(*rapid.T){"claim": w.claim, "publish": w.publish, "take": w.take, "": w.check})
	})
}
