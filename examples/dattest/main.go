// Command dattest is what dapltest is to uDAPL: it tests that two sides can talk, on
// any provider, with flags and output that a user of dapltest knows.
//
//	go run ./examples/dattest
//
// Without flags, server and client are in one process, on the embedded provider. The
// first flag selects the test:
//
//	dattest -T S -D iwarp                     a server
//	dattest -T T -s host -D iwarp -i 4096 -t 4 -w 2 -V client SR 8192 3 server SR 8192 3 client RW 4096
//	dattest -T P -s host -D iwarp -m p -i 100000 -p 16 RW 65536
//	dattest -T L -w 8 -m 1000 limit_pz limit_ep
//	dattest -T F -f endpoint case0 case2
//	dattest -T Q -s host -D iwarp             end the server
//
// -D, or --provider, names the provider. It exits with 1 when the test failed. The two
// sides talk in dapltest's own format, so either of them may be the C program; see
// package wire.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"godat/examples/dattest/control"
	"godat/examples/dattest/limit"
	"godat/examples/dattest/performance"
	"godat/examples/dattest/transaction"
	"godat/examples/dattest/wire"
	"godat/examples/internal/usage"
	"godat/hw"
	dat "godat/runtime"
	"godat/runtime/inspect"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if err == nil && (o.test == testServer || o.server != "") {
		err = usage.Reaches(o.provider)
	}
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(0)
		}
		fmt.Fprintln(os.Stderr, "dattest:", err)
		os.Exit(usage.Status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o, os.Stdout)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted && o.test == testServer && errors.Is(err, context.Canceled): // which is how a server ends
	case interrupted:
		fmt.Fprintln(os.Stderr, "dattest: interrupted")
		os.Exit(130)
	case errors.Is(err, hw.ErrProviderNotFound):
		fmt.Fprintln(os.Stderr, "dattest:", err)
		os.Exit(usage.Status)
	default:
		fmt.Fprintln(os.Stderr, "dattest:", err)
		os.Exit(1)
	}
}

// run is the program.
func run(ctx context.Context, o *options, out io.Writer) (err error) {
	switch o.test {
	case testLimit:
		return limits(ctx, o, out)
	case testFunctional:
		return o.area.Run(ctx, o.provider, o.cases, out)
	}
	ia, err := dat.Open(ctx, o.provider)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ia.Close()) }()
	page, err := inspect.Serve(ctx, o.inspect, o.traces, ia)
	if err != nil {
		return err
	}
	if page != "" {
		fmt.Fprintln(os.Stderr, "shown at", page)
	}
	if o.test == testServer {
		s, err := control.Listen(ia, o.port, out)
		if err != nil {
			return err
		}
		return s.Run(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.server != "" {
		return client(ctx, o, ia, control.Server{Addr: o.server, Port: o.port}, out)
	}
	return local(ctx, o, ia, out)
}

// local runs both the server and the client in this process.
func local(ctx context.Context, o *options, ia *dat.IA, out io.Writer) error {
	var serverOut bytes.Buffer // the server's output, until the server has ended
	s, err := control.Listen(ia, 0, &serverOut)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(serving) }()
	at := control.Server{Addr: ia.Attr().Address, Port: s.Port()}
	err = client(ctx, o, ia, at, out)
	if err == nil {
		err = control.Quit(ctx, ia, at)
	} else {
		stop()
	}
	served := <-ended
	stop()
	if err == nil {
		return served
	}
	for line := range strings.Lines(serverOut.String()) {
		if strings.HasPrefix(line, "Server: ") {
			fmt.Fprint(out, line)
		}
	}
	return err
}

// client runs the client's side of a test.
func client(ctx context.Context, o *options, ia *dat.IA, at control.Server, out io.Writer) error {
	switch o.test {
	case testQuit:
		return control.Quit(ctx, ia, at)
	case testPerformance:
		cmd := o.performance()
		if o.debug {
			cmd.Print(out)
		}
		return control.Ask(ctx, ia, at, wire.ClientInfo{Test: wire.PerformanceTest, Threads: 1}, cmd.Append(nil), func(s wire.ServerInfo) error {
			side := performance.Side{IA: ia, Test: cmd, Addr: at.Addr, Port: uint64(s.FirstPort)}
			stats, err := side.Run(ctx)
			if err == nil {
				stats.Print(out)
			}
			return err
		})
	}
	cmd := o.transaction()
	if o.debug {
		cmd.Print(out)
	}
	return control.Ask(ctx, ia, at, wire.ClientInfo{Test: wire.TransactionTest, Threads: cmd.Threads}, cmd.Append(nil), func(s wire.ServerInfo) error {
		side := transaction.Side{IA: ia, Test: cmd, Addr: at.Addr, Port: uint64(s.FirstPort), CNO: o.cno}
		stats, err := side.Run(ctx)
		if err == nil {
			stats.Print(out)
		}
		return err
	})
}

func limits(ctx context.Context, o *options, out io.Writer) error {
	for _, t := range o.limits {
		cfg := limit.Config{Provider: o.provider, Width: int(o.width), Maximum: int(o.maximum)}
		if err := t.Run(ctx, cfg, out); err != nil {
			return err
		}
	}
	return nil
}
