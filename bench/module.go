package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// module is the Go module with gRPC and QUIC. Its program measures them, and what is compared with them.
type module struct {
	Module string `help:"Where the Go module with gRPC and QUIC is." default:"bench/peers" placeholder:"DIR"`
}

// buildLimit bounds how long the module's build may take, with its downloads.
const buildLimit = 3 * time.Minute

// build builds the program, in a folder that remove removes.
func (m module) build() (binary string, remove func(), err error) {
	if _, err := os.Stat(filepath.Join(m.Module, "go.mod")); err != nil {
		return "", nil, misusedf("no Go module in %s: run the program in the repository, or name its bench/peers by --module", m.Module)
	}
	temp, err := os.MkdirTemp("", "peers")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(temp) }
	binary, err = filepath.Abs(filepath.Join(temp, "peers.exe"))
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), buildLimit)
		defer cancel()
		build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
		build.Dir = m.Module
		if said, failed := build.CombinedOutput(); failed != nil {
			err = fmt.Errorf("the module in %s can't be built: %w: %s", m.Module, failed, bytes.TrimSpace(said))
		}
	}
	if err != nil {
		remove()
	}
	return binary, remove, err
}

// run runs a command of the program with what it is to measure. When this program is told to end, so is that one,
// with its processes.
func (m module) run(command string, what any, out io.Writer) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	binary, remove, err := m.build()
	if err != nil {
		return err
	}
	defer remove()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(ctx, binary, command, string(text))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if _, err := cmd.StdinPipe(); err != nil { // it ends with this process, whatever ends it
		return err
	}
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return ended(cmd.Run(), "its program has said why")
}

// rpcCommand compares calls of runtime/rpc with those of gRPC, net/http, net/rpc and a plain server on net, each
// with a client and a server in processes of their own, in five minutes.
type rpcCommand struct {
	Size    []int  `help:"Bytes of a put's request, and of a get's answer." default:"64,65536,1048576"`
	Callers int    `help:"Goroutines that call." default:"16"`
	Large   int    `help:"Bytes of the large calls beside a small one; 0 leaves that out." default:"67108864"`
	Only    string `help:"Measure only the rows whose name contains this." placeholder:"TEXT"`
	Write   bool   `help:"Write bench/CALLS.md, and the marked lines of the pages that quote it."`
	Folder  string `help:"Where to write them." default:"bench" placeholder:"DIR"`
	module
}

// Run runs the module's command rpc.
func (r *rpcCommand) Run(c *command, out io.Writer) error {
	if err := twice("size", r.Size); err != nil {
		return err
	}
	folder := ""
	if r.Write {
		folder = r.Folder
	}
	return r.run("rpc", map[string]any{
		"Sizes": r.Size, "Callers": r.Callers, "Large": r.Large, "Only": r.Only, "Write": folder,
		"Repeats": or(c.Repeats, 9), "Duration": or(c.Duration, 300*time.Millisecond),
	}, out)
}
