package iwarp

import (
	"sync"

	"godat/internal/yield"
)

// readRight is the right to read a connection's socket, and to change the receiver's
// state. The receiver's goroutine has it from the beginning, and gives it up while it
// waits for octets. A consumer that polls takes it if it is free, reads once, processes
// what it has read, and gives it up. No consumer waits for it.
//
//   - No octets are left in the socket. While the receiver waits, the network poller
//     reports all octets that come, except those that a consumer reads before. The
//     receiver then waits for the right, and reads until nothing is left. So a
//     consumer may leave octets in the socket, and need not poll again.
//   - A consumer leaves the rest as the receiver would leave it before a wait: with a
//     limit for the time that the rest of an FPDU may take, and without an empty buffer.
//   - A consumer that finds an error leaves it to the receiver, and no consumer reads from
//     then on. The receiver hears of it: the network poller reports the end of a stream and
//     a reset, which no read takes away; and an error in the octets ends the connection (die)
//     or has a Terminate sent, behind which the token's holder ends it.
//   - A deadline that ends the receiver's wait may be out of date when the receiver has
//     the right: a consumer may have got what the deadline was for. So the receiver waits
//     again if the limit was changed since the wait began; a new limit that has passed too
//     ends the next wait at once.
//   - The receiver's goroutine never gives the right up when it leaves. So consumers
//     don't touch what the token's holder flushes then.
type readRight struct {
	mu sync.Mutex

	// Owned by the receiver's goroutine.
	parked bool // the right was given up for a wait
	mark   int  // reader.limits when the wait began

	// Owned by the holder of mu.
	came bool // the present poll found octets, or an error

	pollFn func(fd uintptr)
	slot   int // see poller, which guards it
}

// park gives the right up for a wait.
func (r *receiver) park() {
	r.limitRest()
	r.in.release()
	r.right.parked = true
	r.own.Release()
	yield.Point()
	r.right.mu.Unlock()
}

// resume takes the right back after a wait.
func (r *receiver) resume() {
	if r.right.parked {
		r.right.mu.Lock()
		yield.Point()
		r.right.parked = false
		r.own.Acquire()
	}
}

// poll reads and processes what has come, for a consumer, unless another goroutine has
// the right. It reports whether anything had come.
func (r *receiver) poll() (came bool) {
	if !r.right.mu.TryLock() {
		return false
	}
	r.own.Acquire()
	r.right.came = false
	// Not Read of a RawConn: the receiver holds that lock while it waits. If the connection
	// is closed already, the receiver finds that out.
	_ = r.port.call(r.right.pollFn)
	came = r.right.came
	r.own.Release()
	yield.Point()
	r.right.mu.Unlock()
	return came
}

// pollReads is the most reads of one poll. A poll reads again when a part of an FPDU has
// come, because the rest has probably come too. So many reads take what a peer in the same
// process writes in its turn, in the longest FPDUs: otherwise ever more would wait in the
// socket, until it is in no near cache any more when it is read.
const pollReads = 12

// pollOnce is what poll does with the descriptor.
func (r *receiver) pollOnce(fd uintptr) {
	if r.err != nil || r.end != nil {
		return // the receiver has to see that
	}
	for n := 1; r.pollRead(int(fd)) && n < pollReads; n++ {
	}
	if r.end == nil {
		r.limitRest()
	}
	r.in.release()
}

// pollRead is one read of a poll. It reports whether another is worth it.
func (r *receiver) pollRead(fd int) (more bool) {
	again := r.readMore(fd)
	yield.Point()
	if again {
		return false
	}
	r.right.came = true
	if r.err == nil {
		r.end = r.process()
	}
	return r.err == nil && r.end == nil && r.partial()
}

// outdated reports whether err says that a deadline has passed that was not the latest
// one.
func (r *receiver) outdated(err error) bool {
	r.own.Check()
	return expired(err) && r.limits != r.right.mark && r.link.attention.Load()&(broken|bounded) == 0
}
