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

// process runs a command line in a process of its own, so that what ran before it has no
// influence on it.
func process(args []string, out io.Writer) error {
	cmd, _, err := child(args)
	if err != nil {
		return err
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &said
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if exit.ExitCode() == statusUnable {
		return errUnable
	}
	why := strings.TrimPrefix(lastLine(said.String()), "bench: ")
	if before, ok := strings.CutSuffix(why, "; "+errUsage.Error()); ok && exit.ExitCode() == statusUsage {
		return misused(errors.New(before))
	}
	return fmt.Errorf("%w: %s", err, why)
}

// tied is the first word of the command line of a process that ends when its standard input does.
const tied = "--tied"

// child is a process of this program, to which it is tied: whatever ends this one, that one does
// not go on to measure, in the way of others.
func child(args []string) (cmd *exec.Cmd, stdin io.Closer, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd = exec.Command(program, append([]string{tied}, args...)...)
	stdin, err = cmd.StdinPipe()
	return cmd, stdin, err
}

// tie ends the process at the end of its input.
func tie(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	fmt.Fprintln(os.Stderr, "bench: the program that started this one has ended")
	os.Exit(1)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
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
