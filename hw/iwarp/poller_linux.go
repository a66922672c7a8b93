package iwarp

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// The scheduler polls the network for every netpollEvery calls of Progress that find
// nothing, or for fewer that read sockets, each of which takes as long as readWeight
// others. That is so seldom that it costs little, and so often that other sockets of the
// program wait for less than 0.1 ms.
const (
	netpollEvery = 20
	readWeight   = 4
)

// pollSockets is the most sockets that one call of Progress reads.
const pollSockets = 16

// poller does what consumers do for a device; see Progress: it reads the sockets of the
// connections to which octets have come. An epoll descriptor of its own says which. The
// poller opens its descriptors when consumers have polled for a while, so programs that
// don't poll have none, and pay nothing.
type poller struct {
	dev *device // immutable

	mu     sync.Mutex // a leaf
	calls  int        // since the scheduler polled the network, weighted
	opened bool
	closed bool
	net    netpoll // immutable once opened
	epoll  int
	// The receivers that consumers poll, by the number in their sockets' events. A number
	// that is used again makes a consumer poll another socket in vain, once.
	receivers []*receiver
	free      []int32
	events    [pollSockets]unix.EpollEvent
}

// progress does what Progress does.
func (p *poller) progress() {
	if !p.mu.TryLock() {
		return // another consumer is asking the same
	}
	var ready [pollSockets]*receiver
	n := p.ready(&ready)
	p.calls += 1 + n*readWeight
	look := p.calls >= netpollEvery && p.open()
	if look {
		p.calls = 0
	}
	p.mu.Unlock()
	for _, r := range ready[:n] {
		r.poll()
	}
	switch {
	case look:
		p.net.run()
	case n == 0:
		p.net.join()
	}
}

// ready finds receivers to whose sockets octets have come. An epoll descriptor reports a
// socket as long as it has octets. mu is held.
func (p *poller) ready(all *[pollSockets]*receiver) (n int) {
	if len(p.receivers) == len(p.free) || p.closed {
		return 0
	}
	got, _ := unix.EpollWait(p.epoll, p.events[:], 0)
	for i := range max(got, 0) {
		if r := p.receivers[p.events[i].Fd]; r != nil {
			all[n] = r
			n++
		}
	}
	return n
}

// open opens the descriptors if they are not open, and reports whether they are. When it
// can't, the caller's next look tries again. mu is held.
func (p *poller) open() bool {
	if p.opened || p.closed {
		return p.opened && !p.closed
	}
	if p.openBoth() != nil {
		return false
	}
	p.opened = true
	p.dev.connsMu.Lock()
	defer p.dev.connsMu.Unlock()
	for c := range p.dev.conns {
		p.enter(&c.recv)
	}
	return true
}

func (p *poller) openBoth() (err error) {
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	if err = p.net.open(); err != nil {
		_ = unix.Close(p.epoll)
	}
	return err
}

// The values of readRight.slot that are no numbers, which count from 1 there.
const (
	notEntered = 0
	left       = -1
)

// add lets consumers poll a connection. Its receiver calls it before it waits for octets.
func (p *poller) add(r *receiver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened && !p.closed {
		p.enter(r)
	}
}

// enter is add for open descriptors. mu is held.
func (p *poller) enter(r *receiver) {
	if r.staged() || r.right.slot != notEntered {
		return
	}
	i := int32(len(p.receivers))
	if k := len(p.free); k > 0 {
		i = p.free[k-1]
	}
	err := p.control(r, unix.EPOLL_CTL_ADD, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: i})
	switch {
	case err != nil: // only the receiver reads
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
	if i := r.right.slot - 1; i >= 0 && !p.closed {
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

// close ends the work of consumers. A consumer that is parked runs on.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened && !p.closed {
		_ = p.net.close()
		_ = unix.Close(p.epoll)
	}
	p.closed = true
}
