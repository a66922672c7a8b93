package ep

import "godat/ep/internal/life"

// Close frees the endpoint. It gives up the connection or an attempt at one;
// everything outstanding completes as flushed before Close returns, and no
// connection event follows. Posts fail with INVALID_HANDLE from then on. Closing a
// closed endpoint does nothing. While a service point owns the endpoint Close fails
// and has no effect.
// It answers to dat_ep_free.
func (e *Endpoint) Close() error {
	const op = "ep.Close"
	if !e.isMade() {
		return errNoEndpoint(op)
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	if e.ctl.freed {
		return nil
	}
	if e.at() != life.Closed {
		if err := e.ctl.do(&control{op: op, in: life.InClose}); err != nil {
			return err
		}
	}
	return e.free(op)
}

// free gives back what a closed endpoint has taken of others. The caller holds e.ctl.
func (e *Endpoint) free(op string) error {
	e.ctl.over.Wait()
	if err := e.closeReplaced(); err != nil {
		return wrap(op, err)
	}
	e.ctl.reach.end()
	p := e.parts()
	if err := p.giveBack(e, &parts{}); err != nil {
		return wrap(op, err)
	}
	e.ctl.releaseOwed()
	e.ctl.freed = true
	e.adapter.endpoints.Remove(e.key)
	e.adapter.counters.endpointsFreed.whole.Add(1)
	e.adapter.leave(e) // last: an adapter's close that no longer sees the endpoint must find it closed, and counted
	return nil
}

// disown separates the endpoint from the request that it came with, and frees one that
// was made for the request. The caller holds e.ctl.
func (e *Endpoint) disown(op string) error {
	if err := e.ctl.do(&control{op: op, in: life.InDisown}); err != nil {
		return err
	}
	if e.at() != life.Closed {
		return nil
	}
	return e.free(op)
}
