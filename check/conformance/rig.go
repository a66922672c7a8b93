package conformance

import (
	"context"
	"fmt"
	"net"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// patience is how long a case waits for something that must happen. On an emulated
// machine -conformance.patience sets it higher.
var patience = 20 * time.Second

// rig is what a case works with: it makes objects, and closes all of them when the
// case is over.
type rig struct {
	*testing.T
	p    Provider
	undo []func() error
	ias  []*dat.IA
	last func() // called after the adapters are closed; may be nil

	// take, if set, gets the next event of a dispatcher in place of a wait; notify
	// has the CNOs of those dispatchers, by adapter.
	take   func(*evd.Dispatcher) event.Event
	notify map[*dat.IA]*evd.CNO
}

func newRig(t *testing.T, p Provider) *rig {
	r := &rig{T: t, p: p}
	if p.Driven {
		r.take = r.poll
	}
	r.Cleanup(func() {
		r.closeAll()
		if r.last != nil {
			r.last()
		}
	})
	return r
}

// each runs one cell of a table as a subtest with a rig of its own. What the cells
// leave behind is found when the case is over.
func (r *rig) each(name string, f func(*rig)) {
	r.Run(name, func(t *testing.T) { f(newRig(t, r.p)) })
}

// later registers f to be called when the case is over, before everything
// registered earlier.
func (r *rig) later(f func() error) { r.undo = append(r.undo, f) }

// made requires that an object was made, and registers its close.
func (r *rig) made(err error, undo func() error) {
	require.NoError(r, err)
	r.later(undo)
}

// soon returns a context for something that must happen within patience.
func (r *rig) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.later(func() error { cancel(); return nil })
	return ctx
}

// open opens an adapter.
func (r *rig) open(opts ...dat.Option) *dat.IA {
	return r.openNamed(r.p.IA, r.p.options(opts...)...)
}

func (r *rig) openNamed(name string, opts ...dat.Option) *dat.IA {
	ia, err := dat.Open(r.soon(), name, opts...)
	require.NoError(r, err)
	r.ias = append(r.ias, ia)
	return ia
}

// node is an adapter with a zone.
type node struct {
	rig *rig
	ia  *dat.IA
	pz  *mem.PZ
}

func (r *rig) node(opts ...dat.Option) *node {
	n := &node{rig: r, ia: r.open(opts...)}
	n.pz = n.zone()
	return n
}

func (n *node) zone() *mem.PZ {
	pz, err := n.ia.NewPZ()
	n.rig.made(err, pz.Close)
	return pz
}

// addr returns the address of the adapter, to which peers connect.
func (n *node) addr() string { return n.ia.Attr().Address }

// dispatcher makes a dispatcher of qlen places, for all streams unless some are
// given.
func (n *node) dispatcher(qlen int, streams ...event.Streams) *evd.Dispatcher {
	cfg := evd.Config{QLen: qlen}
	for _, s := range streams {
		cfg.Streams |= s
	}
	if n.rig.notify != nil {
		if n.rig.notify[n.ia] == nil {
			n.rig.notify[n.ia] = n.cno()
		}
		cfg.CNO = n.rig.notify[n.ia]
	}
	return n.dispatcherOf(cfg)
}

func (n *node) dispatcherOf(cfg evd.Config) *evd.Dispatcher {
	d, err := n.ia.NewDispatcher(cfg)
	n.rig.made(err, d.Close)
	return d
}

// lmr makes a region with all privileges.
func (n *node) lmr(size int) *mem.LMR { return n.region(n.pz, size, hw.AllPrivileges) }

// allPrivileges returns all privileges that the device supports.
func (n *node) allPrivileges() hw.Privileges {
	if n.ia.Attr().Ops.Has(hw.OpFetchAdd) {
		return hw.AllPrivileges | hw.RemoteAtomic
	}
	return hw.AllPrivileges
}

func (n *node) region(pz *mem.PZ, size int, priv hw.Privileges) *mem.LMR {
	m, err := pz.Alloc(size, priv)
	n.rig.made(err, m.Free)
	return m
}

func (n *node) register(b []byte, priv hw.Privileges) *mem.LMR {
	m, err := n.pz.Register(b, priv)
	n.rig.made(err, m.Free)
	return m
}

// end is an endpoint with dispatchers of its own and a region.
type end struct {
	rig             *rig
	node            *node
	ep              *ep.Endpoint
	conn, recv, req *evd.Dispatcher
	mem             *mem.LMR

	// Set by some cases.
	peer *end     // the other end of the connection
	cr   *ep.CR   // the request that it is to answer
	rmr  *mem.RMR // a window to bind
	open *mem.LMR // a region with all privileges
}

// endMem is the size of an end's region in bytes.
const endMem = 64 << 10

// end makes an endpoint. change may change its configuration, and set dispatchers
// in place of the end's own.
func (n *node) end(change ...func(*ep.Config)) *end {
	cfg := ep.Config{PZ: n.pz, Attr: &ep.Attr{}}
	for _, f := range change {
		f(&cfg)
	}
	depth := func(n int) int { return max(64, n) }
	if cfg.Conn == nil {
		cfg.Conn = n.dispatcher(8, event.StreamConnection)
	}
	if cfg.Recv == nil {
		cfg.Recv = n.dispatcher(depth(cfg.Attr.MaxRecvDTOs), event.StreamDTO)
	}
	if cfg.Request == nil {
		cfg.Request = n.dispatcher(depth(cfg.Attr.MaxRequestDTOs), event.StreamDTO, event.StreamBind)
	}
	e := &end{rig: n.rig, node: n, conn: cfg.Conn, recv: cfg.Recv, req: cfg.Request, mem: n.lmr(endMem)}
	e.ep = n.endpoint(cfg)
	return e
}

func (n *node) endpoint(cfg ep.Config) *ep.Endpoint {
	ep, err := n.ia.NewEndpoint(cfg)
	n.rig.made(err, ep.Close)
	return ep
}

// attr returns a change of an end's attributes, for [node.end].
func attr(f func(*ep.Attr)) func(*ep.Config) {
	return func(cfg *ep.Config) { f(cfg.Attr) }
}

// service is a service point and its dispatcher.
type service struct {
	rig  *rig
	node *node
	psp  *ep.PSP
	cr   *evd.Dispatcher
}

func (n *node) listen() *service {
	return n.listenOn(ep.PSPConfig{Dispatcher: n.dispatcher(16, event.StreamCR)})
}

func (n *node) listenOn(cfg ep.PSPConfig) *service {
	psp, err := n.ia.NewPSP(cfg)
	n.rig.made(err, psp.Close)
	return &service{rig: n.rig, node: n, psp: psp, cr: cfg.Dispatcher}
}

// at returns the configuration to connect to a service.
func (s *service) at() ep.ConnectConfig {
	return ep.ConnectConfig{Addr: s.node.addr(), Qual: s.psp.Qual()}
}

// hostPort returns the address to connect to a service by CommonConnect.
func (s *service) hostPort() string { return hostPort(s.node.addr(), s.psp.Qual()) }

func hostPort(addr string, qual uint64) string { return net.JoinHostPort(addr, fmt.Sprint(qual)) }

// request waits for a connection request. If the case does not answer the request,
// it is rejected when the case is over: some transports end an attempt only then.
func (s *service) request() *ep.CR {
	ev := s.rig.next(s.cr)
	require.Equal(s.rig, event.ConnectionRequest, ev.Number)
	cr := ep.RequestOf(ev)
	require.NotNil(s.rig, cr)
	s.rig.later(func() error { _ = cr.Reject(nil); return nil })
	return cr
}

// asked waits for a connection request, and returns it and what it says.
func (s *service) asked() (*ep.CR, ep.CRParam) {
	cr := s.request()
	return cr, get(s.rig, cr.Query)
}

// askedBy connects client to the service with private data, and returns the request and
// what it says.
func (s *service) askedBy(client *end, private []byte) (*ep.CR, ep.CRParam) {
	at := s.at()
	at.Private = private
	require.NoError(s.rig, client.ep.Connect(at))
	return s.asked()
}

// requestOf connects client to the service, and returns its request.
func (s *service) requestOf(client *end) *ep.CR {
	require.NoError(s.rig, client.ep.Connect(s.at()))
	return s.request()
}

// join connects client to the service, which accepts with server.
func (s *service) join(client, server *end) {
	accept(s.requestOf(client), client, server)
}

// accept accepts the request of client with server.
func accept(cr *ep.CR, client, server *end) {
	require.NoError(server.rig, cr.Accept(server.ep, nil))
	client.established()
	server.established()
}

// pair returns two connected endpoints, each on an adapter of its own.
func (r *rig) pair(change ...func(*ep.Config)) (client, server *end) {
	client, server = r.node().end(change...), r.node().end(change...)
	r.connect(client, server)
	return client, server
}

// connect connects client to server.
func (r *rig) connect(client, server *end) {
	if r.p.Paired {
		r.pairUp(client, server)
		return
	}
	s := server.node.listen()
	s.join(client, server)
	client.peer, server.peer = server, client
	require.NoError(r, s.psp.Close())
}

// pairUp connects two ends by their values.
func (r *rig) pairUp(one, other *end) {
	ends := [2]*end{one, other}
	var values [2]hw.PairAddr
	for i, e := range ends {
		var err error
		values[i], err = e.ep.PairAddr()
		require.NoError(r, err)
	}
	for i, e := range ends {
		require.NoError(r, e.ep.Pair(values[1-i]))
		e.established()
	}
	one.peer, other.peer = other, one
}

func (e *end) established() event.Event { return e.connection(event.Established) }

// connection waits for a connection event.
func (e *end) connection(want event.Number) event.Event {
	ev := e.rig.next(e.conn)
	require.Equal(e.rig, want, ev.Number, "%v", ev)
	require.Same(e.rig, e.ep, ep.Of(ev))
	return ev
}

// disconnect disconnects the end, and waits for the event of it.
func (e *end) disconnect(how ep.CloseFlags) {
	require.NoError(e.rig, e.ep.Disconnect(how))
	e.connection(event.Disconnected)
}

// next waits for an event.
func (r *rig) next(d *evd.Dispatcher) event.Event {
	if r.take != nil {
		return r.take(d)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ev, _, err := d.Wait(ctx, 1)
	require.NoError(r, err)
	return ev
}

// poll gets the next event by Dequeue, again and again without a pause: a device whose
// consumers poll needs that.
func (r *rig) poll(d *evd.Dispatcher) event.Event {
	for end := time.Now().Add(patience); time.Now().Before(end); goruntime.Gosched() {
		if ev, ok := r.dequeue(d); ok {
			return ev
		}
	}
	require.Fail(r, "no event came")
	return event.Event{}
}

// queued takes the events that are queued.
func (r *rig) queued(d *evd.Dispatcher) []event.Event {
	buf := make([]event.Event, 128)
	n, err := d.Dequeue(buf)
	require.NoError(r, err)
	require.Less(r, n, len(buf))
	return buf[:n]
}

// only takes the one event that is queued.
func (r *rig) only(d *evd.Dispatcher) event.Event {
	evs := r.queued(d)
	require.Len(r, evs, 1)
	return evs[0]
}

// dequeue takes an event if one is queued.
func (r *rig) dequeue(d *evd.Dispatcher) (event.Event, bool) {
	var buf [1]event.Event
	n, err := d.Dequeue(buf[:])
	require.NoError(r, err)
	return buf[0], n == 1
}

// none requires that no event is queued.
func (r *rig) none(d *evd.Dispatcher) {
	require.Empty(r, r.queued(d))
}

// done waits for a completion and requires its cookie, status and operation.
func (e *end) done(d *evd.Dispatcher, cookie uint64, status hw.Status) event.Event {
	ev := e.rig.next(d)
	require.Equal(e.rig, cookie, ev.Cookie, "%v", ev)
	require.Equal(e.rig, status, ev.Status, "%v", ev)
	require.Same(e.rig, e.ep, ep.Of(ev))
	return ev
}

// until waits for a condition that no event reports.
func (r *rig) until(what string, ok func() bool) {
	for end := time.Now().Add(patience); !ok(); time.Sleep(100 * time.Microsecond) {
		require.False(r, time.Now().After(end), "waited in vain for %s", what)
	}
}
