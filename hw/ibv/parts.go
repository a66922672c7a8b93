//go:build linux && cgo

package ibv

import "godat/hw"

// parts are the objects of which a queue pair is made. Each counts the queue pair as a
// user.
type parts struct {
	zone *zone
	send *completionQueue
	recv *completionQueue
	srq  *sharedQueue // nil: the receives are the queue pair's own
}

// use finds the device's objects behind those of a configuration and counts a user of
// each. When it fails it undoes what it counted.
func (p *parts) use(op string, d *device, cfg *hw.QPConfig) (err error) {
	defer func() {
		if err != nil {
			p.each((*users).unuse)
		}
	}()
	if p.zone, err = use[*zone](op, d, cfg.Zone, &zones); err != nil {
		return err
	}
	if p.send, err = use[*completionQueue](op, d, cfg.SendCQ, &queues); err != nil {
		return err
	}
	if p.recv, err = use[*completionQueue](op, d, cfg.RecvCQ, &queues); err != nil {
		return err
	}
	if cfg.SRQ != nil {
		p.srq, err = use[*sharedQueue](op, d, cfg.SRQ, &shares)
	}
	return err
}

// each calls f with the user counts of the parts that there are. The zone is last, since
// the device frees it behind the others.
func (p *parts) each(f func(*users)) {
	if p.send != nil {
		f(&p.send.users)
	}
	if p.recv != nil {
		f(&p.recv.users)
	}
	if p.srq != nil {
		f(&p.srq.users)
	}
	if p.zone != nil {
		f(&p.zone.users)
	}
}
