package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/internal/labels"
	"godat/internal/owner"
)

// hookTime is how long a device's close waits for functions of the program's, and Listen for Config.Listen.
const hookTime = 5 * time.Second

// hooks are the calls of Config.Dial, Config.Listen and Config.Trace that have not returned.
type hooks struct {
	mu     sync.Mutex
	inside []hookCall
	left   chan struct{} // closed when a call has ended; nil: nobody waits
}

type hookCall struct {
	name      string
	goroutine uintptr
}

// hook is one call of a function of the program's. It has a goroutine of its own: a function that panics, ends
// its goroutine or blocks harms nothing but the attempt that it was called for.
type hook[T any] struct {
	// Immutable.
	of     *hooks
	name   string
	f      func() (T, error)
	drop   func(T) // closes what comes too late
	result chan outcome[T]

	over atomic.Bool // the function has returned, or its caller has gone without it
}

type outcome[T any] struct {
	value T
	err   error
}

// hookError is the error of a function of the program's that did not return.
type hookError struct {
	text string
	err  error // nil, what ended the wait, or a panic with its stack
}

func (e *hookError) Error() string { return e.text }
func (e *hookError) Unwrap() error { return e.err }

// call calls the function and waits for it: until ctx ends, and then for the time grace, in which a function that
// heeds ctx returns with an error of its own.
func (h *hook[T]) call(ctx context.Context, grace time.Duration) (value T, err error) {
	h.result = make(chan outcome[T], 1)
	running := make(chan struct{})
	go h.run(running)
	<-running
	select {
	case o := <-h.result:
		return o.value, o.err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case o := <-h.result:
		return o.value, o.err
	case <-late.C:
	}
	if h.over.Swap(true) {
		o := <-h.result
		return o.value, o.err
	}
	return value, &hookError{fmt.Sprintf("%s has not returned, though its time is over", h.name), ctx.Err()}
}

var hookLabel = labels.Of("iwarp: a function of the program's")

// run is the goroutine of the call.
func (h *hook[T]) run(running chan<- struct{}) {
	hookLabel.Set()
	h.of.enter(h.name)
	defer h.of.leave()
	close(running)
	o := outcome[T]{err: &hookError{text: h.name + " ended its goroutine"}}
	defer func() {
		if v := recover(); v != nil {
			o.err = &hookError{fmt.Sprintf("%s panicked: %v", h.name, v), fmt.Errorf("%v\n%s", v, debug.Stack())}
		}
		switch {
		case !h.over.Swap(true):
			h.result <- o
		case o.err == nil:
			h.drop(o.value)
		}
	}()
	o.value, o.err = h.f()
}

func (h *hooks) enter(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inside = append(h.inside, hookCall{name, owner.Goroutine()})
}

func (h *hooks) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := owner.Goroutine()
	h.inside = slices.DeleteFunc(h.inside, func(c hookCall) bool { return c.goroutine == g })
	if h.left != nil {
		close(h.left)
		h.left = nil
	}
}

// others is the name of a function that another goroutine is in, and a channel that is closed when one has ended; the
// name is empty if there is none.
func (h *hooks) others() (name string, left <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := owner.Goroutine()
	i := slices.IndexFunc(h.inside, func(c hookCall) bool { return c.goroutine != g })
	if i < 0 {
		return "", nil
	}
	if h.left == nil {
		h.left = make(chan struct{})
	}
	return h.inside[i].name, h.left
}

// wait waits for the functions that are called, but for one that closes the device itself, and though not for ever. It
// returns the name of one that has not returned.
func (h *hooks) wait(d time.Duration) string {
	late := time.NewTimer(d)
	defer late.Stop()
	for {
		name, left := h.others()
		if name == "" {
			return ""
		}
		select {
		case <-left:
		case <-late.C:
			name, _ = h.others()
			return name
		}
	}
}

var errNoConn = errors.New("iwarp.Config.Dial returned neither a connection nor an error")

// dial makes a connection to a peer.
func (d *device) dial(ctx context.Context, addr string) (net.Conn, error) {
	dial := d.provider.cfg.Dial
	if dial == nil {
		return dialTCP(ctx, addr)
	}
	h := hook[net.Conn]{of: &d.hooks, name: "iwarp.Config.Dial", f: func() (net.Conn, error) {
		conn, err := dial(ctx, addr)
		if conn == nil && err == nil {
			err = errNoConn
		}
		return conn, err
	}, drop: func(conn net.Conn) { _ = conn.Close() }}
	conn, err := h.call(ctx, d.set.linger)
	if err != nil {
		return nil, howHungUp(nil, err)
	}
	return conn, nil
}

var errNoListener = errors.New("iwarp.Config.Listen returned neither a listener nor an error")

// listen opens a listener. One that comes when Listen has gone without it is closed.
func (d *device) listen(addr string) (net.Listener, error) {
	listen := d.provider.cfg.Listen
	if listen == nil {
		return net.Listen("tcp", addr)
	}
	h := hook[net.Listener]{of: &d.hooks, name: "iwarp.Config.Listen", f: func() (net.Listener, error) {
		ln, err := listen(addr)
		if ln == nil && err == nil {
			err = errNoListener
		}
		return ln, err
	}, drop: func(ln net.Listener) { _ = ln.Close() }}
	ctx, cancel := context.WithTimeout(context.Background(), d.hookTime)
	defer cancel()
	return h.call(ctx, 0)
}

// hookCause is the cause of an attempt for which a function of the program's did not return.
func hookCause(e *hookError) *hw.Cause { return &hw.Cause{Text: e.text, Err: e, Found: hw.SideLocal} }
