package ep

import (
	"time"

	"godat/ep/internal/life"
	"godat/hw"
	"godat/internal/yield"
)

// execute executes the pending control call.
func (m *machine) execute() {
	m.box.Token.Check()
	c := m.ctl.pending
	m.ctl.pending = nil
	yield.Point() // a post that takes its ticket here may be published at any later time
	switch c.in {
	case life.InConnect, life.InPair, life.InAccept, life.InAcceptOwn:
		c.err = m.begin(c)
	case life.InPairAddr:
		c.err = m.pairAddr(c)
	case life.InModify:
		c.err = m.modify(c)
	case life.InGraceful:
		c.err = m.move(c, m.profile.attr.DrainTimeout)
	case life.InAbrupt, life.InClose, life.InReserve, life.InRelease:
		c.err = m.move(c, 0)
	case life.InDisown:
		c.err = m.disown(c)
	case life.InReset:
		c.err = m.reset(c)
	default: // the other inputs are not calls
		panic("ep: no such control call")
	}
	close(c.done)
}

// move does what life says of the call. What begins with it may take so long; 0: there is no bound.
func (m *machine) move(c *control, limit time.Duration) error {
	s := m.at()
	if m.take(c.in, life.Detail{Limit: limit}).Refused {
		return s.Refusal(c.op)
	}
	return nil
}

// begin starts to connect or to accept. If the provider can't, begin undoes what it did.
func (m *machine) begin(c *control) error {
	m.box.Token.Check()
	switch s := m.at(); {
	case !s.Moves(c.in):
		return s.Refusal(c.op)
	case m.box.QP() == nil:
		return &hw.Error{Op: c.op, Type: hw.InvalidState, Sub: hw.StateEPPZ, Text: "the endpoint has no protection zone yet"}
	case m.profile.conn == nil:
		return &hw.Error{Op: c.op, Type: hw.InvalidState, Sub: hw.StateEPEVDConnect, Text: "events of the connection have nowhere to go: ep.Config.Conn says where"}
	}
	to := wiring(m.profile.conn).Main()
	if !to.Reserve(life.Places) {
		return fullQueue(m.endpoint(), c.op, to)
	}
	m.box.BeginDetour()
	if err := m.askDevice(c); err != nil {
		to.Release(life.Places)
		m.box.EndDetour()
		return wrap(c.op, err)
	}
	switch c.in {
	case life.InConnect:
		m.adapter.counters.connects.whole.Add(1)
		m.profile.setTarget(c.connect.Addr, c.connect.Qual)
	case life.InPair: // Established has the addresses
	default:
		m.profile.setAddresses(c.accept.request.Local(), c.accept.request.Remote())
	}
	m.take(c.in, life.Detail{Limit: c.connect.Timeout})
	return nil
}

// askDevice has the device connect or accept.
func (m *machine) askDevice(c *control) error {
	switch c.in {
	case life.InConnect:
		return m.box.QP().Connect(c.connect)
	case life.InPair:
		return m.adapter.cfg.Device.(hw.Pairer).Pair(m.box.QP(), c.peer)
	default:
		c.accept.asks() // before: the peer may send another request before Accept returns
		return c.accept.request.Accept(m.box.QP(), c.accept.private)
	}
}

// reset makes the endpoint as new. In DISCONNECTED both queues have ended: Reset waited.
func (m *machine) reset(c *control) error {
	m.box.Token.Check()
	switch {
	case !m.at().Moves(c.in):
		return m.move(c, 0)
	case !m.life.Over(): // the connection was up when Reset looked
		return errNotOver
	}
	if err := m.renew(); err != nil {
		return wrap(c.op, err)
	}
	m.forget()
	return m.move(c, 0)
}

// renew resets the queue pair.
func (m *machine) renew() error {
	m.ctl.reach.Lock()
	defer m.ctl.reach.Unlock()
	return m.box.QP().Reset()
}

// forget clears what belongs to one connection.
func (m *machine) forget() {
	m.box.Token.Check()
	m.facts.info, m.facts.refusal = nil, nil
	m.facts.why = hw.ReasonNone
	m.cause.Store(nil)
	m.profile.setTarget("", 0)
	m.profile.setAddresses(nil, nil)
	m.profile.agree(0, 0)
	m.ctl.over.Add(1)
	m.box.Renew()
}

// disown separates the endpoint from the request that it came with.
func (m *machine) disown(c *control) error {
	err := m.move(c, 0)
	if err == nil && m.at() != life.Closed {
		m.profile.setAddresses(nil, nil)
	}
	return err
}
