// Command rping pings a peer by RDMA: the client advertises a buffer, which the server
// reads; then another one, into which the server writes what it has read. It speaks the
// protocol of the rping that comes with librdmacm, so either side can be that program.
//
//	rping -s -a 10.0.2.15 --provider ibv
//	rping -c -a 10.0.2.15 --provider ibv -C 10 -V
//
// The server serves one client and ends with it. The program exits with 1 when the
// connection was lost in the middle of a ping, or when with -V a ping came back
// changed.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/alecthomas/kong"

	"godat/ep"
	"godat/examples/internal/usage"
	dat "godat/runtime"
)

// options is the command line, with the C program's letters.
type options struct {
	Server   bool   `short:"s" help:"Be the server." xor:"role" required:""`
	Client   bool   `short:"c" help:"Be the client." xor:"role" required:""`
	Addr     string `short:"a" help:"The server's address; for a server, by default all of its own."`
	Port     uint64 `short:"p" help:"The server's port." default:"7174"`
	Count    int    `short:"C" help:"How many pings; 0 means until interrupted."`
	Size     int    `short:"S" help:"Bytes of a ping." default:"100"`
	Verbose  bool   `short:"v" help:"Print what goes to and fro."`
	Validate bool   `short:"V" help:"Compare what comes back with what was sent."`
	Provider string `help:"Provider and device to run on." default:"ibv"`
}

// address is the address to listen on or to connect to.
func (o *options) address() string { return net.JoinHostPort(o.Addr, strconv.FormatUint(o.Port, 10)) }

// connConfig configures both ends of a connection. They make one RDMA read at a time, as the C program
// does. An answer may come before the completion of the send that it answers, so there
// is room for more than the one message that is under way.
var connConfig = dat.ConnConfig{Depth: 4, Message: advertSize, Attr: &ep.Attr{MaxReadIn: 1, MaxReadOut: 1}, Apart: true}

// The sizes of a ping. The smallest has room for the text that a ping begins with.
const (
	leastSize = 32
	mostSize  = 65535
)

// check refuses command lines that the tags of the options can't refuse.
func (o *options) check() error {
	switch {
	case o.Size < leastSize || o.Size > mostSize:
		return fmt.Errorf("a ping has %d to %d bytes", leastSize, mostSize)
	case o.Count < 0:
		return errors.New("the count is negative")
	case o.Client && o.Addr == "":
		return errors.New("a client needs the server's address (-a)")
	}
	return nil
}

func main() {
	o := &options{}
	parser := kong.Must(o, kong.Name("rping"), kong.Description("Pings a peer by RDMA."), kong.UsageOnError(), usage.Exit(), usage.Strict())
	_, err := parser.Parse(os.Args[1:])
	if err == nil {
		err = cmp.Or(usage.Reaches(o.Provider), o.check())
	}
	parser.FatalIfErrorf(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rping:", err)
		os.Exit(usage.StatusOf(err))
	}
}

// run is the program.
func run(ctx context.Context, o *options, out io.Writer) error {
	ia, err := dat.Open(ctx, o.Provider)
	if err != nil {
		return err
	}
	if o.Server {
		err = serve(ctx, ia, o, out, nil)
	} else {
		err = ping(ctx, ia, o, out)
	}
	return errors.Join(err, ia.Close())
}
