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
// first, the goroutine that opens the device closes it again; otherwise Open takes it.
type opening struct {
	from    source
	cfg     hw.OpenConfig
	pool    *pool
	async   *asyncErrors
	done    chan struct{}
	settled atomic.Bool // set by wait when it gives up, or by settle with the outcome: the first wins
	dev     hw.Device
	err     error
	crash   func() // repeats in the caller how the provider ended: a panic, or runtime.Goexit
}

// ProviderPanic is the value with which [Open] panics when the provider has panicked.
// Open runs the provider on another goroutine, whose trace would be lost otherwise.
type ProviderPanic struct {
	Value any    // what the provider panicked with
	Stack []byte // the trace of the goroutine in which it did
}

// Error returns the value and the trace.
func (p *ProviderPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value if it is an error.
func (p *ProviderPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// wait has another goroutine open the device, and waits for it until ctx ends. On an
// error, everything is freed, or that goroutine will free it.
func (o *opening) wait(ctx context.Context) (hw.Device, error) {
	if err := ctx.Err(); err != nil {
		o.fail()
		return nil, openError(err)
	}
	go o.run()
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

// run calls the provider, which may block.
func (o *opening) run() {
	o.crash = goruntime.Goexit
	defer o.settle()
	o.dev, o.err = o.from.provider.Open(o.cfg)
	if o.dev == nil && o.err == nil {
		o.err = fmt.Errorf("the provider %s returned neither a device nor an error", o.from.provider.Name())
	}
	o.crash = nil
}

// settle hands the outcome to Open. If Open still waits, it repeats the provider's
// panic; otherwise settle does, on this goroutine.
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
	o.fail()
	if o.crash != nil {
		o.crash()
	}
}

// fail frees what an opening has beside the device.
func (o *opening) fail() {
	o.async.close()
	o.pool.release()
	o.from.release()
}

func openError(err error) error {
	const op = "runtime.Open"
	code, coded := errors.AsType[*hw.Error](err)
	switch {
	case coded:
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
