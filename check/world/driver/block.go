package driver

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"godat/check/world/model"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

func init() {
	calls["block"] = (*driver).block
	calls["unblock"] = func(d *driver, c model.Command) (model.Result, error) {
		if b := d.blocked[d.evd(c.On)]; b != nil {
			b.cancel()
		}
		return model.Result{}, nil
	}
}

// blocked is a goroutine in Wait, and the wait's result once done is closed.
type blocked struct {
	cancel context.CancelFunc
	done   chan struct{}
	ev     event.Event
	nmore  int
	err    error
}

func (b *blocked) wait(ctx context.Context, e *evd.Dispatcher, threshold int) {
	defer close(b.done)
	b.ev, b.nmore, b.err = e.Wait(ctx, threshold)
}

// result returns the result of a wait that has returned.
func (b *blocked) result(d *driver) (model.Result, error) {
	r := values("nmore", b.nmore)
	if b.err == nil {
		r.Events = d.events([]event.Event{b.ev})
	}
	return r, b.err
}

var waiterThere = &hw.Error{Type: hw.InvalidState, Sub: hw.StateEVDWaiter}

// block starts a goroutine that waits, and returns when it sleeps or has returned.
// If the dispatcher has a wait already, the new one can only be refused.
func (d *driver) block(c model.Command) (model.Result, error) {
	e := d.evd(c.On)
	ctx, cancel := context.WithCancel(context.Background())
	b := &blocked{cancel: cancel, done: make(chan struct{})}
	go b.wait(ctx, e, c.Int("threshold"))
	if d.blocked[e] != nil {
		<-b.done
		cancel()
		return b.result(d)
	}
	for {
		select {
		case <-b.done:
			cancel()
			return b.result(d)
		default:
		}
		if _, err := e.Dequeue(nil); errors.Is(err, waiterThere) {
			d.blocked[e] = b
			return values("blocked", 1), nil
		}
		runtime.Gosched()
	}
}

// checkWaits judges the waits that must end, and checks that the others have not.
func (p *trial) checkWaits() error {
	for i, e := range p.driver.evds {
		b := p.driver.blocked[e]
		if b == nil {
			continue
		}
		due, vague := p.world.Due(i)
		if vague {
			b.cancel()
		}
		if !due && !vague {
			select {
			case <-b.done:
				return fmt.Errorf("the wait on e%d ended early: %v, %v", i, b.ev, b.err)
			default:
			}
			continue
		}
		select {
		case <-b.done:
		case <-time.After(patience):
			return fmt.Errorf("the wait on e%d has not ended", i)
		}
		b.cancel()
		delete(p.driver.blocked, e)
		r, err := b.result(p.driver)
		r.Code = codeOf(err)
		if err := p.world.Returned(i, r); err != nil {
			return err
		}
	}
	return nil
}

// patience is how long the test waits for something that must happen.
const patience = 30 * time.Second
