package sim

import (
	"net"
	"slices"
	"strconv"
	"time"

	"godat/hw"
)

// backlog is a listener's backlog when its configuration names none.
const backlog = 64

// listener implements [hw.Listener].
type listener struct {
	dev     *Device
	service service
	cfg     hw.ListenConfig

	// Guarded by dev.sim.mu.
	pending int // requests in arrivals
	closed  bool
}

// request is a connection request, from Connect to its answer. It implements
// [hw.Request]. sim.mu guards all but the immutable fields.
type request struct {
	// Immutable.
	sim     *Provider
	private []byte
	local   addr
	remote  addr
	qual    uint64

	from     *queuePair // nil when the initiator has withdrawn
	listener *listener
	answered bool

	refusal       hw.Reason // ReasonNone unless the answer is a refusal
	refusalText   string
	unheard       bool       // nobody was there to refuse the request
	acceptor      *queuePair // nil unless the request was accepted
	answerPrivate []byte
}

// Listen implements [hw.Device].
func (d *Device) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	const op = "sim.Listen"
	s := d.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case d.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	case cfg.OnRequest == nil:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "OnRequest is nil")
	case cfg.Addr != "" && cfg.Addr != d.name:
		return nil, hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "%q is not this device", cfg.Addr)
	}
	if cfg.Backlog <= 0 {
		cfg.Backlog = backlog
	}
	at := service{addr: d.name, qual: cfg.Qual}
	for at.qual == 0 || cfg.Qual == 0 && s.listeners[at] != nil {
		if s.lastQual++; s.lastQual > hw.MaxQual {
			s.lastQual = defaultQual + 1
		}
		at.qual = s.lastQual
	}
	if s.listeners[at] != nil {
		return nil, hw.Errorf(op, hw.ConnQualInUse, hw.NoSubtype, "qualifier %d", at.qual)
	}
	l := &listener{dev: d, service: at, cfg: cfg}
	s.listeners[at] = l
	d.children++
	return l, nil
}

// Addr implements [hw.Listener].
func (l *listener) Addr() net.Addr {
	return addr(net.JoinHostPort(l.service.addr, strconv.FormatUint(l.service.qual, 10)))
}

// Qual implements [hw.Listener].
func (l *listener) Qual() uint64 { return l.service.qual }

// Close implements [hw.Listener].
func (l *listener) Close() error {
	s := l.dev.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.closed {
		return hw.Errorf("sim.Listener.Close", hw.InvalidHandle, hw.HandlePSP, "closed twice")
	}
	l.closed = true
	l.dev.children--
	delete(s.listeners, l.service)
	l.dev.arrivals = slices.DeleteFunc(l.dev.arrivals, func(r *request) bool {
		if r.listener != l {
			return false
		}
		r.refuse(hw.ReasonRejected, "the listener closed", nil)
		return true
	})
	return nil
}

// Connect implements [hw.QP].
func (q *queuePair) Connect(cfg hw.ConnectConfig) error {
	const op = "sim.Connect"
	q.enter("Connect")
	defer q.leave()
	switch {
	case q.state != stateNew:
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair is %v", q.state)
	case len(cfg.Private) > maxPrivate:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg5, "%d bytes of private data, at most %d", len(cfg.Private), maxPrivate)
	}
	q.state = stateConnecting
	q.attempt = &request{
		sim: q.dev.sim, from: q, private: append([]byte(nil), cfg.Private...),
		local: addr(cfg.Addr), remote: addr(q.dev.name), qual: cfg.Qual,
	}
	if cfg.Timeout > 0 {
		q.dev.setDeadline(q, time.Now().Add(cfg.Timeout))
	}
	q.dev.schedule(q)
	return nil
}

// connecting is the work of a queue pair whose attempt is under way: it dispatches the
// request, or acts on the answer.
func (q *queuePair) connecting() (more bool) {
	r := q.attempt
	switch {
	case r.refusal != hw.ReasonNone:
		found := hw.SidePeer
		if r.unheard {
			found = hw.SideLocal
		}
		q.refused(r.refusal, r.answerPrivate, &hw.Cause{Text: r.refusalText, Found: found, Local: r.remote, Remote: r.local})
	case r.acceptor != nil:
		q.connected(r)
	case r.listener != nil:
		return false // refuse or Accept schedules the queue pair again
	default:
		r.dispatch()
	}
	return true
}

// dispatch puts the request into the arrivals of the listener's device, or refuses it.
func (r *request) dispatch() {
	s := r.sim
	l := s.listeners[service{addr: string(r.local), qual: r.qual}]
	r.unheard = l == nil
	switch {
	case s.names[string(r.local)] == 0:
		r.refuse(hw.ReasonUnreachable, "no device of that name is open", nil)
	case l == nil:
		r.refuse(hw.ReasonRejected, "nobody listens there", nil)
	case l.pending >= l.cfg.Backlog:
		r.refuse(hw.ReasonRejected, "the backlog is full", nil)
	default:
		r.listener = l
		l.pending++
		l.dev.arrivals = append(l.dev.arrivals, r)
		l.dev.wakeEngine()
	}
}

// arrive hands the oldest request to its listener's OnRequest, with sim.mu released.
func (d *Device) arrive() {
	r := d.arrivals[0]
	d.arrivals = d.arrivals[1:]
	l := r.listener
	l.pending--
	if r.from == nil {
		return
	}
	d.offered = append(d.offered, r)
	d.sim.mu.Unlock()
	taken := l.cfg.OnRequest(r)
	d.sim.mu.Lock()
	if !taken && !r.answered {
		r.refuse(hw.ReasonRejected, "the peer had no room for the request", nil)
	}
}

// refuse answers the request with a refusal, which the initiator's engine tells the
// initiator.
func (r *request) refuse(why hw.Reason, text string, private []byte) {
	r.answer()
	r.refusal, r.refusalText, r.answerPrivate = why, text, private
	if r.from != nil {
		r.from.dev.schedule(r.from)
	}
}

// answer marks the request as answered and takes it off the device's offered requests.
func (r *request) answer() {
	r.answered = true
	if r.listener != nil {
		d := r.listener.dev
		d.offered = slices.DeleteFunc(d.offered, func(o *request) bool { return o == r })
	}
}

// withdraw ends the attempt from the initiator's side. An acceptor's engine notices that
// from is nil.
func (r *request) withdraw() {
	r.from = nil
	if r.acceptor != nil {
		r.acceptor.dev.schedule(r.acceptor)
	}
}

// refused ends the attempt and queues the fact Refused.
func (q *queuePair) refused(why hw.Reason, private []byte, cause *hw.Cause) {
	q.state = stateRefused
	q.dev.clearDeadline(q)
	q.addFact(fact{call: func(f hw.Facts) { f.Refused(why, private, cause) }})
}

// connected makes the initiator's side up. The acceptor's engine makes the acceptor's
// side up in a later step, and the initiator's first messages may arrive before that.
func (q *queuePair) connected(r *request) {
	p := r.acceptor
	q.state, q.held, q.peer = stateUp, true, p
	q.dev.clearDeadline(q)
	q.readsOut = min(q.cfg.ReadsOut, p.cfg.ReadsIn)
	q.readsIn = min(q.cfg.ReadsIn, p.cfg.ReadsOut)
	p.peer, p.confirmed = q, true
	p.readsOut, p.readsIn = q.readsIn, q.readsOut
	p.dev.schedule(p)
	q.established(hw.ConnInfo{
		Local: r.remote, Remote: r.local, ReadsIn: q.readsIn, ReadsOut: q.readsOut, Private: r.answerPrivate,
	})
}

// accepting is the work of a queue pair that has accepted: it makes the acceptor's side
// up, or tells Refused when the initiator has withdrawn.
func (q *queuePair) accepting() (more bool) {
	r := q.request
	switch {
	case q.confirmed:
		q.state = stateUp
		q.established(hw.ConnInfo{Local: r.local, Remote: r.remote, ReadsIn: q.readsIn, ReadsOut: q.readsOut})
	case r.from == nil:
		q.refused(hw.ReasonUnreachable, nil, &hw.Cause{
			Text: "the peer gave up before it was accepted", Found: hw.SidePeer, Local: r.local, Remote: r.remote,
		})
	default:
		return false
	}
	return true
}

// Private implements [hw.Request].
func (r *request) Private() (data []byte, truncated bool) { return r.private, false }

// Local implements [hw.Request].
func (r *request) Local() net.Addr { return r.local }

// Remote implements [hw.Request].
func (r *request) Remote() net.Addr { return r.remote }

// Qual implements [hw.Request].
func (r *request) Qual() uint64 { return r.qual }

// Accept implements [hw.Request].
func (r *request) Accept(qp hw.QP, private []byte) error {
	const op = "sim.Accept"
	q, _ := qp.(*queuePair)
	if q == nil || q.dev != r.listener.dev {
		return r.refuseInvalid(hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "not a queue pair of this device"))
	}
	q.enter("Accept")
	defer q.leave()
	switch {
	case r.answered:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleCR, "answered already")
	case q.state != stateNew:
		r.refuse(hw.ReasonRejected, "the peer could not accept", nil)
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair is %v", q.state)
	case len(private) > maxPrivate:
		r.refuse(hw.ReasonRejected, "the peer could not accept", nil)
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "%d bytes of private data, at most %d", len(private), maxPrivate)
	}
	q.state, q.request = stateAccepting, r
	r.answer()
	r.acceptor, r.answerPrivate = q, append([]byte(nil), private...)
	if r.from != nil {
		r.from.dev.schedule(r.from)
	}
	q.dev.schedule(q)
	return nil
}

// refuseInvalid refuses a request for which the answer was invalid, and returns err.
func (r *request) refuseInvalid(err *hw.Error) error {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	if !r.answered {
		r.refuse(hw.ReasonRejected, "the peer could not accept", nil)
	}
	return err
}

// Reject implements [hw.Request].
func (r *request) Reject(private []byte) error {
	const op = "sim.Reject"
	if len(private) > maxPrivate {
		return r.refuseInvalid(hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%d bytes of private data, at most %d", len(private), maxPrivate))
	}
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	if r.answered {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleCR, "answered already")
	}
	r.refuse(hw.ReasonPeerRejected, "the peer's program rejected the request", append([]byte(nil), private...))
	return nil
}
