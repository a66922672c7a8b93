package ep

// change moves the endpoint on, where that is all there is to do.
func (e *Endpoint) change(op string, in input) error {
	e.ctl.Lock()
	defer e.ctl.Unlock()
	return e.do(&control{op: op, in: in})
}

func (e *Endpoint) move(c *control) error {
	s := e.State()
	if e.become(c.in) < firstEdge {
		return stateError(c.op, s)
	}
	return nil
}

// askedFor takes the request that a reserved service point has for the endpoint.
// It is announced when the state says so.
func (e *Endpoint) askedFor() {
	cr := e.asked
	e.asked = nil
	if e.become(inAsked) >= firstEdge {
		e.setAddresses(cr.request.Local(), cr.request.Remote())
	}
	cr.announce()
}

// disown ends what a request and the endpoint that came with it have with each
// other. An endpoint that was made for the request is freed. The caller holds
// e.ctl.
func (e *Endpoint) disown(op string) error {
	if err := e.do(&control{op: op, in: inDisown}); err != nil {
		return err
	}
	if e.State() != closed {
		return nil
	}
	return e.free(op)
}

func (e *Endpoint) disowned(c *control) error {
	if transitions[e.State()][inDisown] == to(closed) {
		return e.close(c)
	}
	if err := e.move(c); err != nil {
		return err
	}
	e.setAddresses(nil, nil)
	return nil
}
