package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"godat/examples/blockstore/archive"
	"godat/examples/blockstore/block"
	"godat/examples/blockstore/client"
	"godat/examples/blockstore/report"
	"godat/examples/blockstore/store"
	"godat/examples/blockstore/tree"
	dat "godat/runtime"
	"godat/runtime/inspect"
)

// local is the program without --listen and --connect: server and clients in one process.
// It closes the store and opens it again between storing and reading.
func local(ctx context.Context, o *options, out io.Writer) error {
	if o.Store == "" {
		dir, err := os.MkdirTemp("", "blockstore")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.Store = filepath.Join(dir, "blocks.db")
	}
	var phases []report.Phase
	var stored block.ID
	if !o.Verify {
		err := withServer(ctx, o, store.ReadWrite, func(c *clients) (err error) {
			var p report.Phase
			stored, p, err = c.save(ctx, out)
			phases = append(phases, p)
			return err
		})
		if err != nil {
			return err
		}
	}
	err := withServer(ctx, o, store.ReadOnly, func(c *clients) error {
		root, p, err := c.check(ctx)
		phases = append(phases, p)
		if err == nil && !o.Verify && root != stored {
			err = fmt.Errorf("the store's root is %v, and was %v", root, stored)
		}
		return err
	})
	if err != nil {
		return err
	}
	return conclude(out, phases)
}

// connect is the program with --connect.
func connect(ctx context.Context, o *options, out io.Writer) error {
	return withClients(ctx, o, o.Connect, func(c *clients) error {
		page, err := inspect.Serve(ctx, o.Inspect, o.Traces, c.ia)
		if err != nil {
			return err
		}
		if page != "" {
			fmt.Fprintln(os.Stderr, "shown at", page)
		}
		var phases []report.Phase
		if !o.Verify {
			_, p, err := c.save(ctx, out)
			if err != nil {
				return err
			}
			phases = append(phases, p)
		}
		_, p, err := c.check(ctx)
		if err != nil {
			return err
		}
		return conclude(out, append(phases, p))
	})
}

// conclude prints the result of a run without errors.
func conclude(out io.Writer, phases []report.Phase) error {
	report.Print(out, phases...)
	last := phases[len(phases)-1]
	_, err := fmt.Fprintf(out, "verified %d files, %d bytes: every SHA-256 is that of the original\n", last.Files, last.Bytes)
	return err
}

// withServer runs do with a server of its own.
func withServer(ctx context.Context, o *options, mode store.Mode, do func(*clients) error) error {
	// An interrupt ends the clients first: they need the server until they have ended.
	s, err := startServer(context.WithoutCancel(ctx), o, "", mode)
	if err != nil {
		return err
	}
	err = withClients(ctx, o, s.server.Addr(), do)
	return errors.Join(err, s.stop())
}

// clients is what the clients of one run share.
type clients struct {
	opts *options
	ia   *dat.IA
	addr client.Config
}

// withClients runs do with an adapter for clients.
func withClients(ctx context.Context, o *options, addr string, do func(*clients) error) error {
	ia, err := dat.Open(ctx, o.Provider)
	if err != nil {
		return err
	}
	c := &clients{opts: o, ia: ia, addr: client.Config{Addr: addr, Limits: o.limits(), Stall: o.Stall}}
	return errors.Join(do(c), ia.Close())
}

func (c *clients) dial(ctx context.Context) (*client.Link, error) {
	return client.Dial(ctx, c.ia, c.addr)
}

func (c *clients) options() archive.Options {
	return archive.Options{Dial: c.dial, Links: c.opts.Clients}
}

// save stores the tree.
func (c *clients) save(ctx context.Context, out io.Writer) (block.ID, report.Phase, error) {
	dir, err := c.opts.tree()
	if err != nil {
		return block.ID{}, report.Phase{}, err
	}
	found, passed, err := tree.Scan(dir)
	if err != nil {
		return block.ID{}, report.Phase{}, err
	}
	var total int64
	for _, f := range found {
		total += f.Size
	}
	fmt.Fprintf(out, "%s: %d files, %d bytes", dir, len(found), total)
	if passed > 0 {
		fmt.Fprintf(out, " (and %d that are no regular files, passed over)", passed)
	}
	fmt.Fprintln(out)
	o := c.options()
	o.Progress = report.NewProgress(bar, "store", total)
	defer o.Progress.Close()
	return archive.Save(ctx, dir, found, o)
}

// check reads everything back.
func (c *clients) check(ctx context.Context) (block.ID, report.Phase, error) {
	var progress *report.Progress
	defer func() { progress.Close() }()
	return archive.Check(ctx, c.options(), func(total int64) *report.Progress {
		progress = report.NewProgress(bar, "read back", total)
		return progress
	})
}
