package conformance

import (
	"context"
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"godat/hw"
	dat "godat/runtime"
)

// mix is a transaction test: threads of a client and a server, each with some
// connections, that run a list of operations over and over.
type mix struct {
	iterations, threads, eps int // before scaling
	ops                      []transaction

	poll     bool // dequeue in place of waiting
	cno      bool // wait for a CNO
	rsp      bool // connect through reserved service points
	validate bool // what arrives is compared
}

// transaction is one operation of an iteration: of segs segments of size bytes
// each. A send is received by the other side; RDMA is the initiator's alone.
type transaction struct {
	by   side
	op   dat.Op
	size int
	segs int
	late bool // the sender looks for its send's completion at the next receive
}

type side bool

const (
	byClient side = false
	byServer side = true
)

// sr is a send each way.
func sr(size, segs int) []transaction {
	return []transaction{{by: byClient, op: dat.OpSend, size: size, segs: segs}, {by: byServer, op: dat.OpSend, size: size, segs: segs}}
}

func (t transaction) bytes() int { return t.size * t.segs }

// transact runs a mix.
func (r *rig) transact(m mix) {
	r.Helper()
	m.iterations = r.p.Scale.of(m.iterations, 1)
	m.threads, m.eps = r.p.Scale.of(max(1, m.threads), 2), r.p.Scale.of(max(1, m.eps), 2)
	client, server := r.node(), r.node()
	operations := m.iterations * m.threads * m.eps * len(m.ops)
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience+time.Duration(operations)*100*time.Microsecond)
	defer cancel()
	threads, ctx := errgroup.WithContext(ctx)
	var clients, servers []*link
	for range m.threads {
		c, s := newParty(client, &m, byClient), newParty(server, &m, byServer)
		for i := range c.links {
			c.join(s, i)
		}
		for _, p := range []*party{c, s} {
			require.NoError(r, p.prepare())
		}
		clients, servers = append(clients, c.links...), append(servers, s.links...)
		threads.Go(func() error { return c.run(ctx) })
		threads.Go(func() error { return s.run(ctx) })
	}
	require.NoError(r, threads.Wait())
	for i, c := range clients {
		require.NoError(r, c.ep.Disconnect(dat.Graceful))
		c.connection(dat.Disconnected)
		servers[i].connection(dat.Disconnected)
		r.none(c.conn)
		r.none(servers[i].conn)
	}
}

// party is one side's thread.
type party struct {
	*node
	m       *mix
	who     side
	area    int // bytes of each area of a link's memory
	links   []*link
	cno     *dat.CNO
	cookies uint64
}

// link is one end of a connection of a party. Its memory has areas: what it sends
// and writes, two that it receives into, what the peer reads, and what the peer
// writes to.
type link struct {
	*end
	readable, writable dat.RemoteSegment // the peer's
	received           int
	unreaped           int // sends whose completions have not been looked for
	lastSend           uint64
}

func newParty(n *node, m *mix, who side) *party {
	n.Helper()
	p := &party{node: n, m: m, who: who}
	for _, t := range m.ops {
		p.area = max(p.area, t.bytes())
	}
	if m.cno {
		p.cno = n.cno()
	}
	for range m.eps {
		p.links = append(p.links, &link{end: p.newEnd()})
	}
	return p
}

func (p *party) newEnd() *end {
	p.Helper()
	e := &end{node: p.node, conn: p.dispatcher(8, dat.StreamConnection), mem: p.lmr(5 * p.area)}
	for _, d := range []**dat.Dispatcher{&e.recv, &e.req} {
		var err error
		*d, err = p.ia.NewDispatcher(dat.DispatcherConfig{QLen: 64, Streams: dat.StreamDTO, CNO: p.cno})
		require.NoError(p, err)
		p.later((*d).Close)
	}
	e.ep = p.endpoint(dat.EndpointConfig{PZ: p.pz, Conn: e.conn, Recv: e.recv, Request: e.req})
	return e
}

// join connects a link of the client with the server's.
func (p *party) join(server *party, i int) {
	p.Helper()
	c, s := p.links[i], server.links[i]
	if p.m.rsp {
		rsp, at := s.reserved()
		require.NoError(p, c.ep.Connect(dat.ConnectConfig{Addr: s.addr(), Qual: rsp.Qual()}))
		require.NoError(p, at.request().Accept(nil, nil))
		c.established()
		s.established()
	} else {
		p.connect(c.end, s.end)
	}
	n := p.area
	c.readable, c.writable = s.mem.Remote(3*n, n), s.mem.Remote(4*n, n)
	s.readable, s.writable = c.mem.Remote(3*n, n), c.mem.Remote(4*n, n)
}

// prepare posts the first receives and fills what the peer reads.
func (p *party) prepare() error {
	for _, l := range p.links {
		for i := range p.area {
			l.mem.Bytes()[3*p.area+i] = pattern(i)
		}
		for range 2 {
			if err := p.receive(l); err != nil {
				return err
			}
		}
	}
	return nil
}

func pattern(i int) byte { return byte(i*7 + 1) }

// receive posts the next receive of a link. A message takes as many segments as
// it needs, so one is enough.
func (p *party) receive(l *link) error {
	err := l.ep.PostRecv(uint64(l.received), 0, l.mem.Segment((1+l.received%2)*p.area, p.area))
	l.received++
	return err
}

// run is the body of the party's thread.
func (p *party) run(ctx context.Context) error {
	for i := range p.m.iterations {
		for k, t := range p.m.ops {
			if err := p.step(ctx, i, t); err != nil {
				return fmt.Errorf("server %v, iteration %d, operation %d: %w", p.who, i, k, err)
			}
		}
	}
	for _, l := range p.links {
		if err := p.reap(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// step does this side's part of one operation, on all links: first begin on all
// of them, then end.
func (p *party) step(ctx context.Context, iteration int, t transaction) error {
	if t.by != p.who {
		if t.op != dat.OpSend {
			return nil
		}
		for _, l := range p.links {
			if err := p.take(ctx, l, iteration, t); err != nil {
				return err
			}
		}
		return nil
	}
	p.cookies++
	for _, l := range p.links {
		if err := p.begin(l, iteration, t); err != nil {
			return err
		}
	}
	for _, l := range p.links {
		if t.late {
			continue
		}
		if err := p.finish(ctx, l, t); err != nil {
			return err
		}
	}
	return nil
}

// begin posts an operation.
func (p *party) begin(l *link, iteration int, t transaction) error {
	segs := make([]dat.Segment, t.segs)
	for i := range segs {
		segs[i] = l.mem.Segment(i*t.size, t.size)
	}
	if p.m.validate {
		fill := byte(iteration + 1)
		for i := range t.bytes() {
			l.mem.Bytes()[i] = fill
		}
	}
	switch t.op {
	case dat.OpWrite:
		return l.ep.PostRDMAWrite(p.cookies, 0, l.writable, segs...)
	case dat.OpRead:
		if most := l.ia.Attr().MaxReadSegments; len(segs) > most {
			segs = []dat.Segment{l.mem.Segment(0, t.bytes())}
		}
		remote := l.readable
		remote.Len = uint32(t.bytes())
		return l.ep.PostRDMARead(p.cookies, 0, remote, segs...)
	default:
		l.unreaped++
		l.lastSend = p.cookies
		return l.ep.PostSend(p.cookies, 0, segs...)
	}
}

// finish waits for the completion of what begin posted.
func (p *party) finish(ctx context.Context, l *link, t transaction) error {
	if err := p.reap(ctx, l); err != nil || t.op == dat.OpSend {
		return err
	}
	if err := p.completed(ctx, l, l.req, p.cookies, t.op, t.bytes()); err != nil {
		return err
	}
	if t.op == dat.OpRead && p.m.validate {
		for i := range t.bytes() {
			if got := l.mem.Bytes()[i]; got != pattern(i) {
				return fmt.Errorf("byte %d that was read is %#x, not %#x", i, got, pattern(i))
			}
		}
	}
	return nil
}

// reap waits for the completions of sends.
func (p *party) reap(ctx context.Context, l *link) error {
	for ; l.unreaped > 0; l.unreaped-- {
		ev, err := p.event(ctx, l.req)
		if err != nil {
			return err
		}
		if ev.Status != dat.StatusSuccess || ev.Op != dat.OpSend || ev.Cookie > l.lastSend || dat.EndpointOf(ev) != l.ep {
			return fmt.Errorf("instead of a send of %d: %v", l.lastSend, ev)
		}
	}
	return nil
}

// take receives a message, and posts the next receive.
func (p *party) take(ctx context.Context, l *link, iteration int, t transaction) error {
	if err := p.completed(ctx, l, l.recv, uint64(l.received-2), dat.OpRecv, t.bytes()); err != nil {
		return err
	}
	if p.m.validate {
		at := (1 + l.received%2) * p.area
		for i, got := range l.mem.Bytes()[at : at+t.bytes()] {
			if got != byte(iteration+1) {
				return fmt.Errorf("byte %d of the message is %#x, not %#x", i, got, byte(iteration+1))
			}
		}
		if err := p.compareWritten(l, iteration); err != nil {
			return err
		}
	}
	if err := p.reap(ctx, l); err != nil {
		return err
	}
	return p.receive(l)
}

// compareWritten compares what the client has written before the message that has
// come: the server's answer has not gone out, so it writes no more.
func (p *party) compareWritten(l *link, iteration int) error {
	for _, t := range p.m.ops {
		if p.who != byServer || t.op != dat.OpWrite || t.by != byClient {
			continue
		}
		for i, got := range l.mem.Bytes()[4*p.area : 4*p.area+t.bytes()] {
			if got != byte(iteration+1) {
				return fmt.Errorf("byte %d that was written is %#x, not %#x", i, got, byte(iteration+1))
			}
		}
	}
	return nil
}

// completed waits for a completion, all of which must be right.
func (p *party) completed(ctx context.Context, l *link, d *dat.Dispatcher, cookie uint64, op dat.Op, length int) error {
	ev, err := p.event(ctx, d)
	if err != nil {
		return err
	}
	if ev.Cookie != cookie || ev.Status != hw.StatusSuccess || ev.Op != op || int(ev.Length) != length || dat.EndpointOf(ev) != l.ep {
		return fmt.Errorf("instead of %v of %d bytes with cookie %#x: %v", op, length, cookie, ev)
	}
	return nil
}

// event takes the next event of a dispatcher, in the mix's way.
func (p *party) event(ctx context.Context, d *dat.Dispatcher) (dat.Event, error) {
	if !p.m.poll && !p.m.cno {
		ev, _, err := d.Wait(ctx, 1)
		return ev, err
	}
	var buf [1]dat.Event
	for i := 1; ; i++ {
		n, err := d.Dequeue(buf[:])
		if n == 1 || err != nil {
			return buf[0], err
		}
		if p.m.cno {
			if _, err := p.cno.Wait(ctx); err != nil {
				return buf[0], err
			}
			continue
		}
		if ctx.Err() != nil {
			return buf[0], ctx.Err()
		}
		if goruntime.Gosched(); i%64 == 0 {
			backOff()
		}
	}
}
