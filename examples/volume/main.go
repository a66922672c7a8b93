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
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	_ "godat/hw/ibv" // --provider may name it
	dat "godat/runtime"
)

// options is the command line.
type options struct {
	Serve    serveOptions  `cmd:"" help:"Serve a volume's disk, as one of its nodes, until interrupted."`
	Status   addressOption `cmd:"" help:"Say what a node knows of the volume."`
	Add      memberOptions `cmd:"" help:"Add a node, which serves with --join, and wait until it has the disk and votes."`
	Remove   memberOptions `cmd:"" help:"Remove a node."`
	Transfer memberOptions `cmd:"" help:"Make another node the leader."`
	Check    addressOption `cmd:"" help:"Compare the disks of all nodes as they are after one entry of the log."`

	Provider string `help:"Provider and device to run on." default:"iwarp"`
}

type serveOptions struct {
	ID       uint64   `help:"This node, 1 to 8; a node that lost its data is another one." name:"id" required:""`
	Peers    string   `help:"All nodes as they are at the beginning: ID=HOST:PORT, separated by commas, this one included." required:""`
	Listen   string   `help:"HOST:PORT for hosts." default:"127.0.0.1:4420"`
	Data     string   `help:"The node's directory." required:""`
	Size     string   `help:"Size of a disk that is made: 64M, 10G." default:"1G"`
	Name     string   `help:"Name of the volume, the same for all its nodes: it makes the disk's identity." default:"volume"`
	Create   bool     `help:"Make the volume's data in an empty directory. Once for each node of a new volume."`
	Join     bool     `help:"With --create: the volume exists, and this node is about to be added."`
	Slots    int      `help:"Writes of 16 KiB or more, of a made volume, that are under way at a time." default:"16"`
	SlotSize string   `help:"The longest write of a made volume." default:"1M"`
	Other    []string `help:"HOST:PORT at which another node serves hosts, for the discovery log; may be repeated." name:"elsewhere"`
	Verbose  bool     `short:"v"`
}

type addressOption struct {
	Addr string `arg:"" help:"HOST:PORT of a node, as in --peers."`
}

type memberOptions struct {
	Addr   string `arg:"" help:"HOST:PORT of the leader, as in --peers."`
	ID     uint64 `arg:"" help:"The node."`
	Member string `arg:"" optional:"" help:"HOST:PORT of a node that is added."`
}

func main() { os.Exit(program(os.Args[1:], os.Stdout, os.Stderr)) }

// program is the program.
func program(args []string, out, log io.Writer) int {
	o := &options{}
	parser := kong.Must(o, kong.Name("volume"), kong.Description("A disk on several machines."), kong.UsageOnError())
	command, err := parser.Parse(args)
	parser.FatalIfErrorf(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Fields(command.Command())[0], o, out, log); err != nil {
		fmt.Fprintln(log, "volume:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, command string, o *options, out, log io.Writer) error {
	ia, err := dat.Open(ctx, o.Provider)
	if err != nil {
		return err
	}
	switch command {
	case "serve":
		err = serve(ctx, ia, &o.Serve, out, log)
	case "status":
		err = status(ctx, ia, o.Status.Addr, out)
	case "add":
		err = add(ctx, ia, o.Add)
	case "remove":
		_, err = node.Ask(ctx, ia, o.Remove.Addr, node.Command{Do: "remove", ID: o.Remove.ID})
	case "transfer":
		_, err = node.Ask(ctx, ia, o.Transfer.Addr, node.Command{Do: "transfer", ID: o.Transfer.ID})
	case "check":
		err = check(ctx, ia, o.Check.Addr, out)
	}
	return errors.Join(err, ia.Close())
}

// status prints what a node knows.
func status(ctx context.Context, ia *dat.IA, addr string, out io.Writer) error {
	s, err := node.Ask(ctx, ia, addr, node.Command{Do: "status"})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "node %d: %s, %s; leader %d, term %d; records %d, applied %d, released %d\n",
		s.ID, s.Role, s.State, s.Leader, s.Term, s.Last, s.Applied, s.Released)
	if s.Rotten {
		fmt.Fprintln(out, "it is being rebuilt")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, id := range slices.Sorted(maps.Keys(s.Members)) {
		m := s.Members[id]
		fmt.Fprintf(w, "%d\t%s\t", id, m.Addr)
		if m.Learner {
			fmt.Fprint(w, "learner ")
		}
		if p, ok := s.Replicas[id]; ok {
			fmt.Fprintf(w, "\thas %d\t%s", p.Match, strings.TrimPrefix(p.State, "State"))
			if p.Out {
				fmt.Fprint(w, " (out)")
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// add adds a node as a learner, and lets it vote when it has the disk.
func add(ctx context.Context, ia *dat.IA, o memberOptions) error {
	if _, err := node.Ask(ctx, ia, o.Addr, node.Command{Do: "add", ID: o.ID, Addr: o.Member}); err != nil {
		return err
	}
	for {
		s, err := node.Ask(ctx, ia, o.Addr, node.Command{Do: "promote", ID: o.ID})
		if err != nil {
			s, err = node.Ask(ctx, ia, o.Addr, node.Command{Do: "status"})
		}
		if m, ok := s.Members[o.ID]; err != nil || ok && !m.Learner {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// errDiffer is the error of a volume whose disks differ.
var errDiffer = errors.New("the disks differ")

// check compares the disks.
func check(ctx context.Context, ia *dat.IA, addr string, out io.Writer) error {
	leader, err := node.Ask(ctx, ia, addr, node.Command{Do: "check"})
	if err != nil {
		return err
	}
	want := leader.Checked
	for _, id := range slices.Sorted(maps.Keys(leader.Members)) {
		got, err := checked(ctx, ia, leader.Members[id].Addr, want.Index)
		if err != nil {
			return fmt.Errorf("node %d: %w", id, err)
		}
		fmt.Fprintf(out, "node %d: CRC-32C %08x after record %d\n", id, got.CRC, got.Index)
		if got != want {
			err = errDiffer
		}
		if err != nil {
			return err
		}
	}
	return nil
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
