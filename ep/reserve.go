package ep

// change moves the endpoint on, where that is all there is to do.
func (ctl *controls) change(op string, in input) error {
	ctl.e.ctl.Lock()
	defer ctl.e.ctl.Unlock()
	return ctl.do(&control{op: op, in: in})
}

// disown ends what a request and the endpoint that came with it have with each
// other. An endpoint that was made for the request is freed. The caller holds
// e.ctl.
func (ctl *controls) disownEndpoint(op string) error {
	if err := ctl.do(&control{op: op, in: inDisown}); err != nil {
		return err
	}
	if ctl.e.State() != closed {
		return nil
	}
	return ctl.free(op)
}
