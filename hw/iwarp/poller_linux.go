package iwarp

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// The scheduler polls the network after netpollEvery calls of Progress that find nothing,
// or callCost times as many reads that find octets. That is so seldom that it costs
// little: each time that it does, the receivers wake and read in vain. And it is so often
// that other sockets of the program wait for about 10 µs beside a consumer that finds
// nothing, and for 0.1 ms beside one that makes round trips.
const (
	netpollEvery = 12
	callCost     = 4
)

// pollSockets is the most sockets that one call of Progress reads.
const pollSockets = 16

// poller does what consumers do for a device; see Progress: it reads the sockets of the
// connections to which octets have come. A device with one connection has its socket
// read, which is as quick as asking for it. Once it has two, an epoll descriptor of its
// own says which sockets have octets. The poller begins when consumers have polled for a
// while, so a device of a program that doesn't poll has no such descriptor, and pays
// nothing.
type poller struct {
	// read says that the last call has read octets. What comes next is rarely there yet:
	// often the consumer has answered, and awaits the next request. So the next call reads
	// nothing, and the peer gets the time of a read in vain.
	read  atomic.Bool
	calls atomic.Int32 // callCost for each since the scheduler polled the network, and its reads

	// alone is the only receiver that consumers poll; nil once the descriptor is open. The
	// holder of mu stores it. A consumer may still poll a receiver that
	// has left: it finds the right to read taken for good.
	alone atomic.Pointer[receiver]

	mu     sync.Mutex             // its holder takes no lock but the netpoll's
	known  map[*receiver]struct{} // those that wait for octets, until begun
	begun  bool                   // connections are entered
	closed bool
	opened bool // sockets is open
	// A number that is used again makes a consumer poll another socket in vain, once.
	sockets epollSet
}

// progress does what Progress does.
func (p *poller) progress() {
	if p.read.Load() {
		p.read.Store(false)
		return
	}
	read, work := int32(0), true
	if r := p.alone.Load(); r == nil {
		read, work = p.pollReady()
	} else if r.poll() {
		read = 1
	}
	if !work {
		return
	}
	cost := read
	if read > 0 {
		p.read.Store(true)
	} else {
		cost = callCost
	}
	switch {
	case p.calls.Add(cost) >= netpollEvery*callCost && p.begin():
		p.calls.Store(0)
		network.run()
	case read == 0:
		network.join()
	}
}

// join waits if a consumer is parked until the scheduler polls the network.
func (p *poller) join() { network.join() }

// pollReady polls the receivers whose sockets the epoll descriptor reports, and returns
// how many have read octets. work is false if there is nothing to do: the device is
// closed, or another consumer is here.
func (p *poller) pollReady() (read int32, work bool) {
	var all [pollSockets]*receiver
	n, work := p.ready(&all)
	for _, r := range all[:n] {
		if r.poll() {
			read++
		}
	}
	return read, work
}

// ready finds receivers to whose sockets octets may have come. An epoll descriptor
// reports a socket as long as it has octets.
func (p *poller) ready(all *[pollSockets]*receiver) (n int, work bool) {
	if !p.mu.TryLock() {
		return 0, false
	}
	defer p.mu.Unlock()
	if p.closed || p.sockets.empty() {
		return 0, !p.closed
	}
	events, _ := p.sockets.ready()
	for i := range events {
		if r := p.sockets.receivers[events[i].Fd]; r != nil {
			all[n] = r
			n++
		}
	}
	return n, true
}

// begin makes sure that consumers poll the device's connections, and reports whether
// they do. When it can't, a later call tries again.
func (p *poller) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun || p.closed {
		return !p.closed
	}
	if network.open() != nil {
		return false
	}
	p.begun = true
	for r := range p.known {
		p.enter(r)
	}
	p.known = nil
	return true
}

// The values of receiver.slot that are no numbers, which count from 1 there.
const (
	notEntered = 0
	left       = -1
	alone      = -2
)

// add lets consumers poll a connection. Its receiver calls it before it waits for octets.
func (p *poller) add(r *receiver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
	case p.begun:
		p.enter(r)
	case p.known == nil:
		p.known = map[*receiver]struct{}{r: {}}
	default:
		p.known[r] = struct{}{}
	}
}

// enter is add for a poller that has begun. mu is held. If the descriptor can't be had, or
// not take the socket, only the receiver reads.
func (p *poller) enter(r *receiver) {
	switch {
	case r.staged() || r.slot != notEntered:
	case !p.opened && p.alone.Load() == nil:
		r.slot = alone
		p.alone.Store(r)
	case !p.opened:
		if p.sockets.open() != nil {
			return
		}
		first := p.alone.Swap(nil)
		p.opened = true
		first.slot = notEntered
		p.watch(first)
		p.watch(r)
	default:
		p.watch(r)
	}
}

// watch has the epoll descriptor report a receiver's socket. mu is held.
func (p *poller) watch(r *receiver) {
	if i, err := p.sockets.add(r, unix.EPOLLIN); err == nil {
		r.slot = int(i) + 1
	}
}

// remove undoes add, for good. The receiver calls it when it has the right for good.
func (p *poller) remove(r *receiver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, r)
	switch i := r.slot - 1; {
	case r.slot == alone:
		p.alone.Store(nil)
	case i >= 0 && !p.closed:
		p.sockets.remove(r, int32(i))
	}
	r.slot = left
}

// close ends the work of consumers.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	if p.opened {
		_ = unix.Close(p.sockets.fd)
	}
	if p.begun {
		network.close()
	}
}
