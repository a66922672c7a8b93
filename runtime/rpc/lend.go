package rpc

import (
	"errors"
	"sync"

	"godat/hw"
	"godat/mem"
)

// loans are the regions that calls of a client, or requests of a server, register for the
// time of an operation. Its close waits for them: the zone is closed behind it.
type loans struct {
	mu   sync.Mutex
	over bool           // end was called: there are no new ones
	all  sync.WaitGroup // none begins once over is set
}

// begin counts a loan; false behind end.
func (l *loans) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.all.Add(1)
	}
	return !l.over
}

// end lets no more loans begin, and waits for those there are. The caller has ended the
// connections, for which their holders wait.
func (l *loans) end() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.all.Wait()
}

// lend registers memory for the time of do, which gets nil for memory without a byte.
func (l *loans) lend(pz *mem.PZ, memory []byte, rights hw.Privileges, do func(m *mem.LMR) error) error {
	if len(memory) == 0 {
		return do(nil)
	}
	return l.during(func() (*mem.LMR, error) { return pz.Register(memory, rights) }, do)
}

// borrow makes memory for the time of do, to which the peer may write. The system gives its pages as bytes
// come, so a length that a peer names takes nothing yet.
func (l *loans) borrow(pz *mem.PZ, size int, do func(m *mem.LMR) error) error {
	return l.during(func() (*mem.LMR, error) { return pz.Alloc(size, hw.LocalWrite|hw.RemoteWrite) }, do)
}

// during calls do with a region that it makes, and frees.
func (l *loans) during(region func() (*mem.LMR, error), do func(m *mem.LMR) error) error {
	if !l.begin() {
		return ErrEnded
	}
	defer l.all.Done()
	m, err := region()
	if err != nil {
		return err
	}
	err = do(m)
	if freed := m.Free(); freed != nil {
		err = errors.Join(err, freed)
	}
	return err
}

// segment is all of a region, or none of it.
func segment(m *mem.LMR, n int) mem.Segment {
	if m == nil {
		return mem.Segment{}
	}
	return m.Segment(0, n)
}
