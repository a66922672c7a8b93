package runtime

import (
	"context"
	"errors"
)

// Shutdown ends the listener in order. It stops listening and rejects the requests that
// nobody accepted, ends all connections at the same time as [Conn.Shutdown] does, and
// gives everything back. The program need not receive events meanwhile: what is in the
// channels stays there, the ends included, until the program reads it; messages in it have
// no buffer any more. It breaks connections that have not ended when ctx ends; the error
// is then the cause of ctx. A nil ctx is INVALID_PARAMETER, a nil listener
// INVALID_HANDLE/PSP.
func (l *Listener) Shutdown(ctx context.Context) error {
	const op = "runtime.Listener.Shutdown"
	if l == nil {
		return closedListener(op)
	}
	if ctx == nil {
		return nilContext(op)
	}
	errs := []error{l.refuse()}
	conns := l.list()
	drained := make(chan error, len(conns))
	for _, c := range conns {
		go c.drainTo(ctx, drained)
	}
	for range conns {
		errs = append(errs, <-drained)
	}
	return errors.Join(append(errs, l.Close())...)
}

// drainTo drains the connection and sends the outcome to done.
func (c *Conn) drainTo(ctx context.Context, done chan<- error) { done <- c.drain(ctx) }

// Close stops listening, rejects the requests that nobody accepted, closes all
// connections, and gives everything back. It waits for calls of Accept and Dial that
// are under way; later ones are INVALID_HANDLE/PSP. A second Close waits for the first
// and does nothing, or tries again what failed.
func (l *Listener) Close() error {
	if l == nil {
		return closedListener("runtime.Listener.Close")
	}
	l.closing.Lock()
	defer l.closing.Unlock()
	errs := []error{l.refuse()}
	for _, c := range l.list() {
		errs = append(errs, c.Close())
	}
	if l.events != nil {
		errs = append(errs, l.events.Close())
	}
	return errors.Join(errs...)
}

// refuse stops listening, waits for the connections that are being made, and rejects
// the requests that wait. No connection is made after it has returned.
func (l *Listener) refuse() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.making.Wait()
	var errs []error
	if l.psp != nil {
		errs = append(errs, l.psp.Close())
	}
	if l.requests != nil {
		errs = append(errs, l.requests.Close()) // rejects the requests in it
	}
	return errors.Join(errs...)
}

// list returns the connections of this moment.
func (l *Listener) list() []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	conns := make([]*Conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	return conns
}
