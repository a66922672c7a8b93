package runtime

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
)

// Stop stops listening, and keeps the connections: it rejects the requests that nobody
// accepted, and frees the address for another listener. It waits for calls of Accept and
// Dial that are under way; later ones are INVALID_HANDLE/PSP. If a Setup has not returned for 5
// seconds, that is logged, Stop goes on, and the connection of that Setup fails. [event.Closed] comes on Requests,
// and not on Events. Shutdown or Close ends the rest. Stop of a listener that is stopped or
// closed does nothing; a nil listener is INVALID_HANDLE/PSP.
func (l *Listener) Stop() error {
	if !l.isMade() {
		return closedListener("runtime.Listener.Stop")
	}
	if err := l.refuseInCalls("runtime.Listener.Stop"); err != nil {
		return err
	}
	return l.refuse()
}

// Shutdown ends the listener in order. It stops listening as [Listener.Stop] does, ends all
// connections at the same time as [Conn.Shutdown] does, which waits for the messages that
// the program has, and gives everything back. The program need not receive events
// meanwhile: what is in the channels stays there, the ends included, until the program reads
// it. A message that the program has not taken when Shutdown begins is not handled: Message
// returns nil for it, and its peer sees the end of the connection in place of an answer. So
// a server loses no answer that it gave.
//
// When ctx ends, Shutdown breaks the connections that have not ended. The error matches the
// cause of ctx then, and says how many connections were cut off, how many of their messages
// the program had, and how many were not sent. A nil ctx is INVALID_PARAMETER, a nil
// listener INVALID_HANDLE/PSP.
func (l *Listener) Shutdown(ctx context.Context) error {
	const op = "runtime.Listener.Shutdown"
	if !l.isMade() {
		return closedListener(op)
	}
	if ctx == nil {
		return nilContext(op)
	}
	if err := l.refuseInCalls(op); err != nil {
		return err
	}
	refused := l.refuse()
	return errors.Join(refused, drainAll(ctx, op, l.list()), l.Close())
}

// Close stops listening, rejects the requests that nobody accepted, closes all
// connections, and gives everything back. It waits for calls of Accept and Dial that
// are under way, as Stop does; later ones are INVALID_HANDLE/PSP. A second Close waits for the first
// and does nothing, or tries again what failed.
func (l *Listener) Close() error {
	if !l.isMade() {
		return closedListener("runtime.Listener.Close")
	}
	if err := l.refuseInCalls("runtime.Listener.Close"); err != nil {
		return err
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
	l.awaitMade()
	var errs []error
	if psp := l.psp.Load(); psp != nil {
		errs = append(errs, psp.Close())
	}
	if l.requests != nil {
		errs = append(errs, l.requests.Close()) // rejects the requests in it
	}
	return errors.Join(errs...)
}

// awaitMade waits for calls of Accept and Dial under way, though not for ever: they call Setup. One that
// goes on behind the close fails.
func (l *Listener) awaitMade() {
	l.mu.Lock()
	if l.making > 0 && l.made == nil {
		l.made = make(chan struct{})
	}
	made := l.made
	l.mu.Unlock()
	if made == nil {
		return
	}
	limit := time.NewTimer(l.ia.hookTime)
	defer limit.Stop()
	select {
	case <-made:
	case <-limit.C:
		_ = l.ia.pool.upcall(func() {
			l.ia.log.Error("Setup of a connection has not returned, and the listener closes without it", zap.Duration("after", l.ia.hookTime), zap.Stringer("listener", l))
		})
	}
}

func (l *Listener) list() []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.conns))
}
