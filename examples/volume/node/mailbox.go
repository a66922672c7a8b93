package node

import "sync"

// mailbox has functions for a goroutine, in their order. Whoever puts one in never waits.
type mailbox struct {
	*mails
	filled chan struct{}
}

type mails struct {
	mu     sync.Mutex
	queue  []func()
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
	m.drain()
}

// drain runs all functions.
func (m mailbox) drain() {
	m.mu.Lock()
	queue := m.queue
	m.queue = nil
	m.mu.Unlock()
	for _, f := range queue {
		f()
	}
}
