package ep

import (
	"godat/ep/internal/life"
	"godat/hw"
)

// PairAddr returns the values by which a peer pairs with the endpoint: the program gives them to the
// peer's program by means of its own, such as a TCP connection. They last until Reset. A device that
// can't pair, as iwarp's, fails with MODEL_NOT_SUPPORTED. DAT has no such call.
func (e *Endpoint) PairAddr() (hw.PairAddr, error) {
	const op = "ep.PairAddr"
	c := &control{op: op, in: life.InPairAddr}
	if err := pair(e, c); err != nil {
		return hw.PairAddr{}, err
	}
	return c.peer, nil
}

// Pair connects the endpoint to a peer whose values the program has got from the peer's
// program, without a request to anyone. ESTABLISHED comes at once, although the peer may not
// have paired yet: what is posted waits until it has, as long as the device repeats it. Before
// the peer sends, nothing shows that it is there. A value that the device can tell is
// wrong is INVALID_PARAMETER, and the endpoint stays UNCONNECTED.
//
// On a device of hardware nobody tells this end that the peer is gone: a request that fails
// does, of the program's or of the provider's keep-alive (see ibv's parameter keepalive).
// Disconnect tells a peer whose values have a Farewell. Reset makes the endpoint UNCONNECTED
// again, with other values. DAT has no such call.
func (e *Endpoint) Pair(peer hw.PairAddr) error {
	const op = "ep.Pair"
	if err := alive(op, e); err != nil {
		return err
	}
	if err := peer.Check(op); err != nil {
		return err
	}
	return pair(e, &control{op: op, in: life.InPair, peer: peer})
}

// pair makes a call that needs a device which can pair.
func pair(e *Endpoint, c *control) error {
	if err := alive(c.op, e); err != nil {
		return err
	}
	if _, ok := e.adapter.cfg.Device.(hw.Pairer); !ok {
		return hw.Errorf(c.op, hw.ModelNotSupported, hw.NoSubtype, "%s can't pair queue pairs", e.adapter.attr.Provider)
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	return e.ctl.do(c)
}

// pairAddr asks the device for the queue pair's values.
func (m *machine) pairAddr(c *control) (err error) {
	m.box.Token.Check()
	switch s := m.at(); {
	case s == life.Closed:
		return s.Refusal(c.op)
	case m.box.QP() == nil:
		return &hw.Error{Op: c.op, Type: hw.InvalidState, Sub: hw.StateEPPZ, Text: "the endpoint has no protection zone yet"}
	}
	c.peer, err = m.adapter.cfg.Device.(hw.Pairer).Local(m.box.QP())
	return wrap(c.op, err)
}
