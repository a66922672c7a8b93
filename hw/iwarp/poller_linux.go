package iwarp

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// netpollEvery is how many calls of Progress the scheduler polls the network for; a read
// that finds octets counts as one more. That is so seldom that it costs little, and so
// often that other sockets of the program wait for less than 0.1 ms.
const netpollEvery = 20

// pollSockets is the most sockets that one call of Progress reads.
const pollSockets = 16

// poller does what consumers do for a device; see Progress: it reads the sockets of the
// connections to which octets have come. A device with one connection has its socket
// read, which is as quick as asking for it. Once it has two, an epoll descriptor of its
// own says which sockets have octets. The poller begins when consumers have polled for a
// while, so a device of a program that doesn't poll has no such descriptor, and pays
// nothing.
type poller struct {
	dev *device // immutable

	// read says that the last call has read octets. What comes next is rarely there yet:
	// often the consumer has answered, and awaits the next request. So the next call reads
	// nothing, and the peer gets the time of a read in vain.
	read  atomic.Bool
	calls atomic.Int32 // since the scheduler polled the network, and reads

	mu     sync.Mutex // its holder takes no lock but connsMu and the netpoll's
	begun  bool       // connections are entered
	closed bool
	alone  *receiver // the only receiver that consumers poll; nil once the descriptor is open
	opened bool      // epoll is open
	epoll  int
	// The receivers of the epoll descriptor's sockets, by the number in their events. A
	// number that is used again makes a consumer poll another socket in vain, once.
	receivers []*receiver
	free      []int32
	events    [pollSockets]unix.EpollEvent
}

// progress does what Progress does.
func (p *poller) progress() {
	var ready [pollSockets]*receiver
	n, work := p.ready(&ready)
	if !work {
		return
	}
	read := int32(0)
	for _, r := range ready[:n] {
		if r.poll() {
			read++
		}
	}
	if read > 0 {
		p.read.Store(true)
	}
	switch {
	case p.calls.Add(1+read) >= netpollEvery && p.begin():
		p.calls.Store(0)
		network.run()
	case read == 0:
		network.join()
	}
}

// ready finds receivers to whose sockets octets may have come. An epoll descriptor
// reports a socket as long as it has octets. ready returns false if there is nothing to
// do: the device is closed, or another consumer is here, or the call before has read.
func (p *poller) ready(all *[pollSockets]*receiver) (n int, work bool) {
	if !p.mu.TryLock() {
		return 0, false
	}
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return 0, false
	case p.read.Load():
		p.read.Store(false)
		return 0, false
	case p.alone != nil:
		all[0] = p.alone
		return 1, true
	case len(p.receivers) == len(p.free):
		return 0, true
	}
	got, _ := unix.EpollWait(p.epoll, p.events[:], 0)
	for i := range max(got, 0) {
		if r := p.receivers[p.events[i].Fd]; r != nil {
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
	p.dev.connsMu.Lock()
	defer p.dev.connsMu.Unlock()
	for c := range p.dev.conns {
		p.enter(&c.recv)
	}
	return true
}

// The values of readRight.slot that are no numbers, which count from 1 there.
const (
	notEntered = 0
	left       = -1
	alone      = -2
)

// add lets consumers poll a connection. Its receiver calls it before it waits for octets.
func (p *poller) add(r *receiver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun && !p.closed {
		p.enter(r)
	}
}

// enter is add for a poller that has begun. mu is held. If the descriptor can't be had, or
// not take the socket, only the receiver reads.
func (p *poller) enter(r *receiver) {
	switch {
	case r.staged() || r.right.slot != notEntered:
	case !p.opened && p.alone == nil:
		p.alone, r.right.slot = r, alone
	case !p.opened:
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return
		}
		first := p.alone
		p.alone, p.epoll, p.opened = nil, fd, true
		first.right.slot = notEntered
		p.watch(first)
		p.watch(r)
	default:
		p.watch(r)
	}
}

// watch has the epoll descriptor report a receiver's socket. mu is held.
func (p *poller) watch(r *receiver) {
	i := int32(len(p.receivers))
	if k := len(p.free); k > 0 {
		i = p.free[k-1]
	}
	err := p.control(r, unix.EPOLL_CTL_ADD, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: i})
	switch {
	case err != nil:
		return
	case i == int32(len(p.receivers)):
		p.receivers = append(p.receivers, r)
	default:
		p.free = p.free[:len(p.free)-1]
		p.receivers[i] = r
	}
	r.right.slot = int(i) + 1
}

// remove undoes add, for good. The receiver calls it when it has the right for good.
func (p *poller) remove(r *receiver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch i := r.right.slot - 1; {
	case r.right.slot == alone:
		p.alone = nil
	case i >= 0 && !p.closed:
		_ = p.control(r, unix.EPOLL_CTL_DEL, nil)
		p.receivers[i] = nil
		p.free = append(p.free, int32(i))
	}
	r.right.slot = left
}

func (p *poller) control(r *receiver, op int, ev *unix.EpollEvent) error {
	var err error
	if e := r.raw.Control(func(fd uintptr) { err = unix.EpollCtl(p.epoll, op, int(fd), ev) }); e != nil {
		return e
	}
	return err
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
		_ = unix.Close(p.epoll)
	}
	if p.begun {
		network.close()
	}
}
