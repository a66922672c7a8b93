package node

import (
	"context"
	"sync"
)

// mailbox has functions for a goroutine, in their order. Whoever puts one in never waits.
type mailbox struct {
	*mails
	filled chan struct{}
}

type mails struct {
	mu     sync.Mutex
	queue  []func()
	all    uint64 // that were put in
	closed bool
}

func newMailbox() mailbox { return mailbox{new(mails), make(chan struct{}, 1)} }

// put puts a function in. It reports false, and does not, when the mailbox is closed.
func (m mailbox) put(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.queue = append(m.queue, f)
	m.all++
	select {
	case m.filled <- struct{}{}:
	default:
	}
	return true
}

// close takes no more functions, and runs those that are there.
func (m mailbox) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.drain(context.Background())
}

// drain runs the functions that are there, until ctx ends. The others stay.
func (m mailbox) drain(ctx context.Context) {
	m.mu.Lock()
	queue := m.queue
	m.queue = nil
	m.mu.Unlock()
	for len(queue) != 0 && ctx.Err() == nil {
		f := queue[0]
		queue = queue[1:]
		f()
	}
	if len(queue) != 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.queue = append(queue, m.queue...)
	}
}
