package evd

import (
	"context"
	"time"
)

// Until makes a context that ends when the channel is closed, for Wait and the
// other calls that a context ends: a program that has a channel for its end needs
// no goroutine to cancel a context with. The channel is closed, never sent to.
//
// It allocates nothing. context.WithTimeout adds a time limit.
func Until(done <-chan struct{}) context.Context { return until(done) }

// until is a channel that is a context.
type until <-chan struct{}

// Deadline implements [context.Context]: there is none.
func (until) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done implements [context.Context].
func (u until) Done() <-chan struct{} { return u }

// Err implements [context.Context]: it is context.Canceled once the channel is
// closed.
func (u until) Err() error {
	select {
	case <-u:
		return context.Canceled
	default:
		return nil
	}
}

// Value implements [context.Context]: there is none.
func (until) Value(any) any { return nil }
