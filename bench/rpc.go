package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// rpcCommand compares calls of runtime/rpc with those of gRPC, net/rpc, net/http and QUIC. The
// module that has gRPC and QUIC measures all of them, in its process.
type rpcCommand struct {
	Size    []int  `help:"Bytes of a request." default:"64,4096,65536,1048576"`
	Callers []int  `help:"Goroutines that call." default:"1,16,256"`
	Module  string `help:"Where the Go module with gRPC and QUIC is." default:"bench/peers" placeholder:"DIR"`
	Only    string `help:"Measure only the services whose name contains this." placeholder:"TEXT"`
}

// Run runs the module's command rpc.
func (r *rpcCommand) Run(c *command, out io.Writer) error {
	binary, remove, err := buildModule(r.Module)
	if err != nil {
		return err
	}
	defer remove()
	list := func(n []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(n), " ", ","), "[]") }
	cmd := exec.Command(binary, "rpc", "-size", list(r.Size), "-callers", list(r.Callers), "-only", r.Only,
		"-repeats", fmt.Sprint(or(c.Repeats, 9)), "-duration", or(c.Duration, 200*time.Millisecond).String())
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	err = cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == statusMissed {
		return errMissed
	}
	return err
}
