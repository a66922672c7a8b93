package program

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// Main is the main function of a guest whose programs named knows:
//
//	guest SEED PROVIDER PROGRAM [-v] [-troubles N] [-rounds N] [-without 3,7]
//
// It prints a line that is the same for the same history, and ends the process with status 1 if something was wrong.
func Main(named func(name string, size Size) (Program, error)) {
	set := flag.NewFlagSet("guest", flag.ExitOnError)
	verbose := set.Bool("v", false, "print each step")
	troubles := set.Int("troubles", 12, "troubles of the script")
	rounds := set.Int("rounds", 12, "rounds of each client")
	pause := set.Duration("pause", 0, "the most that a writer of a volume pauses; 0 is as the program has it")
	without := set.String("without", "", "troubles that are left out, by number")
	seed, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err != nil {
		panic(err)
	}
	_ = set.Parse(os.Args[4:]) // which ends the program if it fails
	size := Size{Servers: 3, Clients: 5, Rounds: *rounds, Troubles: *troubles, Pause: *pause}
	for _, text := range strings.FieldsFunc(*without, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		size.Without = append(size.Without, n)
	}
	var aloud io.Writer
	if *verbose {
		aloud = os.Stdout
	}
	w, err := New(seed, os.Args[2], aloud)
	if err != nil {
		panic(err)
	}
	watch(w, -1)
	p, err := named(os.Args[3], size)
	if err != nil {
		panic(err)
	}
	if err := p.Run(w); err != nil {
		panic(err)
	}
	history, err := w.End()
	fmt.Println(history)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// patience is the world's time without a step after which nobody is going to take one: the longest deadline of
// a program is shorter.
const patience = 15 * time.Minute

// watch prints all goroutines, and ends the run, when no step was taken for that time.
func watch(w *World, before int) {
	now := w.Steps()
	if now != before {
		time.AfterFunc(patience, func() { watch(w, now) })
		return
	}
	fmt.Println("somebody waits for what does not come:")
	_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
	os.Exit(1)
}
