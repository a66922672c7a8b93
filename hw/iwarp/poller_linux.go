package iwarp

import "sync"

// netpollEvery is how many calls of Progress there are between two looks at the network:
// so many that they cost little, and so few that other sockets of the program wait for
// less than 0.1 ms.
const netpollEvery = 20

// poller does what consumers do for a device; see Progress. It opens its descriptors when
// consumers have polled for a while, so programs that don't poll have none.
type poller struct {
	mu     sync.Mutex // a leaf; a consumer only tries it, because its holder does the work already
	calls  int
	open   bool // the descriptors are open
	closed bool
	net    netpoll // immutable once open
}

// progress does what Progress does.
func (p *poller) progress() {
	if !p.mu.TryLock() {
		return
	}
	p.calls++
	due := p.calls%netpollEvery == 0 && p.ready()
	p.mu.Unlock()
	if due {
		p.net.run()
	}
}

// ready opens the descriptors if they are not open. When it can't, it tries again at the
// next look. mu is held.
func (p *poller) ready() bool {
	if !p.open && !p.closed {
		p.open = p.net.open() == nil
	}
	return p.open && !p.closed
}

// close ends the work of consumers. A consumer that is parked runs on.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open && !p.closed {
		_ = p.net.close()
	}
	p.closed = true
}
