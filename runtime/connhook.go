package runtime

import (
	"runtime/debug"

	"go.uber.org/zap"
)

// wentUp calls the program's hook of a connection that is up.
func wentUp(c *Conn) {
	c.wasUp.Store(true)
	if f := c.cfg.Established; f != nil {
		callHook(c, "Established", func() { f(c) })
	}
}

// end marks the connection as over, and calls the program's hook. ev is the event of the end;
// its number is 0 if there is none.
func (c *Conn) end(ev Event) {
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
		callHook(c, "Ended", func() { f(c, Event{Number: Closed, Source: c.Endpoint}) })
	}
}

// callHook calls a function of the program's. A panic is logged: the caller is in the middle of
// the endpoint's work, and others wait for it.
func callHook(c *Conn, name string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			stack := string(debug.Stack())
			_ = c.ia.pool.upcall(func() { // which writes no line once the pool is full or released
				c.ia.log.Error("a hook panicked", zap.String("hook", name), zap.Stringer("conn", c), zap.Any("value", v), zap.String("stack", stack))
			})
		}
	}()
	f()
}
