package evd

import (
	"context"
	"time"
)

// Until returns a context that ends when done is closed. With it a program that
// signals its end by a channel needs no goroutine that cancels a context for Wait
// and the other calls that take one. done must only be closed, never sent to.
//
// Until allocates nothing. context.WithTimeout adds a time limit.
func Until(done <-chan struct{}) context.Context { return until(done) }

// until is a channel with the methods of a context.
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
