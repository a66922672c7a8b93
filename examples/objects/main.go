// Command objects is an object store to learn from: PUT, GET of ranges, and LIST. The
// server's files are the store, and bodies of any length go by RDMA between the memory of clients
// and 1 MiB of the server's, and from there to the files, or back.
//
// A PUT that has returned is on the disk, whole, whatever ends the server. A client waits for
// a server that is down or starts again. README.md has the commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"godat/examples/internal/usage"
	dat "godat/runtime"
	"godat/runtime/inspect"
)

func main() {
	provider := flag.String("provider", "iwarp", "provider and device to run on")
	listen := flag.String("listen", "", "serve on this `address`")
	dir := flag.String("dir", "objects", "the store's `directory`")
	addr := flag.String("addr", "", "the server's `address`")
	wait := flag.Duration("wait", 30*time.Second, "how long a client waits for its server")
	page := flag.String("inspect", "", "show the adapter in a browser at this `address`")
	traces := flag.String("traces", "", "let visitors of the page trace connections into this `directory`")
	usage.Flags(flag.CommandLine, errUsage.Error())
	flag.Parse()
	if err := usage.Reaches(*provider); err != nil {
		fmt.Fprintln(os.Stderr, "objects:", err)
		os.Exit(usage.Status)
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // in force until the process exits
	ia, err := dat.Open(ctx, *provider)
	if err == nil {
		var shown string
		if shown, err = inspect.Serve(ctx, *page, *traces, ia); shown != "" {
			fmt.Fprintln(os.Stderr, "shown at", shown)
		}
	}
	if err == nil && *listen != "" && flag.NArg() == 0 {
		err = errors.Join(serve(ctx, ia, *listen, *dir, os.Stdout), ia.Close())
	} else if err == nil {
		brief, cancel := context.WithTimeout(ctx, *wait)
		err = errors.Join(ask(brief, ia, *addr, flag.Args(), os.Stdout), ia.Close())
		cancel()
	}
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(usage.Status)
	default:
		fmt.Fprintln(os.Stderr, "objects:", err)
		os.Exit(usage.StatusOf(err))
	}
}

// errUsage is of a command line that makes no sense.
var errUsage = errors.New("usage: objects --listen HOST:PORT, or objects --addr HOST:PORT put NAME FILE | get NAME FILE [OFFSET LENGTH] | list")

// ask does what the arguments of a client say.
func ask(ctx context.Context, ia *dat.IA, address string, args []string, out io.Writer) error {
	offset, length := int64(0), int64(longest)
	if len(args) == 5 {
		if _, err := fmt.Sscan(args[3]+" "+args[4], &offset, &length); err != nil || offset < 0 || length < 0 {
			return fmt.Errorf("OFFSET %s, LENGTH %s: numbers of bytes; %w", args[3], args[4], errUsage)
		}
	}
	var do func(c *client) error
	switch {
	case address == "":
		return errUsage
	case len(args) == 3 && args[0] == "put":
		do = func(c *client) error { return c.put(ctx, args[1], args[2]) }
	case (len(args) == 3 || len(args) == 5) && args[0] == "get":
		do = func(c *client) error { return c.get(ctx, args[1], args[2], offset, length) }
	case len(args) == 1 && args[0] == "list":
		do = func(c *client) error { return c.list(ctx, out) }
	default:
		return errUsage
	}
	c, err := dial(ctx, ia, address)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}
