package ep

import (
	"cmp"
	"io"
	"net"
	"sync"

	"godat/evd"
	"godat/hw"
)

// point is what the service points have in common: something that listens, and a
// dispatcher that hears of requests.
type point struct {
	// Immutable after start.
	adapter  *Adapter
	self     io.Closer // the service point: the source of its events
	handle   hw.Subtype
	to       *evd.Dispatcher
	backlog  int             // the most requests waiting for an answer
	offer    func(*CR) error // announces a request its own way; may be nil
	listener hw.Listener

	mu      sync.Mutex
	waiting int // requests not answered yet
	closed  bool
}

// start listens. Requests may come before it returns.
func (p *point) start(op, addr string, qual uint64) error {
	a := p.adapter
	if err := p.to.Attach(evd.StreamCR); err != nil {
		return wrap(op, err)
	}
	asked := p.backlog
	p.backlog = cmp.Or(asked, defaultBacklog)
	l, err := a.dev.Listen(hw.ListenConfig{Addr: addr, Qual: qual, Backlog: asked, OnRequest: p.onRequest})
	if err != nil {
		p.to.Detach()
		return wrap(op, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	p.listener = l
	a.points[p] = struct{}{}
	a.counters.points.Add(1)
	return nil
}

// defaultBacklog is how many requests may wait for an answer unless the program
// says otherwise.
const defaultBacklog = 128

func (p *point) onRequest(r hw.Request) bool { return p.take(r, r.Qual()) == nil }

var (
	errPointClosed = &hw.Error{Type: hw.ConnQualUnavailable, Text: "the service point does not listen any more"}
	errBacklog     = &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceTEVD, Text: "the service point has no room for another request"}
)

// take makes a connection request of what a provider or another service point has,
// and announces it. After an error it is still theirs.
func (p *point) take(r hw.Request, qual uint64) (err error) {
	if err := p.count(); err != nil {
		return err
	}
	cr := &CR{at: p, request: r, qual: qual}
	cr.private, cr.truncated = r.Private()
	p.adapter.addCR(cr)
	if p.offer == nil {
		cr.announce()
		return nil
	}
	if err = p.offer(cr); err != nil {
		p.adapter.removeCR(cr)
		p.answered()
	}
	return err
}

// count counts one more request, if there may be one.
func (p *point) count() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return errPointClosed
	case p.waiting >= p.backlog:
		return errBacklog
	}
	p.waiting++
	return nil
}

// answered counts one less.
func (p *point) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
}

// open refuses a point that is closed, and a mask that names what is no field.
func (p *point) open(op string, mask, all uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: p.handle, Text: "the service point is closed"}
	case mask&^all != 0:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "mask %#x has bits that name no field", mask)
	}
	return nil
}

// close stops listening. It reports false if somebody did already.
func (p *point) close(op string) (bool, error) {
	p.mu.Lock()
	was := p.closed
	p.closed = true
	p.mu.Unlock()
	if was {
		return false, nil
	}
	err := p.listener.Close()
	p.adapter.mu.Lock()
	delete(p.adapter.points, p)
	p.adapter.counters.pointsFreed.Add(1)
	p.adapter.mu.Unlock()
	p.to.Detach()
	return true, wrap(op, err)
}

func (p *point) qual() uint64 { return p.listener.Qual() }

func (p *point) addr() net.Addr { return p.listener.Addr() }

// at is the service point that listens on a qualifier, or nil.
func (a *Adapter) at(qual uint64) *point {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p := range a.points {
		if p.qual() == qual {
			return p
		}
	}
	return nil
}
