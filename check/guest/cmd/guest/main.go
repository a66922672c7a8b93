// Command guest runs a program in a QEMU guest that has RDMA devices, and exits
// with the program's status. It exits with 123 when the guest's kernel failed or
// did not boot, with 124 when the program took too long, with 125 when the
// program could not be run, and with 2 when there is no such guest as the flags
// say. See package guest.
//
//	guest -device rxe0 -- ibv_devinfo -d rxe0
//	guest -device siw0 -timeout 2m -- sh -c 'rping -s -a 10.0.2.15 & sleep 5; rping -c -a 10.0.2.15 -C 3'
//	guest -device siw0 -forward 7174:7174 -- rping -s -a 10.0.2.15
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"godat/check/guest"
)

// The exit statuses that are not the program's.
const (
	statusUsage   = 2
	statusMachine = 123 // the guest's kernel failed, or did not boot: worth a second try
	statusTimeout = 124
	statusFailed  = 125
)

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

func main() {
	var cfg guest.Config
	var forward list
	quiet := flag.Bool("q", false, "don't tell what is being prepared")
	flag.Var((*list)(&cfg.Devices), "device", "RDMA device to make: rxe0, siw0; may be repeated, as the next four")
	flag.Var((*list)(&cfg.Modules), "module", "kernel module to insert: dummy, veth, sch_netem, …")
	flag.Var((*list)(&cfg.Share), "share", "directory of the host that the program may write to")
	flag.Var((*list)(&cfg.Env), "env", "NAME=value for the program")
	flag.Var(&forward, "forward", "HOST:GUEST, a TCP port of the host that leads to one of the guest")
	flag.StringVar(&cfg.Kernel, "kernel", "", "words to add to the kernel's command line")
	flag.StringVar(&cfg.Tap, "tap", "", "tap device that is the guest's network, with the address "+guest.HostAddress)
	flag.StringVar(&cfg.Dir, "dir", "", "the program's working directory")
	flag.DurationVar(&cfg.Timeout, "timeout", guest.DefaultTimeout, "bound of the program, boot not counted")
	flag.IntVar(&cfg.Memory, "memory", 0, "MiB of memory")
	flag.IntVar(&cfg.CPUs, "cpus", 0, "processors")
	flag.IntVar(&cfg.Busy, "busy", 0, "processes that compute beside the program")
	flag.Usage = usage
	flag.Parse()
	if flag.NArg() == 0 {
		usage()
		os.Exit(statusUsage)
	}
	for _, f := range forward {
		p, err := parseForward(f)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(statusUsage)
		}
		cfg.Forward = append(cfg.Forward, p)
	}
	cfg.Output = os.Stdout
	if !*quiet {
		cfg.Progress = os.Stderr
	}
	os.Exit(run(cfg, flag.Args()))
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: guest [flags] -- program [arguments]")
	flag.PrintDefaults()
}

func parseForward(s string) (guest.Forward, error) {
	h, g, _ := strings.Cut(s, ":")
	host, err1 := strconv.Atoi(h)
	inside, err2 := strconv.Atoi(g)
	if err := errors.Join(err1, err2); err != nil {
		return guest.Forward{}, fmt.Errorf("-forward %s: want HOST:GUEST", s)
	}
	return guest.Forward{Host: host, Guest: inside}, nil
}

func run(cfg guest.Config, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	status, err := guest.Run(ctx, cfg, args[0], args[1:]...)
	switch {
	case err == nil:
		return status
	case errors.Is(err, guest.ErrMachine):
		fmt.Fprintln(os.Stderr, err)
		return statusMachine
	case errors.Is(err, guest.ErrTimeout):
		fmt.Fprintln(os.Stderr, err)
		return statusTimeout
	case errors.Is(err, guest.ErrConfig):
		fmt.Fprintf(os.Stderr, "%v; guest -help lists the flags\n", err)
		return statusUsage
	default:
		fmt.Fprintln(os.Stderr, err)
		return statusFailed
	}
}
