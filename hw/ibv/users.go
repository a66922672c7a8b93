//go:build linux && cgo

package ibv

import (
	"sync"

	"godat/hw"
)

// users counts the users of an object and, separately, the device's queue pairs that
// still refer to it although their owner has closed or reset them: an attempt to
// connect that the kernel is still busy with keeps such a queue pair alive. Closing the
// object fails while there are users. It leaves freeing the object to the last of those
// queue pairs, which the device's Close waits for.
type users struct {
	dev    *device // immutable
	mu     sync.Mutex
	n      int // users
	left   int // queue pairs that were closed or reset and still refer to the object
	closed bool
	free   func() error // frees the closed object when left is 0; nil: done, or not closed
}

// usable says how errors call a kind of objects that have users.
type usable struct {
	name   string
	handle hw.Subtype // of a closed object
	inUse  hw.Subtype // of one that can't be closed
	users  string
}

var (
	zones  = usable{"zone", hw.HandlePZ, hw.StatePZInUse, "objects use the zone"}
	queues = usable{"completion queue", hw.NoSubtype, hw.StateEVDInUse, "queues attached"}
	shares = usable{"shared queue", hw.HandleSRQ, hw.StateSRQInUse, "queue pairs attached"}
)

func (u *users) self() *users { return u }

// use finds the device's object behind a handle and counts a user of it. It fails when the
// handle is none of the device's, or is closed.
func use[O interface {
	comparable
	self() *users
}](op string, d *device, handle any, k *usable) (own O, err error) {
	var none O
	switch own, _ = handle.(O); {
	case own == none || own.self().dev != d:
		return none, hw.Errorf(op, hw.InvalidHandle, k.handle, "not a %s of this device", k.name)
	case !own.self().use():
		return none, hw.Errorf(op, hw.InvalidHandle, k.handle, "the %s is closed", k.name)
	}
	return own, nil
}

// close closes the object when it has no users, and reports whether it did. It frees the object,
// and returns free's error, or leaves that to the departure of the last queue pair that still
// refers to it.
func (u *users) close(op string, k *usable, free func() error) (ended bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.closed:
		return false, hw.Errorf(op, hw.InvalidHandle, k.handle, "closed twice")
	case u.n > 0:
		return false, hw.Errorf(op, hw.InvalidState, k.inUse, "%d %s", u.n, k.users)
	}
	u.closed = true
	if u.left > 0 {
		u.free = free
		return true, nil
	}
	return true, free()
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
	u.left--
	if u.left == 0 && u.free != nil {
		_ = u.free() // the owner is told of no error any more
		u.free = nil
	}
}

// reopen undoes close, when the device refuses to free the object.
func (u *users) reopen() {
	u.mu.Lock()
	u.closed = false
	u.mu.Unlock()
}
