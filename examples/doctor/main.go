// Command doctor looks at what RDMA needs of a machine, and says of each thing what to do:
//
//	doctor              this machine, and round trips over each provider to itself
//	doctor 10.0.0.1     the same, and round trips to another machine,
//	doctor --serve      where this answers
//	doctor --json       for programs
//
// It needs no rights, no device and no /proc: what it can't read is a line, too. It exits
// with 1 if a line is bad: if something that the machine has does not work. A line with a note
// names what a program may miss.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"

	"github.com/alecthomas/kong"

	"godat/examples/internal/usage"
)

// options is the command line.
type options struct {
	Host  string `arg:"" optional:"" help:"A host on which doctor --serve runs."`
	JSON  bool   `help:"Print JSON."`
	Serve bool   `help:"Answer other doctors until interrupted."`
	Port  uint16 `help:"The port on which doctor --serve answers." default:"7175"`
}

func main() {
	o := &options{}
	kong.Parse(o, kong.Name("doctor"), kong.Description("Says what RDMA needs of this machine."), kong.UsageOnError(), usage.Exit(), usage.Strict())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, o, thisMachine("/"), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "doctor:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// run is the program. ok reports that no line is bad.
func run(ctx context.Context, o *options, m *machine, out io.Writer) (ok bool, err error) {
	port := strconv.Itoa(int(o.Port))
	if o.Serve {
		return true, serve(ctx, ":"+port, out)
	}
	list := examine(m)
	for _, provider := range providers {
		list = append(list, probe(ctx, provider, ""))
	}
	if o.Host != "" {
		for _, provider := range providers[1:] { // loop reaches no other host
			list = append(list, probe(ctx, provider, net.JoinHostPort(o.Host, port)))
		}
	}
	ok = !slices.ContainsFunc(list, func(l line) bool { return l.State == bad })
	if o.JSON {
		return ok, writeJSON(out, ok, list)
	}
	return ok, writeTable(out, list)
}
