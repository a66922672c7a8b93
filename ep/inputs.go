package ep

import (
	"net"
	"strconv"

	"godat/evd"
	"godat/hw"
)

// What the step can be told from outside: bits, since each happens at most once
// in a life and the order among them is the step's own.
const (
	tellEstablished uint32 = 1 << iota
	tellFirstData          // data came before word of the connection
	tellRefused
	tellDown
	tellTimeout
	tellRequestEnd // the provider has completed all requests
	tellRecvEnd
	tellControl // a control call is pending
	tellAsked   // a request has come for a reserved endpoint
	tellOverrun // more receives were taken than the hard watermark allows
)

// tell records an input and makes somebody handle it. It never blocks.
func (b *mailbox) tell(what uint32) {
	b.inputs.Or(what)
	b.poke()
}

// facts is the endpoint as its provider sees it.
type facts Endpoint

func (f *facts) Established(info hw.ConnInfo) {
	f.info = info
	(*Endpoint)(f).box.tell(tellEstablished)
}

type refusal struct {
	why     hw.Reason
	private []byte
}

func (f *facts) Refused(why hw.Reason, private []byte, cause *hw.Cause) {
	f.refusal = refusal{why, private}
	(*Endpoint)(f).blame(cause)
	(*Endpoint)(f).box.tell(tellRefused)
}

func (f *facts) Down(why hw.Reason, cause *hw.Cause) {
	f.why = why
	(*Endpoint)(f).blame(cause)
	(*Endpoint)(f).box.tell(tellDown)
}

// outcome is how a connection, or the attempt at one, ended.
type outcome evd.Number

const (
	none         outcome = 0
	disconnected         = outcome(evd.Disconnected)
	broken               = outcome(evd.Broken)
	timedOut             = outcome(evd.TimedOut)
)

// handle does the side effects of what the step was told.
func (e *Endpoint) handle(told uint32) {
	e.box.own.Check()
	if told&tellAsked != 0 {
		e.askedFor()
	}
	if told&(tellEstablished|tellFirstData) != 0 {
		e.established(told&tellEstablished != 0)
	}
	if told&tellRefused != 0 {
		e.refused()
	}
	if told&tellDown != 0 {
		e.down()
	}
	if told&tellOverrun != 0 && e.State() != Unconnected {
		e.leave(inFailure, broken, nil, &hw.Cause{Text: "the hard high watermark of receives is exceeded"})
	}
	if told&tellTimeout != 0 && e.fired.Load() == e.alarmGen {
		e.timeout()
	}
	if told&(tellRequestEnd|tellRecvEnd) != 0 {
		e.box.requests.ended = e.box.requests.ended || told&tellRequestEnd != 0
		e.box.recvs.ended = e.box.recvs.ended || told&tellRecvEnd != 0
		e.ending = e.box.requests.ended && e.box.recvs.ended
	}
}

// established announces the connection and lets the completions through that
// waited for it.
func (e *Endpoint) established(byFact bool) {
	passive := e.State() == CompletionPending
	if !byFact && !passive {
		return
	}
	if byFact {
		e.setAddresses(e.info.Local, e.info.Remote)
		e.agree(e.info.ReadsIn, e.info.ReadsOut)
	}
	if e.become(inEstablished) < firstEdge {
		return
	}
	e.setAlarm(0)
	var private []byte
	if !passive {
		private = e.info.Private
	}
	e.adapter.counters.of(evd.Established, passive).Add(1)
	e.counted.connects.Add(1)
	ev := evd.Event{Number: evd.Established, Source: e}
	if private != nil {
		ev.Data = private
	}
	e.emit(ev)
	e.box.requests.endDetour()
	e.box.recvs.endDetour()
}

func (e *Endpoint) refused() {
	if e.State() == CompletionPending {
		e.leave(inRefused, outcome(evd.AcceptCompletionError), nil, nil)
		return
	}
	how := outcome(evd.NonPeerRejected)
	switch e.refusal.why {
	case hw.ReasonPeerRejected:
		how = outcome(evd.PeerRejected)
	case hw.ReasonUnreachable:
		how = outcome(evd.Unreachable)
	case hw.ReasonTimeout:
		how = timedOut
	}
	e.leave(inRefused, how, e.refusal.private, nil)
}

func (e *Endpoint) down() {
	switch {
	case e.why == hw.ReasonDrained:
		e.leave(inDrained, disconnected, nil, nil)
	case e.State() == CompletionPending:
		e.leave(inDown, outcome(evd.AcceptCompletionError), nil, nil)
	case e.why == hw.ReasonPeer:
		e.leave(inDown, disconnected, nil, nil)
	default:
		e.leave(inDown, broken, nil, nil)
	}
}

func (e *Endpoint) timeout() {
	if e.State() == ActiveConnectionPending {
		e.leave(inTimeout, timedOut, nil, &hw.Cause{Text: "the peer did not answer in the time of the connect call", Err: hw.ErrTimeout})
		return
	}
	e.leave(inTimeout, disconnected, nil, &hw.Cause{Text: "the requests did not complete in EndpointAttr.DrainTimeout", Err: hw.ErrTimeout})
}

// leave gives up the connection or the attempt at one, if the table says that in
// does that. The outcome and its cause, which is nil where the provider or the input
// says it, are announced when everything posted has been flushed.
func (e *Endpoint) leave(in input, how outcome, private []byte, cause *hw.Cause) {
	if e.become(in) < firstEdge {
		return
	}
	e.setAlarm(0)
	e.outcome, e.private = how, private
	if e.blame(cause); e.cause.Load() == nil {
		e.blame(plainCause(in))
	}
	full := e.cause.Load().Between(e.local.addr, e.remote.addr)
	if private != nil {
		said := *full
		said.Private = private
		full = &said
	}
	e.cause.Store(full)
	e.box.requests.endDetour()
	e.box.recvs.endDetour()
	e.breakQP(how != broken)
}

// breakQP breaks the queue pair, and notes what has a ticket by then.
func (e *Endpoint) breakQP(orderly bool) {
	if e.box.qp == nil { // it was made for a request, and had nothing yet
		e.box.requests.ended, e.box.recvs.ended, e.ending = true, true, true
		return
	}
	if !e.broke {
		e.broke = true
		w := e.box.word.Load()
		e.box.requests.last, e.box.recvs.last = e.box.requests.tail(w), e.box.recvs.tail(w)
		e.box.qp.Break(orderly)
	}
}

// tryEnd announces the end when everything that had a ticket at Break has been
// flushed. A post may have returned and still wait behind the ticket of one that
// is being filled; whoever has that one pokes.
func (e *Endpoint) tryEnd() {
	if e.box.requests.reached(e.box.requests.last) && e.box.recvs.reached(e.box.recvs.last) {
		e.ending = false
		e.ended()
	}
}

// ended announces the end, once both queues have ended: it is the last event of
// the connection. A closed endpoint announces nothing.
func (e *Endpoint) ended() {
	if e.outcome != none && e.State() != closed {
		e.adapter.counters.of(evd.Number(e.outcome), false).Add(1)
		e.counted.disconnects.Add(1)
		cause := e.cause.Load()
		e.emit(evd.ConnectionEnd(evd.Number(e.outcome), e, e.private, cause))
		if e.outcome == broken && e.adapter.broke != nil {
			e.adapter.broke(cause)
		}
	}
	e.outcome = none
	e.releaseConnRoom()
	select {
	case <-e.over:
	default:
		close(e.over)
	}
}

// emit delivers a connection event, for which room was reserved.
func (e *Endpoint) emit(ev evd.Event) {
	if e.connRoom == 0 {
		return
	}
	e.connRoom--
	to := e.conn.Main()
	to.Put(&ev, false)
	to.Flush()
}

func (e *Endpoint) releaseConnRoom() {
	if e.connRoom > 0 {
		e.conn.Main().Release(e.connRoom)
		e.connRoom = 0
	}
}

// address is a transport address, split as DAT has it.
type address struct {
	addr net.Addr
	qual uint64
}

func split(addr net.Addr) (a address) {
	if addr == nil {
		return a
	}
	a.addr = addr
	if _, port, err := net.SplitHostPort(addr.String()); err == nil {
		a.qual, _ = strconv.ParseUint(port, 10, 64)
	}
	return a
}

func (e *Endpoint) setAddresses(local, remote net.Addr) {
	e.addrMu.Lock()
	defer e.addrMu.Unlock()
	e.local, e.remote = split(local), split(remote)
}
