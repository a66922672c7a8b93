//go:build linux && cgo

package ibv

import (
	"sync"
	"syscall"
)

// users counts the users of an object and, separately, the device's queue pairs that
// still refer to it although their owner has closed or reset them: an attempt to
// connect that the kernel is still busy with keeps such a queue pair alive. Closing the
// object fails while there are users. It leaves freeing the object to the last of those
// queue pairs, which the device's Close waits for.
type users struct {
	mu     sync.Mutex
	n      int // users
	left   int // queue pairs that were closed or reset and still refer to the object
	closed bool
	free   func() syscall.Errno // frees the closed object when left is 0; nil: done, or not closed
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
	u.left--
	var free func() syscall.Errno
	if u.left == 0 {
		free, u.free = u.free, nil
	}
	u.mu.Unlock()
	if free != nil {
		_ = free() // the owner is told of no error any more
	}
}

// end closes the object when it has no users. It frees the object, or leaves that to the
// departure of the last queue pair that still refers to it. It returns the number of
// users, whether the object was closed before, and what free returned.
func (u *users) end(free func() syscall.Errno) (n int, closed bool, errno syscall.Errno) {
	u.mu.Lock()
	if u.closed || u.n > 0 {
		defer u.mu.Unlock()
		return u.n, u.closed, 0
	}
	u.closed = true
	if u.left > 0 {
		u.free = free
		u.mu.Unlock()
		return 0, false, 0
	}
	u.mu.Unlock()
	return 0, false, free()
}

// reopen undoes end, when the device refuses to free the object.
func (u *users) reopen() {
	u.mu.Lock()
	u.closed = false
	u.mu.Unlock()
}
