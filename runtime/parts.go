package runtime

import (
	"context"

	"godat/ep"
	"godat/evd"
	"godat/mem"
)

// What a server has beside DAT's objects.
type (
	// Buffer is a piece of registered memory with one owner; see [mem.Buffer].
	Buffer = mem.Buffer
	// BufferPool hands out buffers; see [mem.BufferPool].
	BufferPool = mem.BufferPool
	// BufferPoolConfig says what a pool is made of; see [mem.BufferPoolConfig].
	BufferPoolConfig = mem.BufferPoolConfig
	// Contexts keeps a T for each outstanding operation; see [evd.Contexts].
	Contexts[T any] = evd.Contexts[T]
	// Credits keep a sender from outrunning its peer; see [ep.Credits].
	Credits = ep.Credits
	// Outbox gathers requests for one batch; see [ep.Outbox].
	Outbox = ep.Outbox
)

// NewContexts makes a table for n operations at a time; see [evd.NewContexts].
func NewContexts[T any](n int) *Contexts[T] { return evd.NewContexts[T](n) }

// NewCredits makes credits for a peer that has posted n receives; see
// [ep.NewCredits].
func NewCredits(n int) *Credits { return ep.NewCredits(n) }

// NewOutbox makes an outbox that holds n requests; see [ep.NewOutbox].
func NewOutbox(e *Endpoint, n int) *Outbox { return ep.NewOutbox(e, n) }

// Until makes a context that ends when the channel is closed; see [evd.Until].
func Until(done <-chan struct{}) context.Context { return evd.Until(done) }
