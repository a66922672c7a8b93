package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

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

// ended is the error by which a process has ended that has the exit statuses of this program, and has said why.
func ended(err error, why string) error {
	exit := new(exec.ExitError)
	switch {
	case !errors.As(err, &exit):
		return err
	case exit.ExitCode() == statusUnable:
		return errUnable
	case exit.ExitCode() == statusUsage:
		return misusedf("%s", why)
	}
	return fmt.Errorf("%w: %s", err, why)
}

// process runs a command line in a process of its own, so that what ran before it has no
// influence on it.
func process(args []string, out io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = out, &said
	err = cmd.Run()
	_, why, _ := strings.Cut(said.String(), "bench: ")
	return ended(err, strings.TrimSpace(why))
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
