package provider

import (
	"net"
	"strconv"

	"godat/hw"
)

// address is the only host.
const address = "here"

// addr is the address of an end of a connection: the host and a qualifier.
type addr uint64

func (addr) Network() string  { return "small" }
func (a addr) String() string { return net.JoinHostPort(address, strconv.FormatUint(uint64(a), 10)) }

// listener takes the requests for a qualifier.
type listener struct {
	dev *device
	cfg hw.ListenConfig
}

func (d *device) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	p := d.p
	p.mu.Lock()
	defer p.unlock()
	if cfg.Qual > hw.MaxQual {
		return nil, hw.Errorf("Listen", hw.InvalidParameter, hw.Arg2, "the qualifier %d is above %d", cfg.Qual, hw.MaxQual)
	}
	for cfg.Qual == 0 || cfg.Qual == p.lastQual && p.listeners[cfg.Qual] != nil {
		p.lastQual = p.lastQual%hw.MaxQual + 1
		cfg.Qual = p.lastQual
	}
	if p.listeners[cfg.Qual] != nil {
		return nil, hw.Errorf("Listen", hw.ConnQualInUse, hw.NoSubtype, "the qualifier %d has a listener", cfg.Qual)
	}
	l := &listener{dev: d, cfg: cfg}
	p.listeners[cfg.Qual] = l
	d.open++
	return l, nil
}

func (l *listener) Addr() net.Addr { return addr(l.cfg.Qual) }
func (l *listener) Qual() uint64   { return l.cfg.Qual }

func (l *listener) Close() error {
	p := l.dev.p
	p.mu.Lock()
	defer p.unlock()
	if p.listeners[l.cfg.Qual] != l {
		return hw.Errorf("Listener.Close", hw.InvalidHandle, hw.HandlePSP, "the listener is closed")
	}
	delete(p.listeners, l.cfg.Qual)
	l.dev.open--
	return nil
}

// request waits for the answer of a listener's program.
type request struct {
	dev      *device // the listener's
	from     *queuePair
	life     int // of from, when it asked
	to       addr
	private  []byte
	answered bool
}

func (r *request) Private() (data []byte, truncated bool) { return r.private, false }
func (r *request) Local() net.Addr                        { return r.to }
func (r *request) Remote() net.Addr                       { return r.from.local }
func (r *request) Qual() uint64                           { return uint64(r.to) }

// Connect hands the request to the listener before it returns.
func (q *queuePair) Connect(cfg hw.ConnectConfig) error {
	p := q.dev.p
	p.mu.Lock()
	defer p.unlock()
	if err := q.begin("Connect", cfg.Private); err != nil {
		return err
	}
	p.lastQual = p.lastQual%hw.MaxQual + 1
	q.local, q.remote = addr(p.lastQual), addr(cfg.Qual)
	l := p.listeners[cfg.Qual]
	r := &request{from: q, life: q.life, to: addr(cfg.Qual), private: append([]byte(nil), cfg.Private...)}
	switch {
	case cfg.Addr != address:
		q.refuse(hw.ReasonUnreachable, nil, hw.SideLocal, "there is no host "+cfg.Addr)
	case l == nil:
		q.refuse(hw.ReasonRejected, nil, hw.SidePeer, "nobody listens there")
	default:
		r.dev = l.dev
		p.mu.Unlock() // the listener's owner may make a queue pair for the request
		taken := l.cfg.OnRequest(r)
		p.mu.Lock()
		if !taken {
			r.answered = true
			q.refuse(hw.ReasonRejected, nil, hw.SidePeer, "the listener took no request")
		}
	}
	return nil
}

// begin takes a queue pair from new to connecting.
func (q *queuePair) begin(op string, private []byte) error {
	if q.phase != fresh {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair is not new")
	}
	if len(private) > q.dev.Attr().MaxPrivate {
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%d bytes of private data", len(private))
	}
	q.phase = connecting
	return nil
}

// refuse tells the owner that its attempt has failed, if it still waits.
func (q *queuePair) refuse(why hw.Reason, private []byte, found hw.Side, text string) {
	if q.phase == connecting {
		q.phase = down
		cause := &hw.Cause{Text: text, Found: found, Local: q.local, Remote: q.remote}
		q.dev.p.tell(func() { q.cfg.Facts.Refused(why, private, cause) })
	}
}

// take answers the request, once.
func (r *request) take(op string) error {
	if r.answered {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleCR, "the request has its answer")
	}
	r.answered = true
	if r.from.life != r.life {
		r.from = &queuePair{dev: r.from.dev, local: r.from.local, phase: down} // it has gone
	}
	return nil
}

// Accept connects at once: the asking side hears of it first.
func (r *request) Accept(h hw.QP, private []byte) error {
	p := r.dev.p
	p.mu.Lock()
	defer p.unlock()
	if err := r.take("Accept"); err != nil {
		return err
	}
	a, b := r.from, h.(*queuePair)
	if err := b.begin("Accept", private); err != nil {
		a.refuse(hw.ReasonRejected, nil, hw.SidePeer, "the accept failed")
		return err
	}
	b.local, b.remote = r.to, a.local
	if a.phase != connecting {
		b.refuse(hw.ReasonUnreachable, nil, hw.SidePeer, "the peer gave up")
		return nil
	}
	a.phase, b.phase, a.peer, b.peer = up, up, b, a
	in, out := min(a.cfg.ReadsIn, b.cfg.ReadsOut), min(a.cfg.ReadsOut, b.cfg.ReadsIn)
	asked := hw.ConnInfo{Local: a.local, Remote: b.local, ReadsIn: in, ReadsOut: out, Private: append([]byte(nil), private...)}
	accepted := hw.ConnInfo{Local: b.local, Remote: a.local, ReadsIn: out, ReadsOut: in}
	p.tell(func() { a.cfg.Facts.Established(asked) })
	p.tell(func() { b.cfg.Facts.Established(accepted) })
	return nil
}

func (r *request) Reject(private []byte) error {
	p := r.dev.p
	p.mu.Lock()
	defer p.unlock()
	if err := r.take("Reject"); err != nil {
		return err
	}
	if len(private) > r.dev.Attr().MaxPrivate {
		r.from.refuse(hw.ReasonPeerRejected, nil, hw.SidePeer, "the peer's program rejected the request")
		return hw.Errorf("Reject", hw.InvalidParameter, hw.Arg1, "%d bytes of private data", len(private))
	}
	r.from.refuse(hw.ReasonPeerRejected, append([]byte(nil), private...), hw.SidePeer, "the peer's program rejected the request")
	return nil
}
