// Command nvmeof is a storage target and a host of NVMe over Fabrics on RDMA. Linux
// mounts the target's disks with its nvme-rdma driver; see README.md beside this file.
//
//	nvmeof serve --listen 10.0.0.1:4420 --disk disk.img:10G
//	nvmeof discover 10.0.0.1:4420
//	nvmeof bench 10.0.0.1:4420
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/alecthomas/kong"

	"godat/examples/internal/usage"
	"godat/examples/nvmeof/beside"
	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
	"godat/runtime/inspect"
)

func main() {
	o := &options{}
	parser := kong.Must(o, kong.Name("nvmeof"), kong.Description("NVMe over Fabrics on RDMA."), kong.UsageOnError(), usage.Exit(), usage.Strict())
	command, err := parser.Parse(os.Args[1:])
	if err == nil && command.Command() != "beside" {
		err = usage.Reaches(o.Provider)
	}
	parser.FatalIfErrorf(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, command.Command(), o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "nvmeof:", err)
		os.Exit(usage.StatusOf(err))
	}
}

// run is the program.
func run(ctx context.Context, command string, o *options, out, log io.Writer) error {
	if command == "beside" {
		return beside.Run(ctx, beside.Config(o.Beside), out)
	}
	params, err := o.params()
	if err != nil {
		return err
	}
	if command == "serve" { // before the device is opened, which asks for the number
		have := runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(o.Serve.processors(o.Provider, have))
		defer runtime.GOMAXPROCS(have)
	}
	ia, err := dat.Open(ctx, o.Provider, dat.WithParams(params))
	if err != nil {
		return err
	}
	page, err := inspect.Serve(ctx, o.Inspect, o.Traces, ia)
	if page != "" {
		fmt.Fprintln(log, "shown at", page)
	}
	switch {
	case err != nil:
	case command == "serve":
		err = serve(ctx, ia, &o.Serve, out, log)
	case command == "discover <addr>":
		err = discover(ctx, ia, &o.Discover, out)
	default:
		err = bench(ctx, ia, &o.Bench, out)
	}
	return errors.Join(err, ia.Close())
}

// discover lists the subsystems that a target knows.
func discover(ctx context.Context, ia *dat.IA, o *discoverOptions, out io.Writer) error {
	ways, err := waysAt(ctx, ia, o.Addr)
	for _, w := range ways {
		fmt.Fprintf(out, "%s at %s port %s\n", w.Subsystem, w.Address, w.Service)
	}
	return err
}

// waysAt are the ways to subsystems that the target at an address knows.
func waysAt(ctx context.Context, ia *dat.IA, addr string) ([]nvme.DiscoveryEntry, error) {
	c, err := host.Connect(ctx, ia, host.Config{Addr: addr})
	if err != nil {
		return nil, err
	}
	ways, err := c.Discover(ctx)
	return ways, errors.Join(err, c.Close())
}

// subsystemAt is the name of a subsystem of the target at an address: the one that was said,
// or the only one.
func subsystemAt(ctx context.Context, ia *dat.IA, addr, said string) (string, error) {
	if said != "" {
		return said, nil
	}
	ways, err := waysAt(ctx, ia, addr)
	if err != nil {
		return "", err
	}
	for _, w := range ways {
		if said != "" && w.Subsystem != said {
			return "", fmt.Errorf("the target at %s knows several subsystems: say which one (--subsystem)", addr)
		}
		said = w.Subsystem
	}
	if said == "" {
		return "", fmt.Errorf("the target at %s knows no subsystem", addr)
	}
	return said, nil
}
