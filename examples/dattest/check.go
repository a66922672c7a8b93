package main

import (
	"errors"
	"fmt"

	"godat/examples/dattest/wire"
)

// check refuses options that can't be run.
func (o *options) check() error {
	switch o.test {
	case testLocal, testTransaction:
		return o.checkTransaction()
	case testPerformance:
		if o.mode != "b" && o.mode != "p" {
			return fmt.Errorf("-m is b or p, not %q", o.mode)
		}
		_, err := wire.ParsePerformance(o.performance().Append(nil))
		return err
	case testLimit:
		if o.width < 1 || o.width > wire.MaxThreads || o.maximum < 1 {
			return fmt.Errorf("-w must be 1 to %d and -m at least 1", wire.MaxThreads)
		}
	case testFunctional:
		if o.area == nil {
			return errors.New("-f must name the area to test")
		}
		for _, n := range o.cases {
			if n >= o.area.Len() {
				return fmt.Errorf("the last case of %s is case%d", o.area.Name, o.area.Len()-1)
			}
		}
	case testQuit:
		if o.server == "" {
			return errors.New("-s must name the server to quit")
		}
	}
	return nil
}

// checkTransaction requires a message in each direction, because the messages keep the
// sides in step, and flags -f in pairs.
func (o *options) checkTransaction() error {
	var sends [2]bool
	reaps := 0
	for _, op := range o.ops {
		if op.Transfer != wire.SendRecv {
			continue
		}
		if op.Server {
			sends[1] = true
		} else {
			sends[0] = true
		}
		if op.ReapOnRecv {
			if !op.Server {
				reaps++
			} else if reaps--; reaps < 0 {
				return errors.New("-f without one on a client SR before it")
			}
		}
	}
	switch {
	case !sends[0] || !sends[1]:
		return errors.New("a transaction test requires at least one server SR and one client SR")
	case reaps != 0:
		return errors.New("-f without one on a server SR after it")
	case o.poll && o.cno:
		return errors.New("-P polls and -Q waits: not both")
	case len(o.ops) > wire.MaxOps:
		return fmt.Errorf("%d operations; the most are %d", len(o.ops), wire.MaxOps)
	case o.iterations < 1 || o.threads < 1 || o.eps < 1:
		return errors.New("-i, -t and -w must be at least 1")
	}
	_, err := wire.ParseTransaction(o.transaction().Append(nil))
	return err
}

func (o *options) transaction() *wire.Transaction {
	return &wire.Transaction{
		Server: o.server, Iterations: uint32(o.iterations), Threads: uint32(o.threads), EPs: uint32(o.eps),
		RSP: o.rsp, Debug: o.debug, Validate: o.validate, Poll: o.poll, Port: o.port, Device: o.provider, Ops: o.ops,
	}
}

func (o *options) performance() *wire.Performance {
	return &wire.Performance{
		Server: o.server, Device: o.provider, Debug: o.debug, Poll: o.mode == "p",
		Iterations: uint32(o.iterations), Pipeline: uint32(min(o.pipeline, 1<<32-1)), Op: o.ops[0], Port: o.port,
	}
}
