package hwtest

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// rig is the set-up of a case: two open devices that reach each other. When the case
// ends, the rig closes all objects in order and checks each queue pair's books.
type rig struct {
	tb   testing.TB
	must *require.Assertions
	also *assert.Assertions
	cfg  Config
	a, b *host

	hosts []*host
}

func newRig(tb testing.TB, cfg Config) *rig {
	r := &rig{tb: tb, must: require.New(tb), also: assert.New(tb), cfg: cfg}
	tb.Cleanup(r.close)
	r.a = r.open(0)
	r.b = r.open(1)
	return r
}

// open opens one of the two devices, with a pump if it is polled.
func (r *rig) open(i int) *host {
	h := r.openUnpumped(i)
	h.start()
	return h
}

// openUnpumped opens a device without a pump: the case polls it.
func (r *rig) openUnpumped(i int) *host {
	h := &host{rig: r, index: i, name: fmt.Sprintf("%c%d", 'a'+rune(i), len(r.hosts))}
	dev, err := r.cfg.Provider.Open(hw.OpenConfig{Device: r.cfg.Devices[i], Params: r.cfg.Params, Async: h.onAsync})
	r.must.NoError(err)
	h.consumers = startConsumers(dev, r.cfg.Consumers)
	h.dev, h.attr = dev, dev.Attr()
	if h.polled, _ = dev.(hw.Polled); h.polled != nil {
		h.wait = h.polled.Wait
	}
	h.zone, err = dev.NewZone()
	r.must.NoError(err)
	r.hosts = append(r.hosts, h)
	return h
}

// close closes everything. After a failure it goes on with the rest.
func (r *rig) close() {
	for _, h := range r.hosts {
		h.endAll()
	}
	for _, h := range r.hosts {
		h.close()
		h.consumers.end()
	}
}

// host is one open device and what was made on it.
type host struct {
	rig       *rig
	index     int // of the two devices, which of them it is
	name      string
	dev       hw.Device
	attr      hw.Attr
	polled    hw.Polled // nil when completions go to sinks
	pump      *pump
	consumers *consumers
	zone      hw.Zone
	zones     []hw.Zone // further zones that the case made
	cqs       []hw.CQ   // completion queues that several ends share
	closed    bool

	solicitedOnly bool          // for completion queues made from now on
	wait          func() error  // how the case waits: the device's Wait, or its Sleep
	waiter        chan struct{} // closed when the case's own wait has returned

	mu        sync.Mutex
	ends      []*end
	tags      []tag
	asyncs    []hw.AsyncEvent
	bad       []string
	regions   []*region
	listeners []*listener
	front     *listener // the listener that join uses
	pools     []*pool
	later     []func() // close calls them when the queue pairs are closed, before it frees the regions
}

// tag says which queues of which end complete into a completion queue with
// this tag.
type tag struct {
	end    int // anyEnd when several share it
	queues [2]bool
}

const anyEnd = -1

func (t tag) fits(end int, q direction) bool {
	return t.end == anyEnd || t.end == end && t.queues[q]
}

// start starts the pump of a polled device.
func (h *host) start() {
	if h.polled != nil && h.pump == nil && !h.closed {
		h.pump = &pump{host: h, dev: h.polled, done: make(chan struct{})}
		if s, ok := h.dev.(hw.Sleeper); ok && h.index == 1 { // so the cases see both
			go h.pump.sleep(s)
		} else {
			go h.pump.run()
		}
	}
}

func (h *host) onAsync(ev hw.AsyncEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asyncs = append(h.asyncs, ev)
}

func (h *host) violate(bad string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bad = append(h.bad, bad)
}

// route hands a polled completion to the end that its id names.
func (h *host) route(wc hw.WC) {
	h.mu.Lock()
	i, queue := endOf(wc.ID), direction(wc.ID>>idQueueShift&1)
	if pooled(wc.ID) {
		i, queue = int(wc.QP), recvQueue
	}
	var e *end
	switch {
	case wc.ID&idTag == 0 || i >= len(h.ends):
		h.bad = append(h.bad, fmt.Sprintf("polled id %#x is of no end", wc.ID))
	case int(wc.CQ) >= len(h.tags) || !h.tags[wc.CQ].fits(i, queue):
		h.bad = append(h.bad, fmt.Sprintf("polled id %#x carries the tag %d, of another queue", wc.ID, wc.CQ))
	default:
		e = h.ends[i]
	}
	h.mu.Unlock()
	if e == nil {
		return
	}
	e.mu.Lock()
	e.completeLocked(queue, wc)
	e.mu.Unlock()
	e.cond.Broadcast()
	e.answers()
}

// option changes a queue pair's configuration.
type option func(*hw.QPConfig)

func depth(send, recv int) option {
	return func(c *hw.QPConfig) { c.SendDepth, c.RecvDepth = send, recv }
}

func reads(in, out int) option {
	return func(c *hw.QPConfig) { c.ReadsIn, c.ReadsOut = in, out }
}

func notReady(d time.Duration) option { return func(c *hw.QPConfig) { c.NotReady = d } }

func segments(n int) option {
	return func(c *hw.QPConfig) { c.SendSegments, c.RecvSegments = n, n }
}

// defaultDepth is the depth of both queues unless an option sets another.
const defaultDepth = 32

// newEnd makes a queue pair. On a polled device both queues of every second one complete
// into one completion queue.
func (h *host) newEnd(opts ...option) *end {
	e := &end{host: h}
	e.cond.L = &e.mu
	e.cfg = hw.QPConfig{
		Zone: h.zone, Facts: facts{e}, SendDepth: defaultDepth, RecvDepth: defaultDepth,
		SendSegments: min(4, h.attr.MaxSendSegments), RecvSegments: min(4, h.attr.MaxRecvSegments),
		ReadsIn: min(4, h.attr.MaxReadsIn), ReadsOut: min(4, h.attr.MaxReadsOut),
	}
	for _, o := range opts {
		o(&e.cfg)
	}
	h.mu.Lock()
	e.index = len(h.ends)
	h.ends = append(h.ends, e)
	h.mu.Unlock()
	e.cfg.SendEnd, e.cfg.RecvEnd = e.id(sendQueue, idEnd), e.id(recvQueue, idEnd)
	if h.polled == nil {
		e.cfg.SendSink, e.cfg.RecvSink = sinksOf(e)
	} else if e.cfg.SendCQ != nil {
		// the case made a shared completion queue
	} else if e.index%2 == 0 {
		e.cfg.SendCQ = h.newCQ(e, e.cfg.SendDepth+1, tag{end: e.index, queues: [2]bool{sendQueue: true}})
		e.cfg.RecvCQ = h.newCQ(e, e.cfg.RecvDepth+1, tag{end: e.index, queues: [2]bool{recvQueue: true}})
	} else {
		e.cfg.SendCQ = h.newCQ(e, e.cfg.SendDepth+e.cfg.RecvDepth+2, tag{end: e.index, queues: [2]bool{true, true}})
		e.cfg.RecvCQ = e.cfg.SendCQ
	}
	e.begin()
	qp, err := h.dev.NewQP(e.cfg)
	h.rig.must.NoError(err)
	e.qp = qp
	return e
}

// newCQ makes a completion queue. The end closes it, or the host when e is nil.
func (h *host) newCQ(e *end, depth int, t tag) hw.CQ {
	h.mu.Lock()
	h.tags = append(h.tags, t)
	n := uint32(len(h.tags) - 1)
	h.mu.Unlock()
	cq, err := h.polled.NewCQ(hw.CQConfig{Depth: depth, Tag: n, SolicitedOnly: h.solicitedOnly})
	h.rig.must.NoError(err)
	h.rig.also.GreaterOrEqual(cq.Depth(), depth, "a completion queue holds what was asked for")
	if e != nil {
		e.cqs = append(e.cqs, cq)
	} else {
		h.cqs = append(h.cqs, cq)
	}
	return cq
}

// newZone makes a zone that stays until the case ends.
func (h *host) newZone() hw.Zone {
	zone, err := h.dev.NewZone()
	h.rig.must.NoError(err)
	h.zones = append(h.zones, zone)
	return zone
}

// listener is a listener that queues the requests that it gets.
type listener struct {
	hw.Listener
	host     *host
	requests chan hw.Request
	refuse   atomic.Bool
	closed   bool
	before   atomic.Pointer[func()] // called with each request, if set, before OnRequest returns
}

// requestRoom is more requests than any case makes.
const requestRoom = 256

// listen makes a listener; with Qual 0 the provider chooses the qualifier.
func (h *host) listen(cfg hw.ListenConfig) *listener {
	l := &listener{host: h, requests: make(chan hw.Request, requestRoom)}
	cfg.OnRequest = l.onRequest
	var err error
	l.Listener, err = h.dev.Listen(cfg)
	h.rig.must.NoError(err)
	h.listeners = append(h.listeners, l)
	return l
}

func (l *listener) onRequest(r hw.Request) bool {
	if l.refuse.Load() {
		return false
	}
	if before := l.before.Load(); before != nil {
		(*before)()
	}
	l.requests <- r
	return true
}

// next waits for a request and returns it.
func (l *listener) next() hw.Request {
	return receive(l.host.rig, l.requests, "a connection request on "+l.host.name)
}

// nextOf waits for the request whose private data begins like that, and drops those before.
func (l *listener) nextOf(private string) hw.Request {
	for {
		req := l.next()
		if got, _ := req.Private(); bytes.HasPrefix(got, []byte(private)) {
			return req
		}
	}
}

func (l *listener) close() {
	l.closed = true
	l.host.rig.must.NoError(l.Listener.Close())
}

// connect starts an attempt to connect e to l.
func (e *end) connect(l *listener, private []byte) {
	e.host.rig.must.NoError(e.tryConnect(hw.ConnectConfig{Addr: l.host.attr.Address, Qual: l.Qual(), Private: private}))
}

func (e *end) tryConnect(cfg hw.ConnectConfig) error {
	e.calls.Lock()
	defer e.calls.Unlock()
	return e.qp.Connect(cfg)
}

// accept accepts a request with e.
func (e *end) accept(r hw.Request, private []byte) error {
	e.calls.Lock()
	defer e.calls.Unlock()
	return r.Accept(e.qp, private)
}

// request starts an attempt to connect a to a listener of h, and returns the request that
// comes there.
func (h *host) request(a *end, private []byte) hw.Request {
	if h.front == nil {
		h.front = h.listen(hw.ListenConfig{})
	}
	a.connect(h.front, private)
	return h.front.next()
}

// join connects a to b and waits until both are up.
func (r *rig) join(a, b *end) {
	if r.cfg.Paired {
		r.pairUp(a, b)
		return
	}
	r.must.NoError(b.accept(b.host.request(a, nil), nil))
	a.awaitUp()
	b.awaitUp()
}

// reconnect takes two ends whose queues have ended into a new life, together.
func (r *rig) reconnect(a, b *end) {
	a.reset()
	b.reset()
	r.join(a, b)
	roundTrip(r, a, b)
}

// pair makes two connected queue pairs, one on each device.
func (r *rig) pair(opts ...option) (a, b *end) {
	a, b = r.a.newEnd(opts...), r.b.newEnd(opts...)
	r.join(a, b)
	return a, b
}
