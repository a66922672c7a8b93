package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// rpcCommand compares calls of runtime/rpc with those of gRPC, net/http, net/rpc and a plain server on net.
// The module that has gRPC measures all of them, each with a client and a server in processes of their own, in
// five minutes.
type rpcCommand struct {
	Size    []int  `help:"Bytes of a put's request, and of a get's answer." default:"64,65536,1048576"`
	Callers int    `help:"Goroutines that call." default:"16"`
	Large   int    `help:"Bytes of the large calls beside a small one; 0 leaves that out." default:"67108864"`
	Module  string `help:"Where the Go module with gRPC is." default:"bench/peers" placeholder:"DIR"`
	Only    string `help:"Measure only the rows whose name contains this." placeholder:"TEXT"`
	Write   bool   `help:"Write bench/CALLS.md, and the marked lines of the pages that quote it."`
	Folder  string `help:"Where to write them." default:"bench" placeholder:"DIR"`
}

// Run runs the module's command rpc. When this program is told to end, so is that one, with its processes.
func (r *rpcCommand) Run(c *command, out io.Writer) error {
	binary, remove, err := buildModule(r.Module)
	if err != nil {
		return err
	}
	defer remove()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(ctx, binary, r.args(c)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if _, err := cmd.StdinPipe(); err != nil { // it ends with this process, whatever ends it
		return err
	}
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return ended(cmd.Run(), "its program has said why")
}

// args are those of the module's command.
func (r *rpcCommand) args(c *command) []string {
	sizes := strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Size), " ", ","), "[]")
	args := []string{
		"rpc", "-tied", "-size", sizes, "-callers", fmt.Sprint(r.Callers), "-large", fmt.Sprint(r.Large), "-only", r.Only,
		"-repeats", fmt.Sprint(or(c.Repeats, 9)), "-duration", or(c.Duration, 300*time.Millisecond).String(),
	}
	if r.Write {
		args = append(args, "-write", r.Folder)
	}
	return args
}
