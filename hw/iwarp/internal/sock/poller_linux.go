package sock

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

// Poller does what consumers do for a device; see Progress. It reads the sockets of the
// connections to which octets have come. A device with one connection has its socket
// read, which is as quick as asking for it. Once it has two, an epoll descriptor of its
// own says which sockets have octets. The poller begins when consumers have polled for a
// while, so a device of a program that doesn't poll has no such descriptor, and pays
// nothing.
type Poller struct {
	// read says that the last call has read octets. What comes next is rarely there yet:
	// often the consumer has answered, and awaits the next request. So the next call reads
	// nothing, and the peer gets the time of a read in vain.
	read  atomic.Bool
	calls atomic.Int32 // callCost for each since the scheduler polled the network, and its reads

	// alone is the only socket that consumers poll; nil once the descriptor is open. The holder
	// of mu stores it. A consumer may still poll a socket whose receiver has left: it finds the
	// right to read taken for good.
	alone atomic.Pointer[Socket]

	found, empty atomic.Uint64 // looks of consumers at sockets

	mu     sync.Mutex          // its holder takes no lock but the netpoll's
	known  map[Socket]struct{} // those that wait for octets, until begun
	begun  bool                // connections are entered
	closed bool
	opened bool // set is open
	// A number that is used again makes a consumer poll another socket in vain, once.
	set epollSet
}

// Progress implements [godat/hw.Progresser].
func (p *Poller) Progress() {
	if p.read.Load() {
		p.read.Store(false)
		return
	}
	read, work := int32(0), true
	if s := p.alone.Load(); s == nil {
		read, work = p.pollReady()
	} else if (*s).Poll() {
		read = 1
	}
	if !work {
		return
	}
	cost := read
	if read > 0 {
		p.found.Add(1)
		p.read.Store(true)
	} else {
		p.empty.Add(1)
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

// Counts counts the looks of consumers that found octets, and those that found none.
func (p *Poller) Counts() (found, empty uint64) { return p.found.Load(), p.empty.Load() }

// pollReady polls the receivers whose sockets the epoll descriptor reports, and returns
// how many have read octets. work is false if there is nothing to do: the device is
// closed, or another consumer is here.
func (p *Poller) pollReady() (read int32, work bool) {
	var all [pollSockets]Socket
	n, work := p.ready(&all)
	for _, s := range all[:n] {
		if s.Poll() {
			read++
		}
	}
	return read, work
}

// ready finds receivers to whose sockets octets may have come. An epoll descriptor
// reports a socket as long as it has octets.
func (p *Poller) ready(all *[pollSockets]Socket) (n int, work bool) {
	if !p.mu.TryLock() {
		return 0, false
	}
	defer p.mu.Unlock()
	if p.closed || len(p.set.numbers) == 0 {
		return 0, !p.closed
	}
	events, _ := p.set.ready()
	for i := range events {
		if s := p.set.sockets[events[i].Fd]; s != nil {
			all[n] = s
			n++
		}
	}
	return n, true
}

// begin makes sure that consumers poll the device's connections, and reports whether
// they do. When it can't, a later call tries again.
func (p *Poller) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun || p.closed {
		return !p.closed
	}
	if network.open() != nil {
		return false
	}
	p.begun = true
	for s := range p.known {
		p.enter(s)
	}
	p.known = nil
	return true
}

// Add lets consumers poll a connection. Its receiver calls it before it waits for octets.
func (p *Poller) Add(s Socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
	case p.begun:
		p.enter(s)
	case p.known == nil:
		p.known = map[Socket]struct{}{s: {}}
	default:
		p.known[s] = struct{}{}
	}
}

// enter is Add for a poller that has begun. mu is held. If the descriptor can't be had, or
// not take the socket, only the receiver reads.
func (p *Poller) enter(s Socket) {
	if !p.opened {
		if p.alone.Load() == nil {
			p.alone.Store(&s)
			return
		}
		if p.set.open() != nil {
			return
		}
		p.opened = true
		p.set.add(*p.alone.Swap(nil), unix.EPOLLIN)
	}
	p.set.add(s, unix.EPOLLIN)
}

// Remove undoes Add, for good. The receiver calls it when it has the right for good.
func (p *Poller) Remove(s Socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, s)
	if a := p.alone.Load(); a != nil && *a == s {
		p.alone.Store(nil)
	} else if !p.closed {
		p.set.remove(s)
	}
}

// Close ends the work of consumers.
func (p *Poller) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	if p.opened {
		_ = unix.Close(p.set.fd)
	}
	if p.begun {
		network.close()
	}
}
