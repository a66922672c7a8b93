package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"godat/examples/internal/usage"
	"godat/hw/iwarp"
	dat "godat/runtime"
)

// options is the command line.
type options struct {
	Version versionFlag `help:"Say which program this is, and which formats it knows."`

	Create   createOptions  `cmd:"" help:"Make the data of one of a volume's nodes in an empty directory: once for each node."`
	Serve    serveOptions   `cmd:"" help:"Serve the disks of volumes, as one of their nodes, until interrupted."`
	Status   statusOptions  `cmd:"" help:"Say what a node knows of its volume."`
	Add      addOptions     `cmd:"" help:"Add a node, which serves with --join, and wait until it has the disk and votes."`
	Remove   removeOptions  `cmd:"" help:"Remove a node."`
	Replace  replaceOptions `cmd:"" help:"Add a node, wait until it has the disk and votes, and remove another."`
	Transfer memberOptions  `cmd:"" help:"Make another node the leader."`
	Recover  recoverOptions `cmd:"" help:"Make a stopped node's directory a volume of its own: the way out of a lost majority."`
	Check    addressOption  `cmd:"" help:"Compare the disks of all nodes as they are after one entry of the log."`
}

// adapterOptions say how a node or a command reaches nodes.
type adapterOptions struct {
	Provider string `help:"Provider and device to run on; with certificates, nodes speak iWARP over TLS to each other in any case." default:"iwarp"`
	TLSCert  string `name:"tls-cert" help:"The certificate to show to nodes, as PEM, in place of that in --data or of --token." placeholder:"FILE"`
	TLSKey   string `name:"tls-key" help:"Its key." placeholder:"FILE"`
	TLSCA    string `name:"tls-ca" help:"The authorities that certify the volume's nodes and operators, and nobody else." placeholder:"FILE"`
}

// volumeOptions say what is created.
type volumeOptions struct {
	ID        uint64         `help:"This node, 1 to 8; a node that lost its data is another one." name:"id" least:"1" most:"8"`
	Peers     string         `help:"The volume's nodes as they are at the beginning: ID=HOST:PORT, separated by commas, this one included." aliases:"replicas"`
	Token     string         `help:"What the first node's create has printed, or a file with it: the volume, and its options." placeholder:"TOKEN"`
	Beside    string         `help:"For the first node of a volume: the token of another one, with which it is served; it wants a --namespace." placeholder:"TOKEN"`
	Size      string         `help:"Size of the disk: 64M, 10G. Without it, the token's, or 1G."`
	Name      string         `help:"A label, for people."`
	Namespace uint32         `help:"The disk's namespace id, which names the volume in the subsystem. Without it, the token's, or 1." least:"1" most:"128"`
	Tick      *time.Duration `help:"Time between heartbeats, 10ms to 1s, the same for all nodes; the directory keeps it. A node that hears no leader for 10 to 20 of them stands for election. Without it, as it was before, or 100ms."`
	Join      bool           `help:"The volume exists, and this node is about to be added."`
	Slots     int            `help:"Writes of 16 KiB or more that are under way at a time. Without it, the token's, or 16." least:"1"`
	TLS       bool           `help:"For the first node: the volume's nodes have certificates, as they have without this unless all are on this machine."`
	Plain     bool           `help:"For the first node: they have none; the network is theirs alone, or --tls-cert and so on come with serve."`
	SlotSize  string         `help:"The longest write. Without it, the token's, or 1M, which Linux makes."`
}

type createOptions struct {
	volumeOptions
	Data string `help:"The node's directory." required:""`
}

type serveOptions struct {
	volumeOptions
	adapterOptions
	Inspect   string   `help:"HOST:PORT for a page that shows the nodes of volumes here, and the adapter." placeholder:"ADDR"`
	Traces    string   `help:"Let visitors of the page trace connections into this directory." placeholder:"DIR"`
	Create    bool     `help:"Create the node first; the options of create say which."`
	Data      []string `help:"The node's directory; repeated for each volume." required:"" sep:"none"`
	Listen    string   `help:"HOST:PORT for hosts." default:"127.0.0.1:4420"`
	Advertise string   `help:"HOST:PORT at which hosts reach this node, which the other nodes tell hosts; without it, as --listen." placeholder:"ADDR"`
	Metrics   string   `help:"HOST:PORT for Prometheus, which asks for /metrics." placeholder:"ADDR"`
	Other     []string `help:"HOST:PORT of a target that is no node of the volume, for the discovery log; may be repeated." name:"elsewhere"`
	Verbose   bool     `short:"v"`
}

// Help implements kong.HelpProvider.
func (serveOptions) Help() string {
	return "Exit status: 0 it was asked to end, and did; 1 it can't serve, or a node can't go on; 2 the command line is wrong, and nothing was done."
}

// Help implements kong.HelpProvider.
func (createOptions) Help() string { return statuses }

// statuses are those of commands.
const statuses = "Exit status: 0 it is done, and a line says what; 1 it is not, and a line says why; 2 the command line is wrong, and nothing was done."

type addressOption struct {
	adapterOptions
	Addr  string `arg:"" help:"HOST:PORT of a node, as in --peers."`
	Token string `help:"The token of the volume that is meant, or a file with it: a node of another one is refused." env:"VOLUME_TOKEN"`
}

// Help implements kong.HelpProvider.
func (addressOption) Help() string { return statuses }

type statusOptions struct{ addressOption }

// Help implements kong.HelpProvider.
func (statusOptions) Help() string {
	return "Exit status: 0 there are as many copies as members that vote; 3 there are fewer, or nobody leads; 1 the node does not say; 2 the command line is wrong."
}

type memberOptions struct {
	addressOption
	ID uint64 `arg:"" help:"The node." least:"1" most:"8"`
}

type removeOptions struct {
	memberOptions
	forceOption
}

type forceOption struct {
	Force bool `help:"Do it also if those that vote then, and are heard, are no majority; replace also if both nodes vote already."`
}

type addOptions struct {
	memberOptions
	forceOption
	Member string `arg:"" help:"HOST:PORT of the node."`
}

type replaceOptions struct {
	addressOption
	forceOption
	Old    uint64 `arg:"" help:"The node that is removed." least:"1" most:"8"`
	ID     uint64 `arg:"" help:"The node that is added." least:"1" most:"8"`
	Member string `arg:"" help:"HOST:PORT of the node that is added."`
}

// check checks what needs no node.
func (o *replaceOptions) check() error {
	if o.Old == o.ID {
		return errSameNode(o.Old)
	}
	return checkAddr(o.Member)
}

// Help implements kong.HelpProvider.
func (recoverOptions) Help() string { return statuses }

type recoverOptions struct {
	Data   string `arg:"" help:"The directory of the node, which does not run."`
	At     string `help:"HOST:PORT of the node from now on, if it is another one: the directory is a copy, on another machine." placeholder:"ADDR"`
	Beside string `help:"The token of a volume with which the new one is served." placeholder:"TOKEN"`
	Force  bool   `help:"Do it: what only the lost nodes have is lost, and the volume that was can't go on with this node."`
}

// check checks what needs no file, before anything is made.
func (o *serveOptions) check() error {
	if o.Tick != nil {
		if err := checkTick(*o.Tick); err != nil {
			return err
		}
	}
	if o.Create && len(o.Data) != 1 {
		return errors.New("--create makes one volume: use create for each, and then serve")
	}
	if o.Create {
		if _, err := describe(&o.volumeOptions); err != nil {
			return err
		}
	}
	for i, dir := range o.Data {
		if slices.ContainsFunc(o.Data[:i], func(other string) bool { return filepath.Clean(dir) == filepath.Clean(other) }) {
			return fmt.Errorf("--data has %s twice", filepath.Clean(dir))
		}
	}
	if _, err := o.credentials(); err != nil {
		return err
	}
	if err := usage.Reaches(o.Provider); err != nil {
		return err
	}
	if err := o.checkTraces(); err != nil {
		return err
	}
	return o.checkAddrs()
}

// checkTraces checks that there can be traces.
func (o *serveOptions) checkTraces() error {
	if o.Traces == "" {
		return nil
	}
	if o.Inspect == "" {
		return errors.New("--traces is for visitors of the page, which there is with --inspect")
	}
	if info, err := os.Stat(o.Traces); err == nil && !info.IsDir() {
		return fmt.Errorf("--traces: %s is a file, and no directory", o.Traces)
	}
	return nil
}

// checkAddrs checks addresses at which this process listens, or somebody is reached.
func (o *serveOptions) checkAddrs() error {
	at := make(map[string]string)
	for _, x := range o.ports() {
		addr, number, err := parseAddr(x.addr, 0)
		if err != nil {
			return fmt.Errorf("--%s: %w", x.option, err)
		}
		if other := at[addr]; number != 0 && other != "" {
			return fmt.Errorf("--%s and --%s have one address, %s: each wants its own", other, x.option, x.addr)
		}
		at[addr] = x.option
	}
	if o.Advertise != "" {
		if err := checkAddr(o.Advertise); err != nil {
			return fmt.Errorf("--advertise: %w", err)
		}
	}
	for _, addr := range o.Other {
		if err := checkAddr(addr); err != nil {
			return fmt.Errorf("--elsewhere: %w", err)
		}
	}
	return nil
}

// port is an address at which this process listens, by an option.
type port struct{ option, addr string }

// ports are those of this process, beside those that nodes have for each other.
func (o *serveOptions) ports() (all []port) {
	for _, x := range []port{{"listen", o.Listen}, {"inspect", o.Inspect}, {"metrics", o.Metrics}} {
		if x.addr != "" {
			all = append(all, x)
		}
	}
	return all
}

// try opens the adapter, and listens where this process is to, for a moment, before a directory is made for nothing.
// A device that is not iWARP's listens for hosts by itself.
func (o *serveOptions) try(ctx context.Context) error {
	ia, err := dat.Open(ctx, o.Provider)
	if err != nil {
		return o.unopened(err)
	}
	own := ia.Attr().Address
	if err := ia.Close(); err != nil {
		return err
	}
	all := o.ports()
	for i, x := range all {
		if host, number, err := net.SplitHostPort(x.addr); err == nil && host == "" && x.option == "inspect" {
			all[i].addr = net.JoinHostPort("127.0.0.1", number) // as the page takes it
		}
	}
	switch name, device, _ := strings.Cut(o.Provider, ":"); {
	case name != iwarp.Name:
		all = all[1:]
	case device != "":
		all = append(all, port{"provider", net.JoinHostPort(own, "0")})
	}
	for _, x := range all {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", x.addr)
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			return taken(x.addr, x.option, err)
		}
	}
	return nil
}

func checkTick(tick time.Duration) error {
	if tick < shortestTick || tick > longestTick {
		return fmt.Errorf("--tick %v; it may be %v to %v", tick, shortestTick, longestTick)
	}
	return nil
}
