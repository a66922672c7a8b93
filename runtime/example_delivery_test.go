package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// A server selects on the channel of events, and on whatever else it waits for.
func ExampleDispatcher_channel() {
	withPair(evd.Config{QLen: 16, Mode: evd.ModeChannel}, func(p *pair) error {
		if err := p.exchange(2); err != nil {
			return err
		}
		stop := time.After(time.Minute)
		for range 2 {
			select {
			case ev := <-p.events.C():
				fmt.Println(ev.Op, ev.Cookie, ev.Length, "bytes", ev.Err())
			case <-stop:
				return context.DeadlineExceeded
			}
		}
		return nil
	})
	// Output:
	// RECEIVE 1 5 bytes <nil>
	// RECEIVE 2 5 bytes <nil>
}

// With batches, one receive from a channel brings many events. The receiver gives the
// batch back.
func ExampleDispatcher_batches() {
	withPair(evd.Config{QLen: 16, Mode: evd.ModeBatch, BatchMin: 3}, func(p *pair) error {
		if err := p.exchange(3); err != nil {
			return err
		}
		batch := <-p.events.Batches()
		for _, ev := range batch.Events() {
			fmt.Println(ev.Op, ev.Cookie, ev.Err())
		}
		batch.Release() // the program has no use for the batch's events any more
		return nil
	})
	// Output:
	// RECEIVE 1 <nil>
	// RECEIVE 2 <nil>
	// RECEIVE 3 <nil>
}

// A callback runs on the adapter's pool: one call at a time for each dispatcher.
func ExampleDispatcher_callback() {
	cookies := make(chan uint64, 3)
	cfg := evd.Config{QLen: 16, Mode: evd.ModeCallback, Callback: func(events []event.Event) {
		for _, ev := range events {
			cookies <- ev.Cookie
		}
	}}
	withPair(cfg, func(p *pair) error {
		if err := p.exchange(3); err != nil {
			return err
		}
		fmt.Println(<-cookies, <-cookies, <-cookies)
		return nil
	})
	// Output: 1 2 3
}

// Wait sleeps until as many events are queued as its threshold says, and takes the
// first of them.
func ExampleDispatcher_wait() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		if err := p.exchange(3); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		ev, more, err := p.events.Wait(ctx, 3)
		if err != nil {
			return err
		}
		fmt.Println(ev.Op, ev.Cookie, "and", more, "more")
		return nil
	})
	// Output: RECEIVE 1 and 2 more
}

// A Wait ends at its context's deadline. It takes no event then.
func ExampleDispatcher_timeout() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_, queued, err := p.events.Wait(ctx, 1)
		fmt.Println(queued, errors.Is(err, hw.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded))

		ctx, cancel = context.WithCancel(context.Background())
		cancel()
		_, queued, err = p.events.Wait(ctx, 1)
		fmt.Println(queued, errors.Is(err, hw.ErrInterrupted), errors.Is(err, context.Canceled))
		return nil
	})
	// Output:
	// 0 true true
	// 0 true true
}

// A program that polls takes the queued events into an array of its own, and does
// something else when there are none.
func ExampleDispatcher_dequeue() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		if err := p.exchange(3); err != nil {
			return err
		}
		var events [8]event.Event
		for taken := 0; taken < 3; {
			n, err := p.events.Dequeue(events[:])
			if err != nil {
				return err
			}
			for _, ev := range events[:n] {
				fmt.Println(ev.Op, ev.Cookie, ev.Err())
			}
			taken += n
		}
		return nil
	})
	// Output:
	// RECEIVE 1 <nil>
	// RECEIVE 2 <nil>
	// RECEIVE 3 <nil>
}

// A script or a test can range over the events.
func ExampleDispatcher_iterator() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		if err := p.exchange(3); err != nil {
			return err
		}
		for ev := range p.events.Events(context.Background()) {
			fmt.Println(ev.Op, ev.Cookie, ev.Err())
			if ev.Cookie == 3 {
				break
			}
		}
		return nil
	})
	// Output:
	// RECEIVE 1 <nil>
	// RECEIVE 2 <nil>
	// RECEIVE 3 <nil>
}

// A goroutine tells another one something, in order with the events of a dispatcher.
func ExampleDispatcher_software() {
	cfg := evd.Config{QLen: 16, Streams: event.DefaultStreams | event.StreamSoftware}
	withPair(cfg, func(p *pair) error {
		if err := p.exchange(1); err != nil {
			return err
		}
		if err := p.events.PostSoftware("reload"); err != nil {
			return err
		}
		for range 2 {
			ev, _, err := p.events.Wait(context.Background(), 1)
			if err != nil {
				return err
			}
			if order, ok := ev.Software(); ok {
				fmt.Println(order)
			} else {
				fmt.Println(ev.Op, ev.Cookie)
			}
		}
		return nil
	})
	// Output:
	// RECEIVE 1
	// reload
}

// One goroutine waits for any number of dispatchers, and empties them all.
func ExampleCNO() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		cno, err := p.ia.NewCNO(evd.CNOConfig{})
		if err != nil {
			return err
		}
		all := []*evd.Dispatcher{p.events, p.changes}
		for _, d := range all {
			if err = d.ModifyCNO(cno); err != nil {
				return err
			}
		}
		if err = errors.Join(p.exchange(1), p.client.Disconnect(ep.Graceful)); err != nil {
			return err
		}
		var events [8]event.Event
		for left := 3; left > 0; { // a receive, and the end of both ends
			if _, err = cno.Wait(context.Background()); err != nil {
				return err
			}
			for _, d := range all {
				n, err := d.Dequeue(events[:])
				if err != nil {
					return err
				}
				left -= n
			}
		}
		fmt.Println("everything has come")
		return nil
	})
	// Output: everything has come
}

// Each worker gets the events of its own requests: here of those that have 7 in the
// highest byte of the cookie.
func ExampleRoute() {
	withPair(evd.Config{QLen: 16, Mode: evd.ModeChannel}, func(p *pair) error {
		const worker = 7 << 56
		mine, err := p.events.Route(0xff<<56, worker, 4)
		if err != nil {
			return err
		}
		there := p.memory.Remote(1024, 64)
		for cookie := range uint64(2) {
			if err = p.client.PostRDMAWrite(worker|cookie, 0, there, p.memory.Segment(0, 64)); err != nil {
				return err
			}
		}
		for range 2 {
			ev := <-mine.C()
			fmt.Println(ev.Op, ev.Cookie&^uint64(worker), ev.Err())
		}
		return mine.Close()
	})
	// Output:
	// RDMA_WRITE 0 <nil>
	// RDMA_WRITE 1 <nil>
}

// A goroutine that has nothing else to do waits for its one request.
func ExampleOneShot() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		one := p.events.NewOneShot()
		defer one.Release()
		copy(p.memory.Bytes()[1024:], "stored")
		_, err := p.client.PostBatch([]ep.DTO{{
			Op: hw.OpRead, Remote: p.memory.Remote(1024, 6), Segment: p.memory.Segment(0, 6), OneShot: one,
		}})
		if err != nil {
			return err
		}
		ev, err := one.Wait(context.Background())
		if err != nil {
			return err
		}
		fmt.Printf("%s %q %v\n", ev.Op, p.memory.Bytes()[:ev.Length], ev.Err())
		return nil
	})
	// Output: RDMA_READ "stored" <nil>
}
