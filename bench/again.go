package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"godat/bench/ends"
	"godat/bench/report"
)

// rerun runs a command line of this program.
type rerun func(args []string, out io.Writer) error

// errUnable has an exit status of its own. What was measured has been printed.
var errUnable = errors.New("this machine could not answer")

const statusUnable = 4

// status is the exit status of an error.
func status(err error) int {
	switch {
	case errors.Is(err, errUnable):
		return statusUnable
	case errors.Is(err, errUsage):
		return statusUsage
	}
	return 1
}

// again is a command line for another process of this program, and outcome what has become of it.
type (
	again   struct{ Args []string }
	outcome struct {
		Out, Error string
		Unable     bool
	}
)

// longestLine is how long a command line may take.
const longestLine = time.Hour

// process runs a command line in a process of its own, so that what ran before it has no
// influence on it.
func process(args []string, out io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := ends.Start(context.Background(), "process that measures", []string{program, "again"})
	if err != nil {
		return err
	}
	defer p.Kill()
	var is outcome
	if err := p.Ask(again{args}, longestLine, &is); err != nil {
		return err
	}
	<-p.Done
	_, err = io.WriteString(out, is.Out)
	switch {
	case err != nil:
		return err
	case is.Unable:
		return errUnable
	case is.Error != "":
		return errors.New(is.Error)
	}
	return nil
}

// againCommand is that process.
type againCommand struct{}

// Run runs one command line.
func (*againCommand) Run(out io.Writer) error {
	return ends.Serve(os.Stdin, out, func() { os.Exit(1) }, func(o again) (any, bool) {
		var said bytes.Buffer
		err := run(o.Args, &said)
		is := outcome{Out: said.String(), Unable: errors.Is(err, errUnable)}
		if err != nil {
			is.Error = err.Error()
		}
		return is, true
	})
}

// measured runs a command line and returns its report, which says itself whether the machine
// could answer.
func (again rerun) measured(args []string) (*report.Report, error) {
	var out bytes.Buffer
	if err := again(append(args, "--format=json"), &out); err != nil && !errors.Is(err, errUnable) {
		return nil, err
	}
	var r report.Report
	return &r, json.Unmarshal(out.Bytes(), &r)
}
