package storage

import (
	"context"
	"errors"
	"time"

	"godat/bench/ends"
	"godat/bench/host"
	"godat/bench/load"
)

// pair is the processes of a row at a place.
type pair struct {
	*ends.Pair
	row Row
}

func ask(p *ends.Process, o order) (a answer, err error) {
	err = p.Ask(o, o.For, &a)
	return a, err
}

// open starts the processes of a row.
func open(ctx context.Context, command []string, place Place, row Row, address string, depth int) (_ *pair, err error) {
	o := order{Do: doServe, Place: place, Row: row.Name, Host: address, Depth: depth}
	both, err := ends.Open(ctx, command, place.OneProcess(), 0, o, func(addr string) any {
		o.Do, o.Addr = doDial, addr
		return o
	})
	if err != nil {
		return nil, err
	}
	return &pair{both, row}, nil
}

// sample is what a turn has measured.
type sample struct {
	turned
	Target, Host time.Duration // processor time of each end, without pacing; of one process Target has both
	Switches     int64         // of both
	known        bool          // Target, Host and Switches are
	System       int64         // switches of the whole system
	Server       loops         // of the target's adapter
	Client       loops         // of the host's
	p50          float64       // nanoseconds
}

// unproven is the error of a turn in which a row ran another loop than its own.
type unproven struct{ error }

func isUnproven(err error) bool {
	var other unproven
	return errors.As(err, &other)
}

// used is the processor time of both ends.
func (s *sample) used() time.Duration { return s.Target + s.Host }

// turn runs a load for so long. The error says that something failed, or that the row proved another
// loop than its own.
func (p *pair) turn(l Load, duration time.Duration) (s sample, err error) {
	if err := p.Tell(order{Do: doMark}); err != nil {
		return s, err
	}
	before := host.SystemSwitches()
	client, err := ask(p.Client, order{Do: doTurn, Load: l, For: duration})
	if err != nil {
		return s, err
	}
	server := client
	s = sample{turned: client.Turned, Target: client.Used, Switches: client.Switches, known: client.Used >= 0 && client.Switches >= 0}
	if p.Client != p.Server {
		if server, err = ask(p.Server, order{Do: doCount}); err != nil {
			return s, err
		}
		s.Target, s.Host, s.Switches = server.Used, client.Used, s.Switches+server.Switches
		s.known = s.known && server.Used >= 0 && server.Switches >= 0
		s.Host -= s.Pacing
	} else {
		s.Target -= s.Pacing
	}
	s.System, s.Server, s.Client = host.SystemSwitches()-before, server.Server, client.Client
	if s.Count == 0 && !l.Idle {
		return s, errors.New("no command was done")
	}
	if err := p.row.proveTurn(l, &s); err != nil {
		return s, unproven{err}
	}
	return s, nil
}

// proveTurn compares what a turn counted with what the row says it runs.
func (r Row) proveTurn(l Load, s *sample) error {
	if l.Idle {
		return r.proveIdle(s.Server, s.Client)
	}
	err := r.prove(s.Count, s.Server, s.Client)
	if l.Rate == load.Closed {
		err = errors.Join(err, r.provePolling(float64(s.Count)/s.Took.Seconds(), s.Server, s.Client))
	}
	return err
}
