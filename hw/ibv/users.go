//go:build linux && cgo

package ibv

import "sync"

// users counts the users of an object and, separately, the device's queue pairs that
// still refer to it although their owner has closed or reset them: an attempt to
// connect that the kernel is still busy with keeps such a queue pair alive. Closing the
// object waits for those, and fails while there are users.
type users struct {
	mu     sync.Mutex
	gone   sync.Cond // signals that left is 0; L is mu
	n      int       // users
	left   int       // queue pairs that were closed or reset and still refer to the object
	closed bool
}

// use counts a new user, unless the object is closed.
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

// unuse undoes use.
func (u *users) unuse() {
	u.mu.Lock()
	u.n--
	u.mu.Unlock()
}

// leave counts a queue pair that its owner has closed or reset and that still refers to
// the object; depart undoes leave when the queue pair is destroyed.
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

// end closes the object when it has no users, and then waits until left is 0. It
// returns the number of users, and whether the object was closed before.
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

// reopen undoes end, when the device refuses to free the object.
func (u *users) reopen() {
	u.mu.Lock()
	u.closed = false
	u.mu.Unlock()
}
