package delivery

import (
	"testing"

	"godat/hw"
	"godat/hw/event"
)

// BenchmarkPair is the delivery of a pair's two successes, as ep completes them, and their
// consumer: through a ring, through a channel, and through a bare channel, on one goroutine.
// What delivery by channel costs beyond polling is at least the bare channel less the ring.
func BenchmarkPair(b *testing.B) {
	source := new(int)
	b.Run("way=ring", func(b *testing.B) {
		d := newDispatcher(b, Config{Way: Ring, QLen: 256})
		q, buf := d.Main(), make([]event.Event, 32)
		for b.Loop() {
			r := q.Ring()
			first := r.ClaimAll(2)
			cell := r.At(first)
			Success(&cell.Value, source, 1, hw.OpRecv, 64)
			Success(&r.At(first+1).Value, source, 2, hw.OpSend, 64)
			cell.PublishAll(first, 2)
			q.Note()
			q.Flush()
			if n, _ := d.Dequeue(buf); n != 2 || buf[0].Status|buf[1].Status != 0 {
				b.Fatal("lost")
			}
		}
	})
	b.Run("way=channel", func(b *testing.B) {
		d := newDispatcher(b, Config{Way: Channel, QLen: 256})
		q := d.Main()
		var lanes [2]Lane
		for i := range lanes {
			lanes[i].enter(q, source)
			defer lanes[i].Leave()
		}
		for b.Loop() {
			for i := range lanes {
				ev := lanes[i].Claim(q)
				ev.Op, ev.Length, ev.Cookie = hw.OpSend, 64, uint64(i)
				lanes[i].Send()
			}
			for range lanes {
				if ev := <-d.C(); ev.Status != 0 {
					b.Fatal("failed")
				}
			}
		}
	})
	b.Run("way=bare channel", func(b *testing.B) {
		ch := make(chan event.Event, 256)
		ev := event.Event{Source: source}
		for b.Loop() {
			for range 2 {
				ev.Cookie++
				ch <- ev
			}
			for range 2 {
				if ev := <-ch; ev.Status != 0 {
					b.Fatal("failed")
				}
			}
		}
	})
}
