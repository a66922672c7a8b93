// Command blockstore stores a directory tree in a storage server, moves every block by
// RDMA, and proves that what it reads back is what it stored.
//
//	go run ./examples/blockstore
//
// Without flags, server and clients are in one process, on the embedded provider, and
// the tree is the Go toolchain's source. The program closes the store and opens it
// again between storing and reading. With --listen it is a server, with --connect a
// client of one:
//
//	blockstore --provider iwarp --listen :4791 --store blocks.db
//	blockstore --provider iwarp --connect host:4791 --dir /usr/share
//
// --store keeps the store's file, and --verify reads such a file back without storing
// anything. With --listen or --connect, --inspect 127.0.0.1:6060 shows in a browser what the
// adapter does, and with --traces DIR as well its visitors may record what a connection
// carries. If a single byte differs, the program names the files and exits with 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"godat/examples/internal/usage"
)

func main() {
	opts := parse(os.Args[1:])
	if err := usage.Reaches(opts.Provider); err != nil && opts.Listen+opts.Connect != "" {
		fmt.Fprintln(os.Stderr, "blockstore:", err)
		os.Exit(usage.Status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, opts, os.Stdout)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "blockstore: interrupted")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "blockstore:", err)
		os.Exit(usage.StatusOf(err))
	}
}

// run is the program.
func run(ctx context.Context, o *options, out io.Writer) error {
	switch {
	case o.Listen != "":
		return serve(ctx, o, out)
	case o.Connect != "":
		return connect(ctx, o, out)
	}
	return local(ctx, o, out)
}
