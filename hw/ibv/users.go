//go:build linux && cgo

package ibv

import "sync"

// users counts who uses an object, and who has left without being gone: an attempt
// to connect that the kernel is still at keeps a queue pair of the device's alive
// behind the back of its owner. Closing waits for those, and fails for the others.
type users struct {
	mu     sync.Mutex
	gone   sync.Cond // none has left without being gone; L is mu
	n      int
	left   int
	closed bool
}

// use counts a user in, unless the object is closed.
func (u *users) use() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.n++
	}
	return !u.closed
}

func (u *users) isClosed() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.closed
}

// unuse counts a user out.
func (u *users) unuse() {
	u.mu.Lock()
	u.n--
	u.mu.Unlock()
}

// leave notes something that left and is not gone; depart that it has gone.
func (u *users) leave() {
	u.mu.Lock()
	u.left++
	u.mu.Unlock()
}

func (u *users) depart() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.left--; u.left == 0 && u.gone.L != nil {
		u.gone.Broadcast()
	}
}

// end closes the object when nobody uses it. It reports who does, and whether the
// object was closed before.
func (u *users) end() (n int, closed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.n > 0 {
		return u.n, u.closed
	}
	u.closed = true
	u.gone.L = &u.mu
	for u.left > 0 {
		u.gone.Wait()
	}
	return 0, false
}

// reopen undoes end.
func (u *users) reopen() {
	u.mu.Lock()
	u.closed = false
	u.mu.Unlock()
}
