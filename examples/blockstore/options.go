package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"go.uber.org/zap"

	"godat/examples/blockstore/proto"
	"godat/examples/internal/usage"
)

// options is the command line.
type options struct {
	Dir      string        `help:"Directory tree to store; by default the Go toolchain's src." placeholder:"DIR"`
	Provider string        `help:"Provider and device to run on." default:"loop"`
	Listen   string        `help:"Be a server on [HOST]:PORT, until interrupted." placeholder:"ADDR" xor:"role"`
	Connect  string        `help:"Be a client of the server at HOST:PORT." placeholder:"ADDR" xor:"role"`
	Store    string        `help:"The store's file, which is kept; by default a temporary one." placeholder:"FILE"`
	Verify   bool          `help:"Store nothing, read back what the store has."`
	Clients  int           `help:"Connections that work at a time." default:"4"`
	Depth    int           `help:"Blocks on their way per connection." default:"16"`
	Block    int           `help:"Largest block in bytes." default:"65536"`
	Stall    time.Duration `help:"Longest silence of the server." default:"30s"`
	Inspect  string        `help:"Show the adapter in a browser at this address." placeholder:"ADDR"`
	Traces   string        `help:"Let visitors of the page trace connections into this directory." placeholder:"DIR"`
	Verbose  bool          `help:"Log what the server does." short:"v"`
}

// parse reads the command line, or ends the program with a message.
func parse(args []string) *options {
	o := &options{}
	parser := kong.Must(o,
		kong.Name("blockstore"),
		kong.Description("Keeps a directory tree in a storage server and proves that it comes back."),
		kong.UsageOnError(),
		usage.Exit(),
		usage.Strict(),
	)
	_, err := parser.Parse(doubleDashes(args))
	parser.FatalIfErrorf(err)
	return o
}

// doubleDashes turns Go's -flag into the --flag that kong wants.
func doubleDashes(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if len(a) > 2 && a[0] == '-' && a[1] != '-' && (a[1] < '0' || a[1] > '9') {
			a = "-" + a
		}
		out[i] = a
	}
	return out
}

// Validate refuses contradictory flags. Kong calls it.
func (o *options) Validate() error {
	switch {
	case o.Clients < 1 || o.Clients > 1024:
		return errors.New("--clients must be 1 to 1024")
	case o.limits().Check() != nil:
		return fmt.Errorf("--depth must be 1 to %d and --block %d to %d", proto.MaxSlots, proto.MinBlock, proto.MaxBlock)
	case o.Verify && o.Listen != "":
		return errors.New("--verify is for clients, not for a server")
	case o.Verify && o.Connect == "" && o.Store == "":
		return errors.New("--verify needs the --store to read")
	case o.Store != "" && o.Connect != "":
		return errors.New("the --store is the server's, so it goes with --listen")
	case o.Inspect+o.Traces != "" && o.Listen == "" && o.Connect == "":
		return errors.New("--inspect and --traces go with --listen or --connect")
	case o.Store == "" && o.Listen != "":
		return errors.New("--listen needs a --store")
	}
	return nil
}

func (o *options) limits() proto.Limits { return proto.Limits{Slots: o.Depth, Block: o.Block} }

// tree is the directory to store.
func (o *options) tree() (string, error) {
	if o.Dir != "" {
		return o.Dir, nil
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w; name a directory with --dir", err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src"), nil
}

// logger is the server's log: warnings, or with -v everything.
func (o *options) logger() (*zap.Logger, error) {
	cfg := zap.NewDevelopmentConfig()
	cfg.DisableStacktrace = true
	cfg.DisableCaller = true
	if !o.Verbose {
		cfg.Level.SetLevel(zap.WarnLevel)
	}
	return cfg.Build()
}

// bar is the file that the progress bar is written to.
var bar = os.Stderr
