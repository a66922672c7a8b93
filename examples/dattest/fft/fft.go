// Package fft is the functional test: small cases, by areas, each of which makes a call
// and checks its result.
package fft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"godat/ep"
	"godat/evd"
	"godat/mem"
	dat "godat/runtime"
)

// Area is a group of cases.
type Area struct {
	Name  string // hwconn, the name on a command line
	title string
	cases []testCase
}

// testCase is one case. Its number is its index in its area, as in dapltest.
type testCase struct {
	description string
	run         func(*bench) error
}

// Areas are all areas.
var Areas = []Area{
	{"hwconn", "Hardware connection", hwconn},
	{"endpoint", "EndPoint management", endpoint},
	{"pz", "Protection Zone management", pz},
	{"mem", "Memory register/deregister", memOf},
	{"connmgt", "Connect Management (Server side)", connmgt},
	{"queryinfo", "Queryinfo", queryinfo},
}

// Find returns the area of that name.
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

// Run runs the cases of those numbers, or all if there are none, and prints what
// dapltest prints. Unlike dapltest, it prints that a case failed, and returns an error
// then.
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

// returns is an error unless a call returned what it should: want, or nil.
func returns(call string, got, want error) error {
	if errors.Is(got, want) || got == nil && want == nil {
		return nil
	}
	if want == nil {
		return fmt.Errorf("%s: %w", call, got)
	}
	return fmt.Errorf("%s returned %q, where %q should be", call, fmt.Sprint(got), want)
}

// is is an error unless holds is true.
func is(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// bench is where a case makes its objects. They are closed with the adapter.
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

// objects are the objects that most cases need.
type objects struct {
	ia *dat.IA
	pz *mem.PZ
	d  *evd.Dispatcher
}

// open opens the adapter, and makes a zone and a dispatcher of default streams.
func (b *bench) open() (o objects, err error) {
	if b.ia, err = dat.Open(b.ctx, b.provider); err != nil {
		return o, err
	}
	o.ia = b.ia
	if o.pz, err = o.ia.NewPZ(); err != nil {
		return o, err
	}
	o.d, err = o.ia.NewDispatcher(evd.Config{QLen: 64})
	return o, err
}

func (o objects) endpoint() (*ep.Endpoint, error) {
	return o.ia.NewEndpoint(ep.Config{PZ: o.pz, Recv: o.d, Request: o.d, Conn: o.d})
}
