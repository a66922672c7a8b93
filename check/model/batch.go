package model

import "fmt"

// shot is a one-shot: it receives the event of one operation in place of the
// dispatcher.
type shot struct {
	armed bool    // an operation names it
	event *queued // the event that has come and not been waited for; nil for none
}

func (w *World) shot(name string) *shot { return object(w.shots, 'o', name) }

func (w *World) newShot(c Command, r Result) error {
	w.shots = append(w.shots, nil)
	if d := w.evd(c.Text("evd")); d != nil {
		d.shots = true
		w.shots[len(w.shots)-1] = &shot{}
	}
	_, err := new(verdict).judge(r.Code)
	return err
}

// waitShot judges a wait on a one-shot that looks once.
func (w *World) waitShot(c Command, r Result) error {
	s := w.shot(c.On)
	var v verdict
	v.when(s == nil, invalidHandle)
	v.when(s != nil && s.event == nil && s.armed, timeoutExpired)
	v.when(s != nil && s.event == nil && !s.armed, invalidState)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	q := s.event
	s.event = nil
	if !q.matches(r.Events[0]) {
		return fmt.Errorf("event %v, should be %v", r.Events[0], q.want)
	}
	return nil
}

// releaseShot releases a one-shot, with the event that it has or that is still to
// come.
func (w *World) releaseShot(c Command, r Result) error {
	if i := Index('o', c.On); i >= 0 && i < len(w.shots) {
		w.shots[i] = nil
	}
	_, err := new(verdict).judge(r.Code)
	return err
}

// complete delivers a completion to its one-shot or its dispatcher.
func (w *World) complete(x *work, q queued) {
	if s := x.shot; s != nil {
		s.armed, s.event = false, &q
		return
	}
	w.put(x.to, q)
}

// drop frees the reserved room of a completion that does not come.
func (x *work) drop() {
	switch {
	case x.shot != nil:
		x.shot.armed = false
	case x.to != nil:
		x.to.awaited--
	}
}

// postBatch judges a post of several operations, which are taken in order up to the
// first that is refused. The operations are arguments, named by their index. All
// that are taken are queued before the first is executed.
//
//	batch p0 0=send;cookie=3;local=m0:0+8 1=write;cookie=4;shot=o1;remote=m1:0+0
func (w *World) postBatch(c Command, r Result) error {
	p := w.ep(c.On)
	ops := c.Batch()
	took := r.Values["n"]
	if took < 0 || took > len(ops) {
		return fmt.Errorf("took %d of %d", took, len(ops))
	}
	var xs []*work
	room := make(map[*evd]int)
	shots := make(map[*shot]bool)
	for i, op := range ops[:min(took+1, len(ops))] {
		x := workOf(op)
		x.shot = w.shot(op.Text("shot"))
		v := w.refusalsInBatch(p, x, i)
		switch d := p.sink(x.op); {
		case x.shot != nil:
			v.when(x.shot.armed || x.shot.event != nil || shots[x.shot], invalidState)
			shots[x.shot] = true
		case d != nil:
			room[d]++
			w.room(&v, d, room[d])
			x.to = d
		}
		if i == took {
			if ok, err := v.judge(r.Code); err != nil || ok {
				return fmt.Errorf("%s: %w", op, err)
			}
			break
		}
		if _, err := v.judge(success); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		xs = append(xs, x)
	}
	if took == len(ops) && r.Code != success {
		return fmt.Errorf("took all, and failed with %v", r.Code)
	}
	if took > 0 {
		w.taken(p, xs)
	}
	return nil
}

// sink is the dispatcher that gets an endpoint's completions of an operation.
func (p *endpoint) sink(op string) *evd {
	switch {
	case p == nil:
		return nil
	case op == "recv":
		return p.recv
	}
	return p.request
}

// refusalsInBatch returns everything that refuses the post of x, but for the room
// of its event, if so many operations of the batch come before it.
func (w *World) refusalsInBatch(p *endpoint, x *work, before int) verdict {
	v := p.usable()
	switch {
	case p == nil:
	case x.op == "recv":
		w.refusals(&v, p, x, p.recvIOV, p.recvFlags)
		v.when(len(p.recvs)+before >= p.recvDepth, insufficientResources)
		v.when(p.srq != nil, invalidState|subSRQInUse)
		v.when(p.zone == nil, invalidState|subPZ)
	default:
		w.refusals(&v, p, x, p.segments(x.op), p.reqFlags)
		v.when(p.state != isConnected && p.state != isDisconnected, stateCodes[p.state])
		v.when(len(p.reqs)+before >= p.reqDepth, insufficientResources)
		v.perhaps(len(p.reqs)+before+p.unsure() >= p.reqDepth, insufficientResources)
	}
	return v
}

// taken queues the operations of a batch that were taken, and executes what can be
// executed.
func (w *World) taken(p *endpoint, xs []*work) {
	for _, x := range xs {
		switch {
		case x.shot != nil:
			x.shot.armed = true
		case x.to != nil:
			x.to.awaited++
		}
		if x.op == "recv" {
			p.recvs = append(p.recvs, x)
			p.receives++
		} else {
			p.reqs = append(p.reqs, x)
			p.requests++
		}
	}
	switch {
	case p.state == isDisconnected:
		w.flush(p)
	case xs[0].op != "recv":
		w.pump(p)
	case p.peer != nil:
		w.pump(p.peer)
	}
}
