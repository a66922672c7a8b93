package evd

import (
	"testing"

	"godat/hw/event"
	"godat/internal/delivery"
)

// benchCase is one way to deliver: a step delivers n events and takes them.
type benchCase struct {
	name string
	n    int
	step func()
}

// BenchmarkDelivery is the life of an event on one goroutine: reserve, put,
// flush, take. An operation is one event. The anchor does the same with a bare
// channel.
func BenchmarkDelivery(b *testing.B) {
	ev := event.Event{Number: event.DTOCompletion, Cookie: 1}
	for _, c := range benchCases(b, &ev) {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; i += c.n {
				c.step()
			}
		})
	}
}

func benchCases(b *testing.B, ev *event.Event) []benchCase {
	const few, many = 16, 32
	ch := make(chan event.Event, 1024)
	queue := newDispatcher(b, Config{QLen: 1024})
	channel := newDispatcher(b, Config{QLen: 1024, Mode: ModeChannel})
	batch := newDispatcher(b, Config{QLen: 1024, Mode: ModeBatch, BatchMax: many})
	shot := queue.NewOneShot()
	var out [few]event.Event
	evs := make([]event.Event, many)
	for i := range evs {
		evs[i] = *ev
	}
	single := func(q *delivery.Queue) {
		q.Reserve(1)
		q.Put(ev)
		q.Flush()
	}
	together := func(q *delivery.Queue, n int) {
		q.Reserve(n)
		q.PutAll(evs[:n])
		q.Flush()
	}
	take := func() {
		if n, err := queue.Dequeue(out[:]); n == 0 || err != nil {
			b.Fatal(n, err)
		}
	}
	return []benchCase{
		{"anchor=chan", 1, func() { ch <- *ev; out[0] = <-ch }},
		{"mode=queue/take=1", 1, func() { single(queue.inner.Main()); take() }},
		{"mode=queue/take=16", few, func() {
			for range few {
				single(queue.inner.Main())
			}
			take()
		}},
		{"mode=queue/put=16/take=16", few, func() { together(queue.inner.Main(), few); take() }},
		{"mode=wait", 1, func() {
			single(queue.inner.Main())
			if _, _, err := queue.Wait(background, 1); err != nil {
				b.Fatal(err)
			}
		}},
		{"mode=chan", 1, func() { single(channel.inner.Main()); out[0] = <-channel.C() }},
		{"mode=batch", many, func() {
			for range many {
				single2(batch.inner.Main(), ev)
			}
			batch.inner.Main().Flush()
			(<-batch.Batches()).Release()
		}},
		{"mode=batch/put=32", many, func() { together(batch.inner.Main(), many); (<-batch.Batches()).Release() }},
		{"mode=oneshot", 1, func() {
			q, _ := shot.inner.Arm()
			q.Put(ev)
			q.Flush()
			out[0] = <-shot.C()
		}},
	}
}

// single2 puts one event of a batch that goes out later.
func single2(q *delivery.Queue, ev *event.Event) {
	q.Reserve(1)
	q.Put(ev)
}

// BenchmarkWake is a round trip between two goroutines that sleep in between.
func BenchmarkWake(b *testing.B) {
	b.Run("anchor=chan", func(b *testing.B) {
		there, back := make(chan event.Event, 1), make(chan event.Event, 1)
		go func() {
			for ev := range there {
				back <- ev
			}
			close(back)
		}()
		for b.Loop() {
			there <- event.Event{}
			<-back
		}
		close(there)
	})
	for _, mode := range []Mode{ModeQueue, ModeChannel} {
		b.Run("mode="+mode.String(), func(b *testing.B) {
			there, back := newDispatcher(b, Config{Mode: mode}), newDispatcher(b, Config{Mode: mode})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for ev := range there.Events(background) {
					back.inner.Main().Reserve(1)
					back.inner.Main().Put(&ev)
					back.inner.Main().Flush()
				}
			}()
			for b.Loop() {
				there.inner.Main().Reserve(1)
				there.inner.Main().Put(dto(1))
				there.inner.Main().Flush()
				if mode == ModeChannel {
					<-back.C()
					continue
				}
				if _, _, err := back.Wait(background, 1); err != nil {
					b.Fatal(err)
				}
			}
			there.inner.Abort()
			<-done
		})
	}
}
