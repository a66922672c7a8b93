package runtime_test

import (
	"fmt"
	"sync/atomic"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// A function hears of each event in the middle of the work that completes the operation: it counts, and
// wakes a goroutine, and does not wait.
func ExampleDispatcher_function() {
	var bytes atomic.Int64
	came := make(chan struct{}, 1)
	cfg := evd.Config{Mode: evd.ModeFunc, Func: func(ev event.Event) {
		if ev.Number != event.DTOCompletion || ev.Op != hw.OpRecv {
			return // such as the dispatcher's own end
		}
		bytes.Add(int64(ev.Length))
		select {
		case came <- struct{}{}:
		default: // somebody has still to look
		}
	}}
	withPair(cfg, func(p *pair) error {
		if err := p.exchange(3); err != nil {
			return err
		}
		for bytes.Load() < 15 {
			if p.events.Asks() { // over a device that tells nobody of completions
				p.events.Ask(false)
			}
			<-came
		}
		fmt.Println(bytes.Load(), "bytes")
		return nil
	})
	// Output: 15 bytes
}

// A call lends its argument to the device, which sends the bytes from where they lie.
func ExampleLMR_Lend() {
	withPair(evd.Config{QLen: 16, Mode: evd.ModeChannel}, func(p *pair) error {
		loan, err := p.pz.NewLoan(1<<20, hw.LocalRead)
		if err != nil {
			return err // ErrUnsupported: this device sends registered memory alone
		}
		write := func(b []byte) error {
			if err := loan.Lend(b); err != nil {
				return err
			}
			if err := p.client.PostSend(2, 0, loan.Segment(0, len(b))); err != nil {
				return err
			}
			for {
				if ev := <-p.events.C(); ev.Op == hw.OpSend {
					return ev.Err() // b is the caller's again
				}
			}
		}
		if err := p.server.PostRecv(1, 0, p.memory.Segment(0, 64)); err != nil {
			return err
		}
		err = write([]byte("from where it lies"))
		fmt.Printf("%s\n", p.memory.Bytes()[:18])
		return err
	})
	// Output: from where it lies
}

// A goroutine that waits for messages waits where they come in, if the provider has such a place. It
// calls the dispatcher's function there.
func ExampleEndpoint_Watcher() {
	var came atomic.Bool
	cfg := evd.Config{Mode: evd.ModeFunc, Func: func(ev event.Event) {
		if ev.Op == hw.OpRecv {
			came.Store(true)
		}
	}}
	withPair(cfg, func(p *pair) error {
		if err := p.exchange(1); err != nil {
			return err
		}
		w := p.server.Watcher()
		fmt.Println(w != nil) // loop has none: the function wakes a goroutine by a channel
		for w != nil && !came.Load() {
			w.Watch(func(bool) bool { return came.Load() })
		}
		return nil
	})
	// Output: false
}
