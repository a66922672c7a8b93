package main

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/alecthomas/kong"
)

type command struct {
	Repeats int           `help:"How often the contestants take turns." default:"9"`
	Slice   time.Duration `help:"How long one turn is." default:"40ms"`

	Delivery struct{}    `cmd:"" help:"Compare the ways of delivery."`
	Targets  struct{}    `cmd:"" help:"Measure the ratios that the project promises itself."`
	Iwarp    struct{}    `cmd:"" help:"Measure the ratios of iWARP to plain TCP."`
	Idle     idleCommand `cmd:"" help:"Measure what idle connections between two processes cost."`
}

func main() {
	var c command
	ctx := kong.Parse(&c,
		kong.Name("bench"),
		kong.Description("Measures delivery beside what a program would use instead."))
	if ctx.Command() == "idle" {
		if c.Idle.Peer {
			c.Idle.peer(os.Stdin, os.Stdout)
		} else {
			c.Idle.run(os.Stdout)
		}
		return
	}
	fmt.Printf("%s/%s, %d cores, %s; medians of %d repeats\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), c.Repeats)
	// One core first, because its figures are the steady ones.
	for _, procs := range []int{1, 2} {
		if procs > runtime.NumCPU() {
			break
		}
		x := contest{repeats: c.Repeats, slice: c.Slice, procs: procs}
		switch ctx.Command() {
		case "targets":
			targets(os.Stdout, x)
		case "iwarp":
			overTCP(os.Stdout, x)
		default:
			delivery(os.Stdout, x)
		}
	}
}
