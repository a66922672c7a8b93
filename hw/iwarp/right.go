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
	r       *receiver
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
func (p *parties) take() {
	p.r.right.Acquire()
	yield.Point()
	p.r.own.Acquire()
}

// give undoes take.
func (p *parties) give() {
	p.r.own.Release()
	yield.Point()
	p.r.right.Give()
}

// park gives the right up for a wait.
func (p *parties) park() {
	p.r.link.dev.waits.Add(1)
	p.r.limitRest()
	p.r.atRest()
	p.r.in.release()
	p.parked = true
	p.give()
}

// resume takes the right back after a wait.
func (p *parties) resume() {
	if p.parked {
		p.take()
		p.parked = false
	}
}

// Poll implements [sock.Socket].
func (p *parties) Poll() (came bool) {
	if !p.r.right.TryAcquire() {
		return false
	}
	p.r.own.Acquire()
	p.came = false
	// Not Read of a RawConn: the receiver holds that lock while it waits. If the connection
	// is closed already, the receiver finds that out.
	_ = p.r.port.call(p.pollFn)
	came = p.came
	p.give()
	return came
}

// pollReads is the most reads of one poll. A poll reads again when a part of an FPDU has
// come, because the rest has probably come too. So many reads take what a peer in the same
// process writes in its turn, in the longest FPDUs: otherwise ever more would wait in the
// socket, until it is in no near cache any more when it is read.
const pollReads = 12

// pollOnce is what Poll does with the descriptor.
func (p *parties) pollOnce(fd uintptr) {
	if p.r.err != nil || p.r.end != nil {
		return // the receiver has to see that
	}
	for n := 1; p.pollRead(int(fd)) && n < pollReads; n++ {
	}
	if p.r.end == nil {
		p.r.limitRest()
	}
	p.r.in.release()
}

// pollRead is one read of a poll. It reports whether another is worth it.
func (p *parties) pollRead(fd int) (more bool) {
	again := p.r.readMore(fd)
	yield.Point()
	if again {
		return false
	}
	p.came = true
	if p.r.err == nil {
		p.r.end = p.r.process()
	}
	return p.r.err == nil && p.r.end == nil && p.r.partial()
}

// outdated reports whether err says that a deadline has passed that was not the latest
// one.
func (p *parties) outdated(err error) bool {
	p.r.own.Check()
	return expired(err) && p.r.limits != p.mark && p.r.link.attention.Load()&(broken|bounded) == 0
}

// Watch implements [hw.Watcher].
func (p *parties) Watch(look func(parks bool) bool) bool {
	if !p.r.right.Watch(p.interruptAsked) {
		return false
	}
	p.look, p.over = look, false
	err := p.r.port.raw.Read(p.watchFn)
	if err != nil { // of a wait
		look(false)
		p.over = p.over || !p.r.link.settle()
	}
	p.look = nil
	p.r.right.Leave(p.over)
	return true
}

// watchRead reads what has come, for the watcher.
func (p *parties) watchRead(fd uintptr) bool {
	if p.look(false) {
		return true
	}
	p.take()
	parks, came := false, false
	for !parks && !came && !p.over {
		switch {
		case p.r.err != nil || p.r.end != nil || p.r.link.attention.Load()&(broken|bounded) != 0:
			p.over = true
		case p.r.readMore(int(fd)):
			parks = true
		default:
			if p.r.err == nil {
				p.r.end = p.r.process()
			}
			came = p.look(false)
			if parks = !came && p.r.dry(); parks {
				p.r.inPlace.pause()
			}
		}
	}
	if p.r.end == nil {
		p.r.limitRest()
	}
	p.r.in.release() // the program may take its time before it comes again
	p.give()
	return !parks || p.look(true)
}

// Need implements [hw.Watcher].
func (p *parties) Need(sleeps bool) { p.r.right.Need(sleeps) }

// Disturb implements [hw.Watcher].
func (p *parties) Disturb() { p.interrupt(sock.Watcher) }

// interruptAsked has the receiver's goroutine answer a goroutine that has asked for the socket.
func (p *parties) interruptAsked() { p.interrupt(sock.Asked) }

// Control implements [sock.Socket].
func (p *parties) Control(f func(fd uintptr)) error { return p.r.port.raw.Control(f) }

// Hang implements [sock.Socket].
func (p *parties) Hang() {
	p.r.right.Hang()
	yield.Point()
	p.interrupt(sock.Receiver | sock.Asked | sock.Watcher)
}

// interrupt ends the present wait for octets, or the next one, if one of the set waits.
func (p *parties) interrupt(set sock.Waiter) {
	l := p.r.link
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if p.r.right.Waits(set) && !l.Dead && !l.interrupted {
		l.interrupted = true
		_ = l.conn.SetReadDeadline(past)
	}
}

// answerAsked lends the socket to the goroutine that has asked for it, if one has.
func (p *parties) answerAsked() {
	switch {
	case !p.r.right.Waits(sock.Asked):
	case p.r.link.attention.Load()&(broken|bounded) != 0:
		p.r.right.Refuse()
	default:
		p.park()
		p.r.right.Grant()
		p.resume()
	}
}
