// Command volume serves an NVMe disk from several machines. It survives the loss of some: README.md beside
// this file has how, and what it promises.
//
//	volume serve --create --id 1 --peers 1=10.0.0.1:7000,2=10.0.0.2:7000,3=10.0.0.3:7000 --listen 10.0.0.1:4420 --data DIR --size 10G
//	volume status 10.0.0.1:7000
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"godat/examples/volume/raftlog"
	_ "godat/hw/ibv" // --provider may name it
	dat "godat/runtime"
	"godat/runtime/inspect"
)

// options is the command line.
type options struct {
	Create   createOptions  `cmd:"" help:"Make the data of one of a volume's nodes in an empty directory: once for each node."`
	Serve    serveOptions   `cmd:"" help:"Serve the disks of volumes, as one of their nodes, until interrupted."`
	Status   addressOption  `cmd:"" help:"Say what a node knows of its volume."`
	Add      addOptions     `cmd:"" help:"Add a node, which serves with --join, and wait until it has the disk and votes."`
	Remove   removeOptions  `cmd:"" help:"Remove a node."`
	Replace  replaceOptions `cmd:"" help:"Add a node, wait until it has the disk and votes, and remove another."`
	Transfer memberOptions  `cmd:"" help:"Make another node the leader."`
	Recover  recoverOptions `cmd:"" help:"Make a stopped node's directory a volume of its own: the way out of a lost majority."`
	Check    addressOption  `cmd:"" help:"Compare the disks of all nodes as they are after one entry of the log."`

	Provider string `help:"Provider and device to run on." default:"iwarp"`
	Inspect  string `help:"HOST:PORT for a page that shows the nodes of volumes here, and the adapter." placeholder:"ADDR"`
	Traces   string `help:"Let visitors of the page trace connections into this directory." placeholder:"DIR"`
}

// volumeOptions say what is created.
type volumeOptions struct {
	ID        uint64 `help:"This node, 1 to 8; a node that lost its data is another one." name:"id"`
	Peers     string `help:"The volume's nodes as they are at the beginning: ID=HOST:PORT, separated by commas, this one included." aliases:"replicas"`
	Token     string `help:"What the first node's create has printed, or a file with it: the volume, and its options." placeholder:"TOKEN"`
	Beside    string `help:"For the first node of a volume: the token of another one, with which it is served." placeholder:"TOKEN"`
	Size      string `help:"Size of the disk: 64M, 10G. Without it, the token's, or 1G."`
	Name      string `help:"A label, for people."`
	Namespace uint32 `help:"The disk's namespace id, which names the volume in the subsystem. Without it, the token's, or 1."`
	Join      bool   `help:"The volume exists, and this node is about to be added."`
	Slots     int    `help:"Writes of 16 KiB or more that are under way at a time. Without it, the token's, or 16."`
	SlotSize  string `help:"The longest write. Without it, the token's, or 1M, which Linux makes."`
}

type createOptions struct {
	volumeOptions
	Data string `help:"The node's directory." required:""`
}

type serveOptions struct {
	volumeOptions
	Create    bool          `help:"Create the node first; the options of create say which."`
	Data      []string      `help:"The node's directory; repeated for each volume." required:"" sep:"none"`
	Listen    string        `help:"HOST:PORT for hosts." default:"127.0.0.1:4420"`
	Advertise string        `help:"HOST:PORT at which hosts reach this node, which the other nodes tell hosts; without it, as --listen." placeholder:"ADDR"`
	Other     []string      `help:"HOST:PORT of a target that is no node of the volume, for the discovery log; may be repeated." name:"elsewhere"`
	Tick      time.Duration `help:"Time between heartbeats, 10ms to 1s, the same for all nodes. A node that hears no leader for 10 to 20 of them stands for election." default:"100ms"`
	Verbose   bool          `short:"v"`
}

type addressOption struct {
	Addr  string `arg:"" help:"HOST:PORT of a node, as in --peers."`
	Token string `help:"The token of the volume that is meant, or a file with it: a node of another one is refused." env:"VOLUME_TOKEN"`
}

// operate does a command at the volume that is meant.
func (o *addressOption) operate(ia *dat.IA, out io.Writer, do func(*operator) error) error {
	x := newOperator(ia, o.Addr, out)
	if o.Token != "" {
		t, err := tokenOf(o.Token)
		if err != nil {
			return usageError{fmt.Errorf("--token: %w", err)}
		}
		x.volume = t.Volume.String()
	}
	return do(x)
}

type memberOptions struct {
	addressOption
	ID uint64 `arg:"" help:"The node."`
}

type removeOptions struct {
	memberOptions
	forceOption
}

type forceOption struct {
	Force bool `help:"Do it also if those that vote then, and are heard, are no majority."`
}

type addOptions struct {
	memberOptions
	forceOption
	Member string `arg:"" help:"HOST:PORT of the node."`
}

type replaceOptions struct {
	addressOption
	forceOption
	Old    uint64 `arg:"" help:"The node that is removed."`
	ID     uint64 `arg:"" help:"The node that is added."`
	Member string `arg:"" help:"HOST:PORT of the node that is added."`
}

type recoverOptions struct {
	Data   string `arg:"" help:"The directory of the node, which does not run."`
	Beside string `help:"The token of a volume with which the new one is served." placeholder:"TOKEN"`
	Force  bool   `help:"Do it: what only the lost nodes have is lost, and the volume that was can't go on with this node."`
}

// Statuses with which the program ends, beside 0: it has done what it was to do, and has said so.
const (
	exitFailed = 1 // it has not
	exitUsage  = 2 // the command line is wrong, and nothing was done
	exitFewer  = 3 // status: there are not as many copies as asked
)

// usageError is the error of a command line.
type usageError struct{ error }

// Unwrap is the error.
func (e usageError) Unwrap() error { return e.error }

// exitStatus is the status for an error.
func exitStatus(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errFewer):
		return exitFewer
	}
	return exitFailed
}

func main() { os.Exit(program(os.Args[1:], os.Stdout, os.Stderr)) }

// program is the program.
func program(args []string, out, log io.Writer) int {
	o := &options{}
	parser := kong.Must(o, kong.Name("volume"), kong.Description("A disk on several machines."))
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(log, "volume: %v; --help says what there is\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = run(ctx, strings.Fields(command.Command())[0], o, out, log)
	if err != nil {
		fmt.Fprintln(log, "volume:", err)
	}
	return exitStatus(err)
}

func run(ctx context.Context, command string, o *options, out, log io.Writer) error {
	switch command {
	case "create":
		return createAloud(&o.Create.volumeOptions, o.Create.Data, out)
	case "recover":
		return recoverNode(o.Recover.Data, o.Recover.Beside, o.Recover.Force, out)
	}
	ia, err := dat.Open(ctx, o.Provider)
	if err != nil {
		return err
	}
	_, err = inspect.Serve(ctx, o.Inspect, o.Traces, ia)
	switch {
	case err != nil:
	case command == "serve":
		err = serve(ctx, ia, &o.Serve, out, log)
	case command == "status":
		err = o.Status.operate(ia, out, func(x *operator) error { return x.status(ctx) })
	case command == "add":
		err = o.Add.operate(ia, out, func(x *operator) error { return x.add(ctx, o.Add.ID, o.Add.Member, o.Add.Force) })
	case command == "remove":
		err = o.Remove.operate(ia, out, func(x *operator) error { return x.remove(ctx, o.Remove.ID, o.Remove.Force) })
	case command == "replace":
		err = o.Replace.operate(ia, out, func(x *operator) error {
			return x.replace(ctx, o.Replace.Old, o.Replace.ID, o.Replace.Member, o.Replace.Force)
		})
	case command == "transfer":
		err = o.Transfer.operate(ia, out, func(x *operator) error { return x.transfer(ctx, o.Transfer.ID) })
	case command == "check":
		err = o.Check.operate(ia, out, func(x *operator) error { return x.check(ctx) })
	}
	return errors.Join(err, ia.Close())
}

// parsePeers parses ID=HOST:PORT,…
func parsePeers(text string) (raftlog.Members, error) {
	all := make(raftlog.Members)
	for _, p := range strings.Split(text, ",") {
		id, addr, _ := strings.Cut(p, "=")
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil || addr == "" {
			return nil, fmt.Errorf("--peers: %q is not ID=HOST:PORT", p)
		}
		if _, twice := all[n]; twice {
			return nil, fmt.Errorf("--peers: node %d twice", n)
		}
		all[n] = raftlog.Member{Addr: addr}
	}
	return all, nil
}

// parseSize is a number of bytes, with a unit K, M, G or T of powers of 1024.
func parseSize(text string) (int, error) {
	digits := strings.TrimRight(text, "KMGT")
	shift := 0
	if unit := text[len(digits):]; unit != "" {
		shift = 10 * (strings.Index("KMGT", unit) + 1)
	}
	n, err := strconv.Atoi(digits)
	if err != nil || len(text)-len(digits) > 1 || n < 1 || n > int(^uint(0)>>1)>>shift {
		return 0, fmt.Errorf("%q is no size", text)
	}
	return n << shift, nil
}
