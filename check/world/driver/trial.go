package driver

import (
	"fmt"
	"strings"

	"godat/check/world/model"
	dat "godat/runtime"
)

// trial is a run of commands against a model of its own.
type trial struct {
	ia     *dat.IA
	world  *model.World
	driver *driver
	script []string // the commands, each with its result
	seen   *coverage
}

// begin begins a program on an adapter; a long one posts long transfers.
func begin(ia *dat.IA, long bool, seen *coverage) *trial {
	p := &trial{ia: ia, seen: seen, world: model.Make(ia.Attr().MaxPrivate)}
	if long {
		p.world.Long()
	}
	p.driver = newDriver(ia, p.world.CR)
	return p
}

// String returns the program as a script; see [model.Parse].
func (p *trial) String() string { return strings.Join(p.script, "\n") }

// do makes a call and lets the model judge it.
func (p *trial) do(c model.Command) error {
	state := model.NoState
	if c.On[0] == 'p' {
		state = p.world.State(model.Index('p', c.On))
	}
	p.script = append(p.script, c.String())
	r := p.driver.do(c)
	if r.Code != 0 {
		p.script[len(p.script)-1] += fmt.Sprintf("  # %v", r.Code)
	}
	p.seen.call(c.Op, state, r)
	if err := p.world.Step(c, r); err != nil {
		return err
	}
	if err := p.checkWaits(); err != nil {
		return err
	}
	return p.checkStates()
}

// checkStates compares the states of all endpoints with the model's.
func (p *trial) checkStates() error {
	for i, e := range p.driver.eps {
		if want := p.world.State(i); want != model.NoState && int(e.State()) != want {
			return fmt.Errorf("p%d is %v, should be %s", i, e.State(), model.StateNames[want])
		}
	}
	return nil
}

// finish checks everything that the program has made, and frees it by commands.
func (p *trial) finish() error {
	d := p.driver
	for _, do := range []func() error{
		p.checkMemory,
		func() error { return p.each("unblock", 'e', len(d.evds)) },
		p.drain,
		func() error { return p.each("status", 'p', len(d.eps)) },
		func() error { return p.do(model.New("async", "-")) },
		func() error { return p.each("reject", 'c', p.world.CRs()) },
		p.freePoints,
		func() error { return p.each("ep_free", 'p', len(d.eps)) },
		func() error { return p.each("os_release", 'o', len(d.shots)) },
		p.drain,
		func() error { return p.each("evd_free", 'e', len(d.evds)) },
		func() error { return p.each("cno_free", 'n', len(d.cnos)) },
		func() error { return p.each("srq_query", 'q', len(d.srqs)) },
		func() error { return p.each("srq_free", 'q', len(d.srqs)) },
		func() error { return p.each("rmr_free", 'w', len(d.windows)) },
		func() error { return p.each("lmr_free", 'm', len(d.regions)) },
		func() error { return p.each("pz_free", 'z', len(d.zones)) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func (p *trial) each(op string, kind byte, n int) error {
	for i := range n {
		if err := p.do(model.New(op, fmt.Sprintf("%c%d", kind, i))); err != nil {
			return err
		}
	}
	return nil
}

func (p *trial) freePoints() error {
	for i, s := range p.driver.points {
		if s == nil {
			continue
		}
		if err := p.do(model.New(s.kind+"_free", fmt.Sprintf("s%d", i))); err != nil {
			return err
		}
	}
	return nil
}

// drain dequeues all events; the model checks that none is missing and none is too
// many.
func (p *trial) drain() error {
	for i := range p.driver.evds {
		if err := p.do(model.New("dequeue", fmt.Sprintf("e%d", i), "n", 100)); err != nil {
			return err
		}
	}
	return nil
}

func (p *trial) checkMemory() error {
	for i, m := range p.driver.regions {
		if m.lmr.Bytes() == nil {
			continue
		}
		if err := p.world.CheckMemory(i, m.buf); err != nil {
			return err
		}
	}
	return nil
}
