package ep

import (
	"time"

	"godat/ep/internal/line"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
)

// machine is the connection machine: it moves the endpoint from state to state (state.go) and acts on
// each move. The token's holder owns all of it; others tell the mailbox a fact, an alarm or a control
// call, which the holder's step passes on.
type machine struct {
	e   *Endpoint // immutable, as is box
	box *line.Mailbox

	connRoom int          // places for events reserved for this connection
	outcome  event.Number // how the connection, or the attempt at one, ended; 0 before that, and once it is announced
	over     bool         // the end has been announced, or is not to be; see controls.over
	private  []byte       // private data of the outcome
	alarm    *alarm       // nil: none is set
}

func (m *machine) init(e *Endpoint) { m.e, m.box = e, &e.box }

// become moves to the state that in leads to, if any, and returns what the table
// says. Only become assigns the state.
func (m *machine) become(in input) edge {
	m.box.Token.Check()
	next := transitions[m.e.State()][in]
	if next >= firstEdge {
		m.box.SetState(State(next - firstEdge).inBox())
		m.e.record.note(chapter{what: what(in)})
	}
	return next
}

const broken = event.Broken

// handle acts on the inputs that the step was told.
func (m *machine) handle(told uint32) {
	m.box.Token.Check()
	if told&line.TellAsked != 0 {
		m.reserveRequest()
	}
	if told&(line.TellEstablished|line.TellFirstData) != 0 {
		m.established(told&line.TellEstablished != 0)
	}
	if told&line.TellRefused != 0 {
		m.refused()
	}
	if told&line.TellDown != 0 {
		m.down()
	}
	if told&line.TellOverrun != 0 && m.e.State() != Unconnected {
		m.endConnection(inFailure, broken, nil, &hw.Cause{Text: "the hard high watermark of receives is exceeded"})
	}
	if told&line.TellTimeout != 0 && m.timeIsUp() {
		m.timeout()
	}
}

// established announces the connection and lets through the completions that waited
// for it. byFact is false if only data told of the connection.
func (m *machine) established(byFact bool) {
	m.box.Token.Check()
	passive := m.e.State() == CompletionPending
	if !byFact && !passive {
		return
	}
	var private []byte
	if byFact {
		info := m.e.facts.info
		m.e.facts.info = nil // an idle endpoint keeps what the profile has of it
		m.e.profile.setAddresses(info.Local, info.Remote)
		m.e.profile.agree(info.ReadsIn, info.ReadsOut)
		if !passive {
			private = info.Private
		}
	}
	if m.become(inEstablished) < firstEdge {
		return
	}
	m.setAlarm(0)
	m.e.adapter.counters.of(event.Established, passive).whole.Add(1)
	m.e.record.connects.whole.Add(1)
	ev := event.Event{Number: event.Established, Source: m.e}
	if private != nil {
		ev.Data = private
	}
	m.emit(ev)
	m.box.EndDetour()
}

func (m *machine) refused() {
	m.box.Token.Check()
	if m.e.State() == CompletionPending {
		m.endConnection(inRefused, event.AcceptCompletionError, nil, nil)
		return
	}
	how := event.NonPeerRejected
	switch m.e.facts.refusal.why {
	case hw.ReasonPeerRejected:
		how = event.PeerRejected
	case hw.ReasonUnreachable:
		how = event.Unreachable
	case hw.ReasonTimeout:
		how = event.TimedOut
	}
	m.endConnection(inRefused, how, m.e.facts.refusal.private, nil)
}

func (m *machine) down() {
	m.box.Token.Check()
	switch {
	case m.e.facts.why == hw.ReasonDrained:
		m.endConnection(inDrained, event.Disconnected, nil, nil)
	case m.e.State() == CompletionPending:
		m.endConnection(inDown, event.AcceptCompletionError, nil, nil)
	case m.e.facts.why == hw.ReasonPeer:
		m.endConnection(inDown, event.Disconnected, nil, nil)
	default:
		m.endConnection(inDown, broken, nil, nil)
	}
}

func (m *machine) timeout() {
	m.box.Token.Check()
	if m.e.State() == ActiveConnectionPending {
		m.endConnection(inTimeout, event.TimedOut, nil, &hw.Cause{Text: "the peer did not answer in the time of the connect call: its program has not accepted the request", Err: hw.ErrTimeout})
		return
	}
	m.endConnection(inTimeout, event.Disconnected, nil, &hw.Cause{Text: "the requests did not complete in EndpointAttr.DrainTimeout", Err: hw.ErrTimeout})
}

// endConnection gives up the connection or the attempt at one, if the table says
// that in does so. The outcome and its cause are announced when everything posted
// has been flushed. A nil cause leaves the provider's, or the one that in implies.
func (m *machine) endConnection(in input, how event.Number, private []byte, cause *hw.Cause) {
	m.box.Token.Check()
	if m.become(in) < firstEdge {
		return
	}
	m.setAlarm(0)
	m.outcome, m.private = how, private
	if m.e.cause.blame(cause); m.e.cause.Load() == nil {
		m.e.cause.blame(plainCause(in))
	}
	full := m.e.cause.Load().Between(m.e.profile.local.addr, m.e.profile.remote.addr)
	if private != nil {
		said := *full
		said.Private = private
		full = &said
	}
	m.e.cause.Store(full)
	m.box.Break(how != broken)
}

// announceEndOnceFlushed announces the end when everything that had a ticket at Break has been flushed; where
// the end is to be the last event, when all has that gets a ticket.
func (m *machine) announceEndOnceFlushed() {
	m.box.Token.Check()
	if m.box.Flushed(m.e.endIsLast) {
		m.announceEnd()
	}
}

// announceEnd announces the end, the last event of the connection. A closed endpoint announces none.
func (m *machine) announceEnd() {
	m.box.Token.Check()
	if m.outcome != 0 && m.e.State() != closed {
		m.e.adapter.counters.of(m.outcome, false).whole.Add(1)
		m.e.record.disconnects.whole.Add(1)
		cause := m.e.cause.Load()
		m.e.record.note(chapter{what: whatEnded, number: m.outcome})
		m.e.adapter.ends.note(m.end(m.outcome, cause))
		m.emit(event.ConnectionEnd(door.Key{}, m.outcome, m.e, m.private, cause))
		if m.outcome == broken && m.e.adapter.cfg.Broke != nil {
			m.e.adapter.cfg.Broke(cause)
		}
	}
	m.outcome = 0
	m.releaseConnRoom()
	if !m.over {
		m.over = true
		m.e.ctl.over.Done()
	}
}

// emit delivers a connection event, for which begin reserved room.
func (m *machine) emit(ev event.Event) {
	m.box.Token.Check()
	if m.connRoom == 0 {
		return
	}
	m.connRoom--
	to := wiring(m.e.profile.conn).Main()
	to.Put(&ev)
	to.Flush()
}

func (m *machine) releaseConnRoom() {
	m.box.Token.Check()
	if m.connRoom > 0 {
		wiring(m.e.profile.conn).Main().Release(m.connRoom)
		m.connRoom = 0
	}
}

// end describes the end of the connection, or of an attempt at one.
func (m *machine) end(number event.Number, cause *hw.Cause) end {
	m.box.Token.Check()
	e := m.e
	one := end{
		endKind: endKind{number, cause.Layer, cause.Code}, at: time.Now(), name: e.name(),
		cause: cause, local: e.profile.local, remote: e.profile.remote,
	}
	if f := e.adapter.cfg.Owner; f != nil {
		one.owner = f(e.context)
	}
	e.record.Mu.Lock()
	one.story = e.record.story.lines()
	e.record.Mu.Unlock()
	return one
}
