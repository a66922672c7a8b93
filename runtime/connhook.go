package runtime

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/owner"
)

// hookTime is how long the work of a connection waits for a hook of the program's.
const hookTime = 5 * time.Second

// wentUp calls the program's hook of a connection that is up. It reports whether it is up for the
// first time.
func wentUp(c *Conn) (first bool) {
	first = !c.wasUp.Swap(true)
	if f := c.cfg.Established; f != nil {
		callHook(c, "Established", func() { f(c) })
	}
	return first
}

// end marks the connection as over, and calls the program's hook. ev is the event of the end;
// its number is 0 if there is none.
func (c *Conn) end(ev event.Event) {
	if c.over.Swap(true) {
		return
	}
	close(c.ended)
	if c.task != nil {
		c.task.End()
	}
	f := c.cfg.Ended
	switch {
	case f == nil:
	case ev.Number != 0:
		callHook(c, "Ended", func() { f(c, ev) })
	case c.wasUp.Load(): // the program never had another one
		callHook(c, "Ended", func() { f(c, event.Event{Number: event.Closed, Source: c.Endpoint}) })
	}
}

// hookCall is a call of a hook. It has a goroutine of its own, since the caller is in the middle
// of the endpoint's work, and others wait for it: a hook that ends its goroutine or never returns
// may harm nothing else.
type hookCall struct {
	conn   *Conn
	name   string
	hook   func()
	before *hookCall // of the same connection; this call begins when that one has ended
	began  time.Time
	done   chan struct{}
}

// callHook calls a function of the program's, and waits for it, though not for ever.
func callHook(c *Conn, name string, hook func()) {
	h := &hookCall{conn: c, name: name, hook: hook, began: time.Now(), done: make(chan struct{})}
	h.before = c.hook.Swap(h)
	go h.run()
	limit := time.NewTimer(c.ia.hookTime)
	defer limit.Stop()
	select {
	case <-h.done:
	case <-limit.C:
		h.log("a hook has not returned, and the connection goes on without it", zap.Duration("after", c.ia.hookTime))
	}
}

// run is the goroutine of the call.
func (h *hookCall) run() {
	defer close(h.done)
	if h.before != nil {
		<-h.before.done
		h.before = nil
	}
	h.conn.ia.hooks.enter()
	defer h.conn.ia.hooks.leave()
	returned := false
	defer func() {
		if v := recover(); v != nil {
			h.log("a hook panicked", zap.Any("value", v), zap.String("stack", string(debug.Stack())))
		} else if !returned {
			h.log("a hook ended its goroutine")
		}
	}()
	h.hook()
	returned = true
}

// age is how long ago the call began; 0 if it has ended.
func (h *hookCall) age() time.Duration {
	select {
	case <-h.done:
		return 0
	default:
		return max(time.Since(h.began), 1)
	}
}

// log writes a line about the hook, unless the adapter's pool is full or released.
func (h *hookCall) log(text string, fields ...zap.Field) {
	fields = append(fields, zap.String("hook", h.name), zap.Stringer("conn", h.conn))
	_ = h.conn.ia.pool.upcall(func() { h.conn.ia.log.Error(text, fields...) })
}

// exited logs that a function of the program's has panicked, which ends the process, or has ended its goroutine.
func (ia *IA) exited(what string, of fmt.Stringer) {
	_ = ia.pool.upcall(func() { ia.log.Error(what+" ended its goroutine, or panicked", zap.Stringer("of", of)) })
}

// callers are the goroutines that are inside of functions of the program's.
type callers struct {
	mu     sync.Mutex
	inside []uintptr
}

func (c *callers) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside = append(c.inside, owner.Goroutine())
}

func (c *callers) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.inside, owner.Goroutine()); i >= 0 {
		c.inside = slices.Delete(c.inside, i, i+1)
	}
}

// refuse returns an error that says why if the caller is one of them.
func (c *callers) refuse(op string, why error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inside) > 0 && slices.Contains(c.inside, owner.Goroutine()) {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "%w", why)
	}
	return nil
}

// Why calls fail at once that would wait for the function of the program's that makes them.
var (
	errInHook  = errors.New("called from a hook of a connection, Established or Ended, for which it would wait: call it in a goroutine of its own")
	errInSetup = errors.New("called from Setup of a connection of the listener, for which it would wait: call it in a goroutine of its own")
)

// refuseInHook refuses a call that waits for the work of a connection, in the middle of which hooks
// are called.
func (ia *IA) refuseInHook(op string) error { return ia.hooks.refuse(op, errInHook) }

// refuseInCalls refuses a call that waits for the listener's connections, or for Accept.
func (l *Listener) refuseInCalls(op string) error {
	if err := l.setups.refuse(op, errInSetup); err != nil {
		return err
	}
	return l.ia.refuseInHook(op)
}

// setUp calls ConnConfig.Setup, in which the close of the listener is refused.
func (c *Conn) setUp() (private []byte, err error) {
	if c.listener != nil {
		c.listener.setups.enter()
		defer c.listener.setups.leave()
	}
	return c.cfg.Setup(c)
}
