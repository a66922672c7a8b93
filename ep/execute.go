package ep

import (
	"godat/hw"
	"godat/hw/event"
	"godat/internal/yield"
)

// execute executes the pending control call.
func (m *machine) execute() {
	m.box.Token.Check()
	c := m.e.ctl.pending
	m.e.ctl.pending = nil
	yield.Point() // a post that takes its ticket here may be published at any later time
	switch c.in {
	case inConnect, inPair, inAccept, inAcceptOwn:
		c.err = m.begin(c)
	case inPairAddr:
		c.err = m.pairAddr(c)
	case inReserve, inRelease:
		c.err = m.move(c)
	case inDisown:
		c.err = m.disown(c)
	case inModify:
		c.err = m.modify(c)
	case inAbrupt, inGraceful:
		c.err = m.disconnect(c)
	case inReset:
		c.err = m.reset(c)
	case inClose:
		c.err = m.close(c)
	default: // the other inputs are not calls
		panic("ep: no such control call")
	}
	close(c.done)
}

// begin starts to connect or to accept. If the provider can't, begin undoes what it did.
func (m *machine) begin(c *control) error {
	m.box.Token.Check()
	if transitions[m.e.State()][c.in] < firstEdge {
		return stateError(c.op, m.e.State())
	}
	switch {
	case m.box.QP() == nil:
		return &hw.Error{Op: c.op, Type: hw.InvalidState, Sub: hw.StateEPPZ, Text: "the endpoint has no protection zone yet"}
	case m.e.profile.conn == nil:
		return &hw.Error{Op: c.op, Type: hw.InvalidState, Sub: hw.StateEPEVDConnect, Text: "events of the connection have nowhere to go: EndpointConfig.Conn says where"}
	}
	if !wiring(m.e.profile.conn).Main().Reserve(2) { // the outcome and the end
		return fullQueue(m.e, c.op, wiring(m.e.profile.conn).Main())
	}
	m.connRoom = 2
	m.box.BeginDetour()
	var err error
	switch c.in {
	case inConnect:
		err = m.box.QP().Connect(c.connect)
	case inPair:
		err = m.e.adapter.cfg.Device.(hw.Pairer).Pair(m.box.QP(), c.peer)
	default:
		// The peer may send another request before Accept returns.
		c.used = true
		c.cr.at.answered(&c.cr.at.counted.accepted)
		err = c.cr.request.Accept(m.box.QP(), c.private)
	}
	if err != nil {
		m.releaseConnRoom()
		m.box.EndDetour()
		return wrap(c.op, err)
	}
	switch c.in {
	case inConnect:
		m.e.adapter.counters.connects.whole.Add(1)
		m.e.profile.setTarget(c.connect.Addr, c.connect.Qual)
	case inPair: // Established has the addresses
	default:
		m.e.profile.setAddresses(c.cr.request.Local(), c.cr.request.Remote())
	}
	m.become(c.in)
	if limit := c.connect.Timeout; limit > 0 {
		m.setAlarm(limit + wordTime)
	} else {
		m.setAlarm(0)
	}
	return nil
}

func (m *machine) disconnect(c *control) error {
	m.box.Token.Check()
	switch next := transitions[m.e.State()][c.in]; next {
	case refuse:
		return stateError(c.op, m.e.State())
	case ignore:
	case to(DisconnectPending):
		m.become(c.in)
		m.setAlarm(m.e.profile.attr.DrainTimeout)
		m.box.QP().Drain()
	default:
		m.endConnection(c.in, event.Disconnected, nil, nil)
	}
	return nil
}

// reset makes the endpoint as new. In DISCONNECTED both queues have ended: Reset waited.
func (m *machine) reset(c *control) error {
	m.box.Token.Check()
	switch next := transitions[m.e.State()][inReset]; {
	case next == refuse:
		return stateError(c.op, m.e.State())
	case next == ignore:
		return nil
	case !m.over: // the connection was up when Reset looked
		return errNotOver
	}
	if err := m.box.QP().Reset(); err != nil {
		return wrap(c.op, err)
	}
	m.forget()
	m.become(inReset)
	return nil
}

// forget clears what belongs to one connection.
func (m *machine) forget() {
	m.box.Token.Check()
	m.e.facts.info, m.e.facts.refusal, m.private = nil, nil, nil
	m.e.facts.why = hw.ReasonNone
	m.e.cause.Store(nil)
	m.e.profile.setTarget("", 0)
	m.e.profile.setAddresses(nil, nil)
	m.e.profile.agree(0, 0)
	m.over = false
	m.e.ctl.over.Add(1)
	m.box.Renew()
}

// underWay are the states in which there is a connection, or an attempt at one.
const underWay = 1<<ActiveConnectionPending | 1<<CompletionPending | 1<<Connected | 1<<DisconnectPending

// close makes the handle dead and ends the connection, if there is one.
func (m *machine) close(c *control) error {
	m.box.Token.Check()
	was := m.e.State()
	if m.become(c.in) < firstEdge {
		return stateError(c.op, m.e.State())
	}
	if 1<<was&underWay != 0 {
		m.e.adapter.ends.note(m.end(0, &hw.Cause{Text: "the endpoint was closed"}))
	}
	m.setAlarm(0)
	m.box.Break(true)
	return nil
}

func (m *machine) move(c *control) error {
	m.box.Token.Check()
	s := m.e.State()
	if m.become(c.in) < firstEdge {
		return stateError(c.op, s)
	}
	return nil
}

// reserveRequest gives the endpoint the request that its reserved service point has received,
// and announces it.
func (m *machine) reserveRequest() {
	m.box.Token.Check()
	cr := m.e.facts.reservedRequest
	m.e.facts.reservedRequest = nil
	if m.become(inAsked) >= firstEdge {
		m.e.profile.setAddresses(cr.request.Local(), cr.request.Remote())
	}
	cr.announce()
}

func (m *machine) disown(c *control) error {
	m.box.Token.Check()
	if transitions[m.e.State()][inDisown] == to(closed) {
		return m.close(c)
	}
	if err := m.move(c); err != nil {
		return err
	}
	m.e.profile.setAddresses(nil, nil)
	return nil
}
