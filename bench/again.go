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

// statusMissed is the exit status when targets were missed. Other failures have 1.
const statusMissed = 3

// process runs a command line in a process of its own, so that what ran before it has no
// influence on it.
func process(args []string, out io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &said
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == statusMissed:
		return errMissed
	case exit != nil:
		return fmt.Errorf("%w: %s", err, strings.TrimPrefix(lastLine(said.String()), "bench: "))
	}
	return err
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// measured runs a command line and returns its report.
func (again rerun) measured(args []string) (*report.Report, error) {
	var out bytes.Buffer
	if err := again(append(args, "--format=json"), &out); err != nil {
		return nil, err
	}
	var r report.Report
	return &r, json.Unmarshal(out.Bytes(), &r)
}
