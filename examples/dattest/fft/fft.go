// Package fft is the functional test: small cases, by areas, which make a call and
// look at what it returns.
package fft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	dat "godat/runtime"
)

// Area is a group of cases.
type Area struct {
	Name  string // hwconn, what a command line has
	title string
	cases []testCase
}

// testCase is one case. Its number is its place in its area, and that of dapltest.
type testCase struct {
	description string
	run         func(*bench) error
}

// Areas are all.
var Areas = []Area{
	{"hwconn", "Hardware connection", hwconn},
	{"endpoint", "EndPoint management", endpoint},
	{"pz", "Protection Zone management", pz},
	{"mem", "Memory register/deregister", mem},
	{"connmgt", "Connect Management (Server side)", connmgt},
	{"queryinfo", "Queryinfo", queryinfo},
}

// Find is the area of that name.
func Find(name string) (*Area, error) {
	var names []string
	for i := range Areas {
		if Areas[i].Name == name {
			return &Areas[i], nil
		}
		names = append(names, Areas[i].Name)
	}
	return nil, fmt.Errorf("there is no area %q: they are %s", name, strings.Join(names, ", "))
}

// Len is how many cases the area has.
func (a *Area) Len() int { return len(a.cases) }

const stars = "\t\t*********************************************************************"

// Run runs those cases, or all if none are named, and prints what dapltest prints.
// Unlike there, a case that fails says so, and is an error of the whole.
func (a *Area) Run(ctx context.Context, provider string, numbers []int, out io.Writer) error {
	if len(numbers) == 0 {
		for n := range a.cases {
			numbers = append(numbers, n)
		}
	}
	var errs []error
	for _, n := range numbers {
		c := a.cases[n]
		fmt.Fprintf(out, "%s\n\t\tFunction feature: %-33s case: %d\nDescription: %s\n", stars, a.title, n, c.description)
		err := one(ctx, provider, c)
		switch {
		case err == nil:
			fmt.Fprintf(out, "Result: PASS\n%s\n", stars)
			continue
		case errors.Is(err, errors.ErrUnsupported):
			fmt.Fprintf(out, "%v\nResult: UNSUPP\n%s\n", err, stars)
			continue
		}
		fmt.Fprintf(out, "%v\nResult: FAIL\n%s\n", err, stars)
		errs = append(errs, fmt.Errorf("%s, case %d: %w", a.Name, n, err))
	}
	return errors.Join(errs...)
}

func one(ctx context.Context, provider string, c testCase) (err error) {
	b := &bench{ctx: ctx, provider: provider}
	defer func() { err = errors.Join(err, b.close()) }()
	return c.run(b)
}

// returns is nil if a call returned what it should: want, or nothing wrong.
func returns(call string, got, want error) error {
	if errors.Is(got, want) || got == nil && want == nil {
		return nil
	}
	if want == nil {
		return fmt.Errorf("%s: %w", call, got)
	}
	return fmt.Errorf("%s returned %q, where %q should be", call, fmt.Sprint(got), want)
}

// is is nil if something holds.
func is(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// bench is what a case makes objects on. What it makes is closed with its
// adapter.
type bench struct {
	ctx      context.Context
	provider string
	ia       *dat.IA
}

func (b *bench) close() error {
	if b.ia == nil {
		return nil
	}
	return b.ia.Close()
}

// objects are one of each that a case may need.
type objects struct {
	ia *dat.IA
	pz *dat.PZ
	d  *dat.Dispatcher
}

// open opens the adapter, with a zone and a dispatcher for anything.
func (b *bench) open() (o objects, err error) {
	if b.ia, err = dat.Open(b.ctx, b.provider); err != nil {
		return o, err
	}
	o.ia = b.ia
	if o.pz, err = o.ia.NewPZ(); err != nil {
		return o, err
	}
	o.d, err = o.ia.NewDispatcher(dat.DispatcherConfig{QLen: 64})
	return o, err
}

func (o objects) endpoint() (*dat.Endpoint, error) {
	return o.ia.NewEndpoint(dat.EndpointConfig{PZ: o.pz, Recv: o.d, Request: o.d, Conn: o.d})
}
