package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"godat/examples/dattest/fft"
	"godat/examples/dattest/limit"
	"godat/examples/dattest/transaction"
	"godat/examples/dattest/wire"
	"godat/examples/internal/usage"
)

// options is the command line, with dapltest's letters.
type options struct {
	test     string // -T
	provider string // -D or --provider
	server   string // -s
	port     uint64 // -n
	inspect  string
	traces   string
	timeout  time.Duration

	iterations, threads, eps uint // -i -t -w
	validate, poll, rsp, cno bool // -V -P -r -Q
	mode                     string
	pipeline                 uint
	width, maximum           uint // -w -m of the limit test
	debug                    bool
	ops                      []wire.Op
	limits                   []limit.Test
	area                     *fft.Area // -f of the functional test
	cases                    []int
}

// The tests.
const (
	testLocal       = "" // a few transactions, server and client in one process
	testServer      = "S"
	testTransaction = "T"
	testPerformance = "P"
	testLimit       = "L"
	testQuit        = "Q"
	testFunctional  = "F"
)

// parse reads the command line. Messages for the user go to out.
func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	args, err := script(args)
	if err != nil {
		return nil, err
	}
	if len(args) > 0 {
		switch first := strings.Replace(args[0], "--T", "-T", 1); {
		case first == "-T" && len(args) > 1:
			o.test, args = args[1], args[2:]
		case strings.HasPrefix(first, "-T") && len(first) > 2:
			o.test, args = strings.TrimPrefix(first[2:], "="), args[1:]
		}
	}
	f := flag.NewFlagSet("dattest", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&o.provider, "D", "loop", "provider and device to run on, or an IA `name` of the static registry")
	f.StringVar(&o.provider, "provider", "loop", "the same as -D")
	f.Uint64Var(&o.port, "n", wire.Port, "the server's `port`")
	f.StringVar(&o.inspect, "inspect", "", "show the adapter in a browser at this `address`; not of tests L and F")
	f.StringVar(&o.traces, "traces", "", "let visitors of the page trace connections into this `directory`")
	f.BoolVar(&o.debug, "d", false, "print what is asked of the server")
	f.String("R", "BE", "quality of service: BE, HT, LL, EC or PM; it has no effect here")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "longest `time` for a client's test")
	err = o.flags(f)
	usage.Flags(f, help)
	if err != nil {
		f.Usage()
		return nil, err
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if err := o.operands(f.Args()); err != nil {
		return nil, err
	}
	return o, o.check()
}

// flags declares the flags of the test.
func (o *options) flags(f *flag.FlagSet) error {
	switch o.test {
	case testTransaction, testPerformance, testQuit:
		f.StringVar(&o.server, "s", "", "the server's `host`; without it a server runs in this process")
	}
	switch o.test {
	case testLocal, testTransaction:
		f.UintVar(&o.iterations, "i", 1000, "`iterations`")
		f.UintVar(&o.threads, "t", 1, "`threads`")
		f.UintVar(&o.eps, "w", 1, "`endpoints` per thread")
		f.BoolVar(&o.validate, "V", false, "validate the data")
		f.BoolVar(&o.poll, "P", false, "poll for completions")
		f.BoolVar(&o.rsp, "r", false, "use reserved service points")
		f.BoolVar(&o.cno, "Q", false, "wait for completions at a CNO")
	case testPerformance:
		f.UintVar(&o.iterations, "i", 1000, "`iterations`")
		f.StringVar(&o.mode, "m", "b", "`mode`: b waits for completions, p polls")
		f.UintVar(&o.pipeline, "p", 1<<32-1, "operations outstanding (as many as are possible)")
	case testLimit:
		f.UintVar(&o.width, "w", 1, "`sets` of objects at a time")
		f.UintVar(&o.maximum, "m", 1000, "most objects of a set")
	case testFunctional:
		f.Func("f", "`area`: hwconn, endpoint, pz, mem, connmgt or queryinfo", func(name string) (err error) {
			o.area, err = fft.Find(name)
			return err
		})
	case testServer, testQuit:
	default:
		return fmt.Errorf("there is no test %q: -T is S, T, P, L, F or Q", o.test)
	}
	return nil
}

// operands reads what follows the flags.
func (o *options) operands(args []string) (err error) {
	switch o.test {
	case testLocal, testTransaction:
		if len(args) == 0 && o.server == "" {
			args = strings.Fields("client SR 4096 server SR 4096")
		}
		o.ops, err = wire.ParseOps(args)
		if err == nil && o.validate {
			o.ops = transaction.WithBarriers(o.ops)
		}
	case testPerformance:
		if len(args) == 0 {
			args = []string{"RW"}
		}
		var op wire.Op
		op, args, err = wire.ParseTransfer(args)
		o.ops = []wire.Op{op}
		switch {
		case err != nil:
		case len(args) > 0:
			err = fmt.Errorf("too much after the operation: %q", args)
		case op.Transfer == wire.SendRecv:
			err = errors.New("a performance test is of RR or RW")
		}
	case testLimit:
		o.limits = limit.Tests
		if len(args) > 0 {
			o.limits = nil
		}
		for _, name := range args {
			t, err := limit.Find(name)
			if err != nil {
				return err
			}
			o.limits = append(o.limits, t)
		}
	case testFunctional:
		o.cases, err = parseCases(args)
	default:
		if len(args) > 0 {
			err = fmt.Errorf("too much on the command line: %q", args)
		}
	}
	return err
}

func parseCases(args []string) (cases []int, err error) {
	for _, arg := range args {
		number, found := strings.CutPrefix(arg, "case")
		n, err := strconv.ParseUint(number, 10, 16)
		if !found || err != nil {
			return nil, fmt.Errorf("a case is case0, case1 …, not %q", arg)
		}
		cases = append(cases, int(n))
	}
	return cases, nil
}

const help = `dattest [-T TEST] [flags] [operations]

TEST is the first on the command line, and one of
  S  a server
  T  a transaction test: client|server SR|RR|RW [size [segments]] [-f] ...
  P  a performance test: RR|RW [size [segments]]
  L  limit tests: limit_pz, limit_ep ...; all if none is named
  F  functional tests of one area: case0 case1 ...; all if none is named
  Q  ask a server to quit
With -f FILE alone, the command line is read from a file. With none, or without -s, the server runs in this process.

flags of this test:`
