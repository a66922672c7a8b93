package evd

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/event"
	"godat/internal/delivery"
)

var (
	eightEvents = []event.Event{*dto(0), *dto(1), *dto(2), *dto(3), *dto(4), *dto(5), *dto(6), *dto(7)}
	eightPlaces = make([]event.Event, 8)
)

func putEight(q *delivery.Queue) {
	for i := range uint64(8) {
		q.Reserve(1)
		ev := event.Event{Number: event.DTOCompletion, Cookie: i}
		if i%3 == 0 {
			ev.Flags = event.Silent
		}
		q.Put(&ev)
		q.Flush()
	}
}

func putEightTogether(q *delivery.Queue) {
	q.Reserve(9)
	q.PutAll(eightEvents)
	q.Release(1)
	q.Flush()
}

// deliveryPaths are the ways from a post's reservation to its consumer.
var deliveryPaths = map[string]func(t *testing.T) func(){
	"dequeue": func(t *testing.T) func() {
		d := newDispatcher(t, Config{QLen: 32})
		return func() {
			putEight(d.inner.Main())
			putEightTogether(d.inner.Main())
			_, _ = d.Dequeue(eightPlaces)
			_, _ = d.Dequeue(eightPlaces)
		}
	},
	"wait": func(t *testing.T) func() {
		d := newDispatcher(t, Config{QLen: 32})
		return func() {
			putEightTogether(d.inner.Main())
			for range 8 {
				_, _, _ = d.Wait(background, 1)
			}
		}
	},
	"channel": func(t *testing.T) func() {
		d := newDispatcher(t, Config{QLen: 32, Mode: ModeChannel})
		return func() {
			putEight(d.inner.Main())
			putEightTogether(d.inner.Main())
			for range 16 {
				<-d.C()
			}
		}
	},
	"batches": func(t *testing.T) func() {
		d := newDispatcher(t, Config{QLen: 32, Mode: ModeBatch, BatchMax: 8})
		return func() {
			putEightTogether(d.inner.Main())
			b := <-d.Batches()
			if len(b.Events()) != 8 {
				t.Fatal("not all")
			}
			b.Release()
		}
	},
	"route": func(t *testing.T) func() {
		d := newDispatcher(t, Config{})
		r := newRoute(t, d, 1, 1, 32)
		return func() {
			q := d.inner.For(1)
			q.Reserve(1)
			q.Put(&eightEvents[0])
			<-r.C()
		}
	},
	"one-shot": func(t *testing.T) func() {
		d := newDispatcher(t, Config{})
		return func() {
			s := d.NewOneShot()
			q, _ := s.inner.Arm()
			q.Put(&eightEvents[0])
			<-s.C()
			q, _ = s.inner.Arm()
			q.Put(&eightEvents[0])
			_, _ = s.Wait(background)
			s.Release()
		}
	},
	"asynchronous error": func(t *testing.T) func() {
		d, node := newDispatcher(t, Config{}), asyncNode(1)
		return func() { d.inner.PutAsync(node); _, _ = d.Dequeue(eightPlaces) }
	},
	"software event": func(t *testing.T) func() {
		d := newDispatcher(t, Config{Streams: allStreams})
		payload := any(d)
		return func() { _ = d.PostSoftware(payload); _, _ = d.Dequeue(eightPlaces) }
	},
	"refusal": func(t *testing.T) func() {
		d := newDispatcher(t, Config{})
		require.True(t, d.inner.Main().Reserve(8))
		return func() { d.inner.Main().Reserve(1); _, _ = d.Dequeue(eightPlaces) }
	},
}

func TestDeliveryAllocatesNothing(t *testing.T) {
	for name, path := range deliveryPaths {
		t.Run(name, func(t *testing.T) {
			assert.Zero(t, testing.AllocsPerRun(200, path(t)))
		})
	}
}
