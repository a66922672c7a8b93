package store

import (
	"fmt"
	"sync"
)

// memory is a store that ends with the process. Nothing of it survives, so nothing in
// it is volatile: there is no later moment at which it would be more stable.
type memory struct {
	mu     sync.RWMutex // held shared by calls that touch the memory, alone by Close
	data   []byte
	closed bool
}

// NewMemory makes a store of size bytes, which read as zeros. Where the system can, it
// takes pages when they are written first.
func NewMemory(size int) (Store, error) {
	if size < 1 {
		return nil, fmt.Errorf("store: a memory of %d bytes", size)
	}
	data, err := mapMemory(size)
	if err != nil {
		return nil, fmt.Errorf("store: a memory of %d bytes: %w", size, err)
	}
	return &memory{data: data}, nil
}

func (m *memory) Memory() []byte { return m.data }

func (m *memory) Volatile() bool { return false }

func (m *memory) Flush(int, int) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.check()
}

func (m *memory) Zero(off, n int) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.check(); err != nil {
		return err
	}
	clear(m.data[off : off+n])
	return nil
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	return unmapMemory(m.data)
}

func (m *memory) check() error {
	if m.closed {
		return ErrClosed
	}
	return nil
}
