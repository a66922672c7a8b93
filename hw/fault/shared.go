package fault

import (
	"slices"
	"sync"

	"godat/hw"
)

// shared implements [hw.SharedReceiver] for a wrapped device.
type shared struct {
	d     *device
	inner hw.SharedReceiver
}

// NewSRQ implements [hw.SharedReceiver].
func (s shared) NewSRQ(cfg hw.SRQConfig) (hw.SRQ, error) {
	inner, err := s.inner.NewSRQ(cfg)
	if err != nil {
		return nil, err
	}
	q := &sharedQueue{SRQ: inner, dev: s.d}
	q.self = q
	if counter, ok := inner.(hw.SRQCounter); ok {
		q.self = &countedQueue{q, counter}
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.srqs = append(s.d.srqs, q)
	return q.self, nil
}

// countedQueue wraps a shared receive queue that counts its receives.
type countedQueue struct {
	*sharedQueue
	hw.SRQCounter
}

// wrapped returns the wrapper of a shared receive queue; nil for an SRQ that is none.
func wrapped(srq hw.SRQ) *sharedQueue {
	switch s := srq.(type) {
	case *countedQueue:
		return s.sharedQueue
	case *sharedQueue:
		return s
	}
	return nil
}

// sharedQueue wraps a shared receive queue. It replaces the ids of receives and injects
// no fault: the inner device decides which queue pair takes a receive.
type sharedQueue struct {
	hw.SRQ
	dev  *device
	self hw.SRQ // as the owner has it

	mu   sync.Mutex
	ids  []uint64 // the owner's ids, by number
	free []uint32
}

// PostRecv implements [hw.SRQ].
func (s *sharedQueue) PostRecv(wrs []hw.RecvWR) (int, error) {
	own := slices.Clone(wrs)
	s.mu.Lock()
	for i := range own {
		own[i].ID = makeID(idSRQ, 0, s.rename(own[i].ID))
	}
	s.mu.Unlock()
	n, err := s.SRQ.PostRecv(own)
	for _, wr := range own[n:] {
		s.restore(uint32(wr.ID))
	}
	return n, err
}

// rename stores an id and returns its number, with mu held.
func (s *sharedQueue) rename(id uint64) uint32 {
	if k := len(s.free); k > 0 {
		number := s.free[k-1]
		s.free = s.free[:k-1]
		s.ids[number] = id
		return number
	}
	s.ids = append(s.ids, id)
	return uint32(len(s.ids) - 1)
}

// restore returns the id of a number and frees the number.
func (s *sharedQueue) restore(number uint32) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, number)
	return s.ids[number]
}

// Close implements [hw.SRQ].
func (s *sharedQueue) Close() error {
	if err := s.SRQ.Close(); err != nil {
		return err
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	s.dev.srqs = slices.DeleteFunc(s.dev.srqs, func(o *sharedQueue) bool { return o == s })
	return nil
}
