// Package limit is the limit test: it makes objects of one kind until the library
// refuses, or until there are as many as the client wants, and frees them.
package limit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"godat/hw"
	dat "godat/runtime"
)

// Test is a limit test for one kind.
type Test struct {
	Name        string // limit_pz
	Description string
	run         func(*bench) (string, error)
}

// Config says how far a test goes.
type Config struct {
	Provider string
	Options  []dat.Option // options of Open
	IA       *dat.IA      // if set, all sets are made on it; otherwise each set opens an adapter
	Width    int          // number of sets, made at the same time
	Maximum  int          // most objects of a set
	Largest  int          // largest region to try, in bytes; 0 means 1 GiB
}

// Tests are all tests, in dapltest's order.
var Tests = []Test{
	{"limit_ia", "Test max num of opens for the same physical IA", limitIA},
	{"limit_pz", "Test max num of PZs that are supported by an IA", limitPZ},
	{"limit_cno", "Test max num of CNOs that are supported by an IA", limitCNO},
	{"limit_evd", "Test max num of EVDs that are supported by an IA", limitEVD},
	{"limit_ep", "Test max num of EPs that are supported by an IA", limitEP},
	{"limit_rsp", "Test max num of RSPs that are supported by an IA", limitRSP},
	{"limit_psp", "Test max num of PSPs that are supported by an IA", limitPSP},
	{"limit_lmr", "Test max num of LMRs that are supported by an IA", limitLMR},
	{"limit_rpost", "Test max num of receive buffers posted to an EP", limitRecv},
	{"limit_size_lmr", "Test max size of LMRs that are supported by an IA", limitSize},
}

// Find returns the test of that name.
func Find(name string) (Test, error) {
	for _, t := range Tests {
		if t.Name == name {
			return t, nil
		}
	}
	return Test{}, fmt.Errorf("there is no limit test %q", name)
}

const stars = "**********************************************************************"

// Run runs the test and prints how far it came. It is an error if anything but a lack
// of resources stopped it.
func (t Test) Run(ctx context.Context, cfg Config, out io.Writer) error {
	fmt.Fprintf(out, "%s\nLimitation Test%22s%s\nDescription:  %s\n", stars, "", t.Name, t.Description)
	results, err := t.Results(ctx, cfg)
	for _, r := range results {
		if r != "" {
			fmt.Fprintf(out, "LimitTest: %s\n", r)
		}
	}
	fmt.Fprintln(out, stars)
	return err
}

// Results runs the test without printing; it returns how far each set came.
func (t Test) Results(ctx context.Context, cfg Config) ([]string, error) {
	results, errs := make([]string, cfg.Width), make([]error, cfg.Width)
	var running sync.WaitGroup
	for i := range cfg.Width {
		running.Go(func() { results[i], errs[i] = t.one(ctx, cfg) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return results, fmt.Errorf("%s: %w", t.Name, err)
	}
	return results, nil
}

func (t Test) one(ctx context.Context, cfg Config) (result string, err error) {
	b := &bench{ctx: ctx, cfg: cfg, ia: cfg.IA}
	if b.ia == nil {
		if b.ia, err = dat.Open(ctx, cfg.Provider, cfg.Options...); err != nil {
			return "", err
		}
		b.keep(b.ia.CloseGraceful)
	}
	defer func() { err = errors.Join(err, b.free()) }()
	return t.run(b)
}

// bench is where one set of objects is made.
type bench struct {
	ctx  context.Context
	cfg  Config
	ia   *dat.IA
	undo []func() error
}

// keep notes how to free an object.
func (b *bench) keep(free func() error) { b.undo = append(b.undo, free) }

// free frees all objects, the last one first.
func (b *bench) free() error {
	var errs []error
	for _, f := range slices.Backward(b.undo) {
		errs = append(errs, f())
	}
	b.undo = nil
	return errors.Join(errs...)
}

// exhaust calls one, which makes an object, until that is refused.
func (b *bench) exhaust(maximum int, one func() error) (int, error) {
	for n := range maximum {
		if err := b.ctx.Err(); err != nil {
			return n, err
		}
		switch err := one(); {
		case errors.Is(err, hw.ErrInsufficientResources):
			return n, nil
		case err != nil:
			return n, fmt.Errorf("after %d: %w", n, err)
		}
	}
	return maximum, nil
}

// count is exhaust with the result as text.
func (b *bench) count(what string, one func() error) (string, error) {
	n, err := b.exhaust(b.cfg.Maximum, one)
	return fmt.Sprintf("%s: %d", what, n), err
}
