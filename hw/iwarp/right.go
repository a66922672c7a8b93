package iwarp

import (
	"godat/hw/iwarp/internal/sock"
	"godat/internal/yield"
)

// The receiver's parties to the right to read (package sock), which is the right to change the
// receiver's state, too.
//
//   - A consumer leaves the rest as the receiver would leave it before a wait: with a
//     limit for the time that the rest of an FPDU may take, and without an empty buffer.
//   - A consumer that finds an error leaves it to the receiver, and no consumer reads from
//     then on. The receiver hears of it: the network poller reports the end of a stream and
//     a reset, which no read takes away; and an error in the octets ends the connection (die)
//     or has a Terminate sent, behind which the token's holder ends it.
//   - A watcher that finds an error, or a deadline that has passed, gives the socket back, and
//     leaves the rest to the receiver's goroutine: it finds both, because the error stays with
//     the receiver and the deadline with the socket. What ends the connection, or limits
//     the receiver's time, takes a free socket back, and interrupts a watcher by the deadline.
//   - A deadline that ends the receiver's wait may be out of date when the receiver has
//     the right: another party may have got what the deadline was for. So the receiver waits
//     again if the limit was changed since the wait began; a new limit that has passed too
//     ends the next wait at once.
//   - An interrupt is a deadline that has passed. It is marked in the link, under its lock,
//     which keeps the receiver's deadline meanwhile. The goroutine whose wait an interrupt
//     has ended settles it, and waits under that deadline again. If that one has passed, too,
//     the wait has ended by it, or a watcher that comes back at once would hide it for ever.
//   - The receiver's goroutine never gives the right up when it leaves. So consumers
//     don't touch what the token's holder flushes then.
type parties struct {
	// Immutable.
	pollFn  func(fd uintptr)
	watchFn func(fd uintptr) bool

	// Owned by the receiver's goroutine.
	parked bool // it has given the right up for a wait
	mark   int  // reader.limits when the wait began

	// Owned by the consumer that has the right.
	came bool // its poll found octets, or an error

	// Owned by the watcher.
	over bool // the receiver's goroutine has to see to something
	look func(parks bool) bool
}

// take makes the caller the receiver's owner, as soon as nobody else reads.
func (r *receiver) take() {
	r.right.Take()
	yield.Point()
	r.own.Acquire()
}

// give undoes take.
func (r *receiver) give() {
	r.own.Release()
	yield.Point()
	r.right.Give()
}

// park gives the right up for a wait.
func (r *receiver) park() {
	r.limitRest()
	r.in.release()
	r.parties.parked = true
	r.give()
}

// resume takes the right back after a wait.
func (r *receiver) resume() {
	if r.parties.parked {
		r.take()
		r.parties.parked = false
	}
}

// Poll implements [sock.Socket].
func (r *receiver) Poll() (came bool) {
	if !r.right.TryTake() {
		return false
	}
	r.own.Acquire()
	r.parties.came = false
	// Not Read of a RawConn: the receiver holds that lock while it waits. If the connection
	// is closed already, the receiver finds that out.
	_ = r.port.call(r.parties.pollFn)
	came = r.parties.came
	r.give()
	return came
}

// pollReads is the most reads of one poll. A poll reads again when a part of an FPDU has
// come, because the rest has probably come too. So many reads take what a peer in the same
// process writes in its turn, in the longest FPDUs: otherwise ever more would wait in the
// socket, until it is in no near cache any more when it is read.
const pollReads = 12

// pollOnce is what Poll does with the descriptor.
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
	r.parties.came = true
	if r.err == nil {
		r.end = r.process()
	}
	return r.err == nil && r.end == nil && r.partial()
}

// outdated reports whether err says that a deadline has passed that was not the latest
// one.
func (r *receiver) outdated(err error) bool {
	r.own.Check()
	return expired(err) && r.limits != r.parties.mark && r.link.attention.Load()&(broken|bounded) == 0
}

// Watch implements [hw.Watcher].
func (r *receiver) Watch(look func(parks bool) bool) bool {
	if !r.right.Watch(r.interruptAsked) {
		return false
	}
	p := &r.parties
	p.look, p.over = look, false
	err := r.port.raw.Read(p.watchFn)
	if err != nil { // of a wait
		look(false)
		p.over = p.over || !r.link.settle()
	}
	p.look = nil
	r.right.Leave(p.over)
	return true
}

// watchRead reads what has come, for the watcher.
func (r *receiver) watchRead(fd uintptr) bool {
	p := &r.parties
	if p.look(false) {
		return true
	}
	r.take()
	parks, came := false, false
	for !parks && !came && !p.over {
		switch {
		case r.err != nil || r.end != nil || r.link.attention.Load()&(broken|bounded) != 0:
			p.over = true
		case r.readMore(int(fd)):
			parks = true
		default:
			if r.err == nil {
				r.end = r.process()
			}
			came = p.look(false)
			if parks = !came && r.dry(); parks {
				r.direct.pause()
			}
		}
	}
	if r.end == nil {
		r.limitRest()
	}
	r.in.release() // the program may take its time before it comes again
	r.give()
	return !parks || p.look(true)
}

// Need implements [hw.Watcher].
func (r *receiver) Need(sleeps bool) { r.right.Need(sleeps) }

// Disturb implements [hw.Watcher].
func (r *receiver) Disturb() { r.interrupt(sock.Watcher) }

// interruptAsked has the receiver's goroutine answer a goroutine that has asked for the socket.
func (r *receiver) interruptAsked() { r.interrupt(sock.Asked) }

// Control implements [sock.Socket].
func (r *receiver) Control(f func(fd uintptr)) error { return r.port.raw.Control(f) }

// Hang implements [sock.Socket].
func (r *receiver) Hang() {
	r.right.Hang()
	yield.Point()
	r.interrupt(sock.Receiver | sock.Asked | sock.Watcher)
}

// interrupt ends the present wait for octets, or the next one, if one of the set waits.
func (r *receiver) interrupt(set sock.Waiter) {
	l := r.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.right.Waits(set) && !l.dead && !l.interrupted {
		l.interrupted = true
		_ = l.conn.SetReadDeadline(past)
	}
}

// answerAsked lends the socket to the goroutine that has asked for it, if one has.
func (r *receiver) answerAsked() {
	switch {
	case !r.right.Waits(sock.Asked):
	case r.link.attention.Load()&(broken|bounded) != 0:
		r.right.Refuse()
	default:
		r.park()
		r.right.Lend()
		r.resume()
	}
}
