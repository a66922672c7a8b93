package ep

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"godat/ep/internal/life"
	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
)

// pointKind names a kind of service point in errors.
type pointKind struct {
	name   string
	handle hw.Subtype
}

var (
	kindPSP = pointKind{"ep.PSP", hw.HandlePSP}
	kindRSP = pointKind{"ep.RSP", hw.HandleRSP}
	kindCSP = pointKind{"ep.CSP", hw.HandleCSP}
)

// PSPFlags say who makes the endpoints of a service point: DAT_PSP_FLAGS, with its
// numbers.
type PSPFlags uint8

// The makers of endpoints.
const (
	// PSPConsumer: the program accepts with an endpoint that it made.
	PSPConsumer PSPFlags = 0 // the program, which accepts with one of its own
	// PSPProvider: each request comes with an endpoint in state
	// TENTATIVE_CONNECTION_PENDING, without zone and dispatchers. The program sets
	// those with Modify, and accepts with CR.Accept(nil, …). The endpoint is freed
	// when its request is rejected or handed off.
	PSPProvider PSPFlags = 1 // each request brings an endpoint, which Modify completes
)

// pointRegistry has the service points of an adapter, and the requests that came to them.
type pointRegistry struct {
	endpointRegistry
	points table[*point, *point]
	ended  endedPoints
	crs    table[*CR, *CR] // not answered yet
}

// point is a service point: a listener, and a dispatcher that gets the requests. PSP,
// RSP and CSP are points with the methods that DAT gives each of them.
type point struct {
	// Immutable after start.
	adapter  *pointRegistry
	number   uint64
	self     io.Closer // the service point: the source of its events
	to       *evd.Dispatcher
	asked    string    // the address that the program gave
	backlog  int       // the most requests that may wait for an answer
	refusal  []byte    // private data for peers whose requests are declined
	flags    PSPFlags  // of a PSP
	comm     Comm      // of a CSP
	reserved *Endpoint // that of an RSP: it gets the first request, and others are refused
	listener hw.Listener

	starting sync.WaitGroup // of start: a request may come, and with it the point, before there is a listener

	used atomic.Bool // the request of an RSP has come, or can't come any more

	mu      sync.Mutex
	waiting int            // requests not answered yet
	counted pointCounts    // since the point was made
	taking  sync.WaitGroup // requests that are not announced yet; none is added once closed is set
	closed  bool
	label   string         // of the sums, if it is not the point's name
	past    *PointSnapshot // the sums that have the counts; nil while it is listed

	closing sync.Mutex // close holds it from beginning to end
	gone    bool       // under closing: nothing is left to close
}

// pointCounts are what a service point counts; its mu guards them.
type pointCounts struct{ accepted, rejected, handedOff, overflows uint64 }

// requestFeed is what a point feeds its dispatcher with.
var requestFeed = delivery.Feed{Streams: event.StreamCR}

// start begins to listen; self is the point as its own kind. Requests may come before
// start returns.
func (p *point) start(op string, self io.Closer, addr string, qual uint64) error {
	a := p.adapter
	p.self, p.number, p.asked = self, points.Add(1), addr
	p.starting.Add(1)
	defer p.starting.Done()
	if err := cmp.Or(a.ownEVD(op, p.to, hw.HandleEVDCR), checkAddress(op, addr, qual, hw.Arg2)); err != nil {
		return err
	}
	if err := wiring(p.to).Feeds().Attach(requestFeed); err != nil {
		return wrap(op, err)
	}
	asked := p.backlog
	p.backlog = cmp.Or(asked, defaultBacklog)
	l, err := a.cfg.Device.Listen(hw.ListenConfig{Addr: addr, Qual: qual, Backlog: asked, OnRequest: p.onRequest, OnDrop: a.cfg.Dropped})
	if err != nil {
		wiring(p.to).Feeds().Detach(requestFeed)
		return wrap(op, err)
	}
	p.listener = l
	a.points.put(p, p)
	a.counters.points.whole.Add(1)
	return nil
}

// defaultBacklog is how many requests may wait for an answer by default.
const defaultBacklog = 128

func (p *point) onRequest(r hw.Request) bool { return p.admit(r, r.Qual()) == nil }

var (
	errPointClosed = &hw.Error{Type: hw.ConnQualUnavailable, Text: "the service point does not listen any more"}
	errBacklog     = &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceTEVD, Text: "the service point has no room for another request"}
)

// admit makes a connection request of one that a provider or another service point
// has, and announces it. After an error that one still belongs to its caller.
func (p *point) admit(r hw.Request, qual uint64) error {
	if err := p.count(); err != nil {
		return err
	}
	cr := &CR{at: p, number: requests.Add(1), request: r, qual: qual}
	cr.private, cr.truncated = r.Private()
	cr.local, cr.remote = split(r.Local()), split(r.Remote())
	if err := p.prepare(cr); err != nil {
		p.answered(nil)
		p.taking.Done()
		return err
	}
	p.adapter.crs.put(cr, cr)
	if e := p.reserved; e != nil {
		e.facts.asked = &arrival{cr.request, cr.announce}
		e.box.Tell(line.TellAsked) // the endpoint's step announces it
	} else {
		cr.announce()
	}
	return nil
}

// prepare gives a request the endpoint that comes with it, if any.
func (p *point) prepare(cr *CR) (err error) {
	switch {
	case p.reserved != nil:
		if !p.used.CompareAndSwap(false, true) {
			return errPointClosed
		}
		cr.own = p.reserved
	case p.flags == PSPProvider:
		const op = "ep.NewPSP"
		attr, err := (*Attr)(nil).resolve(op, p.adapter.attr)
		if err != nil {
			return err
		}
		if cr.own, err = p.adapter.make(op, Config{}, attr); err != nil {
			return err
		}
		cr.own.profile.setAddresses(cr.local.addr, cr.remote.addr)
	}
	return nil
}

// count counts one more request, unless the point is closed or has its most. The
// caller calls taking.Done if the request is refused; announce calls it otherwise.
func (p *point) count() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return errPointClosed
	case p.waiting >= p.backlog:
		p.counted.overflows++
		return errBacklog
	}
	p.waiting++
	p.taking.Add(1)
	return nil
}

// answered counts one request less that waits. n, unless it is nil, counts the answer.
func (p *point) answered(n *uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	if n != nil {
		p.counts(n)
	}
}

// String names the point as its own kind.
func (p *point) String() string { return fmt.Sprint(p.self) }

// isMade reports whether an adapter has made the service point.
func (p *point) isMade() bool { return p != nil && p.adapter != nil }

// query returns what is wrong with a query.
func (p *point) query(k pointKind) error { return p.alive(k.name+".Query", k) }

// home returns the adapter.
func (p *point) home(k pointKind) (ia any, err error) {
	if err := p.alive("runtime.IAOf", k); err != nil {
		return nil, err
	}
	return p.adapter.cfg.IA, nil
}

// alive refuses a service point that is nil or closed.
func (p *point) alive(op string, k pointKind) error {
	if !p.isMade() {
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: k.handle, Text: "the service point is nil or zero"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: k.handle, Text: "the service point is closed"}
	}
	return nil
}

// close stops listening. When it returns, no request is on its way in any more. A
// second closer waits for the first. If the device refuses, the point admits no
// more requests but stays listed in the adapter, and may be closed once more.
func (p *point) close(k pointKind) error {
	op := k.name + ".Close"
	if !p.isMade() {
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: k.handle, Text: "the service point is nil or zero"}
	}
	p.starting.Wait()
	p.closing.Lock()
	defer p.closing.Unlock()
	if p.gone {
		return nil
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.taking.Wait()
	if err := p.listener.Close(); err != nil {
		return wrap(op, err)
	}
	if p.reserved != nil && p.used.CompareAndSwap(false, true) {
		_ = p.reserved.ctl.change(op, life.InRelease) // it fails if the provider failed meanwhile
	}
	wiring(p.to).Feeds().Detach(requestFeed)
	p.gone = true
	p.adapter.counters.pointsFreed.whole.Add(1)
	// Last: an adapter's close that no longer sees the point must find it closed, and counted.
	p.leave()
	return nil
}

func (p *point) qual() uint64 {
	if !p.isMade() {
		return 0
	}
	p.starting.Wait()
	return p.listener.Qual()
}

func (p *point) addr() net.Addr {
	if !p.isMade() {
		return nil
	}
	p.starting.Wait()
	return p.listener.Addr()
}

// at returns the service point that listens on a qualifier, or nil.
func (a *pointRegistry) at(qual uint64) *point {
	for _, p := range a.points.list() {
		if p.qual() == qual {
			return p
		}
	}
	return nil
}
