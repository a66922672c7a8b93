package runtime

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"sync/atomic"

	"godat/hw"
)

// opening is a device that is being opened while Open waits for it. If Open gives up
// first, the goroutine that opens the device closes it again; else Open takes it.
type opening struct {
	from    source
	cfg     hw.OpenConfig
	pool    *pool
	async   *asyncErrors
	done    chan struct{}
	settled atomic.Bool // one of the two has come
	dev     hw.Device
	err     error
	crash   func() // ends the caller as the provider ended: by a panic, or runtime.Goexit
}

// ProviderPanic is the value with which [Open] panics when the provider did: Open
// runs the provider on another goroutine, whose trace would be lost otherwise.
type ProviderPanic struct {
	Value any    // what the provider panicked with
	Stack []byte // the trace of the goroutine in which it did
}

// Error gives the value and the trace.
func (p *ProviderPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap is the value if that is an error.
func (p *ProviderPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// wait opens the device, for as long as ctx lasts. With an error, everything is
// freed or will be.
func (o *opening) wait(ctx context.Context) (hw.Device, error) {
	err := ctx.Err()
	if err == nil {
		err = o.pool.call(o.run)
	}
	if err != nil {
		o.fail()
		return nil, openError(err)
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		if o.settled.CompareAndSwap(false, true) {
			return nil, openError(ctx.Err())
		}
		<-o.done
	}
	if o.crash != nil {
		o.fail()
		o.crash()
	}
	if o.err != nil {
		o.fail()
		return nil, openError(o.err)
	}
	return o.dev, nil
}

// run is the call that may block.
func (o *opening) run() {
	o.crash = goruntime.Goexit
	defer o.settle()
	o.dev, o.err = o.from.provider.Open(o.cfg)
	if o.dev == nil && o.err == nil {
		o.err = fmt.Errorf("the provider %s returned neither a device nor an error", o.from.provider.Name())
	}
	o.crash = nil
}

// settle hands the outcome to Open. A panic is Open's caller's if there still is
// one, and otherwise this goroutine's own.
func (o *opening) settle() {
	if o.crash != nil {
		if v := recover(); v != nil {
			p := &ProviderPanic{v, debug.Stack()}
			o.crash = func() { panic(p) }
		}
	}
	if o.settled.CompareAndSwap(false, true) {
		close(o.done)
		return
	}
	if o.crash == nil && o.err == nil {
		_ = o.dev.Close()
	}
	o.async.close()
	o.pool.abandon()
	o.from.release()
	if o.crash != nil {
		o.crash()
	}
}

// fail frees what there is without a device.
func (o *opening) fail() {
	o.async.close()
	o.pool.release()
	o.from.release()
}

func openError(err error) error {
	const op = "runtime.Open"
	var code *hw.Error
	switch {
	case errors.As(err, &code):
		return hw.Errorf(op, code.Type, code.Sub, "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return hw.Errorf(op, hw.TimeoutExpired, hw.NoSubtype, "%w", err)
	case errors.Is(err, context.Canceled):
		return hw.Errorf(op, hw.InterruptedCall, hw.NoSubtype, "%w", err)
	case errors.Is(err, errors.ErrUnsupported):
		return hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "%w", err)
	}
	return hw.Errorf(op, hw.InternalError, hw.NoSubtype, "%w", err)
}
