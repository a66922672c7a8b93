package ring

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
)

// event has the size and the pointers of a dispatcher's event, so that the figures
// can be compared with those of delivery.
type event struct {
	cookie uint64
	_      [2]uint64
	_      [2]any
}

// BenchmarkMPSC is one push and one pop per operation on one goroutine, by this
// package's ring and by the textbook's. A push and a pop take three atomic writes
// in the textbook's ring, and two in this one.
func BenchmarkMPSC(b *testing.B) {
	in, out := event{cookie: 1}, event{}
	b.Run("ring=ours", func(b *testing.B) {
		r := NewMPSC[event](1024)
		for b.Loop() {
			if !r.Push(&in) || !r.Pop(&out) {
				b.Fatal("lost")
			}
		}
	})
	b.Run("ring=vyukov", func(b *testing.B) {
		r := newVyukov()
		for b.Loop() {
			if !r.push(&in) || !r.pop(&out) {
				b.Fatal("lost")
			}
		}
	})
}

// BenchmarkSPSC is one push and one pop per operation on one goroutine.
func BenchmarkSPSC(b *testing.B) {
	r := NewSPSC[event](1024)
	in, out := event{cookie: 1}, event{}
	for b.Loop() {
		if !r.Push(&in) || !r.Pop(&out) {
			b.Fatal("lost")
		}
	}
}

// BenchmarkReserved is one put and one take per operation on one goroutine.
func BenchmarkReserved(b *testing.B) {
	r := NewReserved[event](1024)
	in, out := []event{{cookie: 1}}, make([]event, 1)
	for b.Loop() {
		r.PutAll(in)
		if r.Take(out) != 1 {
			b.Fatal("lost")
		}
	}
}

// BenchmarkBatch moves batches of 32 values through each ring on one goroutine; an
// operation is one value.
func BenchmarkBatch(b *testing.B) {
	const n = 32
	in, out := make([]event, n), make([]event, n)
	mpsc, spsc := NewMPSC[event](1024), NewSPSC[event](1024)
	b.Run("ring=mpsc", func(b *testing.B) {
		for i := 0; i < b.N; i += n {
			if mpsc.PushAll(in) != n || mpsc.PopAll(out) != n {
				b.Fatal("lost")
			}
		}
	})
	b.Run("ring=spsc", func(b *testing.B) {
		for i := 0; i < b.N; i += n {
			if spsc.PushAll(in) != n || spsc.PopAll(out) != n {
				b.Fatal("lost")
			}
		}
	})
}

// BenchmarkStream moves values from one goroutine to another; an operation is one
// value.
func BenchmarkStream(b *testing.B) {
	for _, batch := range []int{1, 32} {
		b.Run(fmt.Sprintf("ring=mpsc/batch=%d", batch), func(b *testing.B) {
			r := NewMPSC[event](1024)
			stream(b, batch, r.PushAll, r.PopAll)
		})
		b.Run(fmt.Sprintf("ring=spsc/batch=%d", batch), func(b *testing.B) {
			r := NewSPSC[event](1024)
			stream(b, batch, r.PushAll, r.PopAll)
		})
	}
	b.Run("channel", func(b *testing.B) {
		ch := make(chan event, 1024)
		go func() {
			for range b.N {
				ch <- event{cookie: 1}
			}
		}()
		for range b.N {
			<-ch
		}
	})
}

func stream(b *testing.B, batch int, push, pop func([]event) int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		in := make([]event, batch)
		for sent := 0; sent < b.N; {
			n := push(in[:min(batch, b.N-sent)])
			if n == 0 {
				runtime.Gosched()
			}
			sent += n
		}
	}()
	out := make([]event, batch)
	for got := 0; got < b.N; {
		n := pop(out)
		if n == 0 {
			runtime.Gosched()
		}
		got += n
	}
	<-done
}

// BenchmarkChannel is one send and one receive per operation on one goroutine.
func BenchmarkChannel(b *testing.B) {
	ch := make(chan event, 1024)
	in := event{cookie: 1}
	for b.Loop() {
		ch <- in
		<-ch
	}
}

// vyukov is the textbook ring of many producers and one consumer, whose consumer
// writes each cell: a figure to compare with.
type vyukov struct {
	cells [1024]Cell[event]
	_     [64]byte
	tail  atomic.Uint64
	_     [64]byte
	head  uint64
}

func (r *vyukov) push(v *event) bool {
	for {
		t := r.tail.Load()
		c := &r.cells[t%1024]
		switch seq := c.word.Load(); {
		case seq == t:
			if r.tail.CompareAndSwap(t, t+1) {
				c.Value = *v
				c.word.Store(t + 1)
				return true
			}
		case int64(seq-t) < 0:
			return false
		}
	}
}

func (r *vyukov) pop(v *event) bool {
	c := &r.cells[r.head%1024]
	if c.word.Load() != r.head+1 {
		return false
	}
	*v = c.Value
	c.word.Store(r.head + 1024)
	r.head++
	return true
}

func newVyukov() *vyukov {
	r := new(vyukov)
	for i := range r.cells {
		r.cells[i].word.Store(uint64(i))
	}
	return r
}
