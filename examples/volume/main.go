// Command volume serves an NVMe disk from several machines. It survives the loss of some: README.md beside
// this file has how, and what it promises.
//
//	volume serve --create --id 1 --peers 1=10.0.0.1:7000,2=10.0.0.2:7000,3=10.0.0.3:7000 --listen 10.0.0.1:4420 --data DIR --size 10G
//	volume status 10.0.0.1:7000
package main

import (
	"cmp"
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

	"godat/examples/internal/usage"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/secure"
	"godat/hw"
	_ "godat/hw/ibv" // --provider may name it
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

// operate does a command at the volume that is meant.
func (o *addressOption) operate(ctx context.Context, out, log io.Writer, do func(*operator) error) (err error) {
	if err := checkAddr(o.Addr); err != nil {
		return usageError{err}
	}
	c, err := o.credentials()
	if err == nil {
		err = usage.Reaches(o.Provider)
	}
	var t token
	if err == nil && o.Token != "" {
		if t, err = tokenOf(o.Token); err != nil {
			err = fmt.Errorf("--token: %w", err)
		}
	}
	if err == nil && c == nil && t.secures() {
		c, err = t.Secret.Issue(t.Volume.String(), "an operator")
	}
	if err != nil {
		return usageError{err}
	}
	ia, err := o.open(ctx, c, nil)
	if err != nil {
		return o.unopened(err)
	}
	x := newOperator(ia, o.Addr, out)
	x.log, x.secured = log, c != nil
	if o.Token != "" {
		x.volume = t.Volume.String()
	}
	err = do(x)
	switch {
	case err == nil || !x.hungUp || x.heard || c != nil:
	case o.Token == "":
		err = fmt.Errorf("%w; nodes with certificates answer only those who give --token, or --tls-cert and so on", err)
	default:
		err = fmt.Errorf("%w; the token is of a volume whose nodes have no certificates, and nodes that have some, as those of another volume may, "+
			"answer only those who give that volume's", err)
	}
	return errors.Join(err, ia.Close())
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
	parser := kong.Must(o, kong.Name("volume"), kong.Description("A disk on several machines."), usage.Strict())
	command, err := parser.Parse(args)
	if errors.Is(err, errVersion) {
		fmt.Fprintln(out, version())
		return 0
	}
	if err != nil {
		fmt.Fprintf(log, "volume: %v; --help says what there is\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = run(ctx, strings.Fields(command.Command())[0], o, out, log)
	if err != nil && !errors.Is(err, errFewer) { // status has said it
		fmt.Fprintln(log, "volume:", err)
	}
	return exitStatus(err)
}

func run(ctx context.Context, command string, o *options, out, log io.Writer) error {
	switch command {
	case "create":
		return createAloud(ctx, &o.Create.volumeOptions, iwarp.Name, o.Create.Data, out)
	case "recover":
		return recoverNode(&o.Recover, out)
	}
	operate := func(at *addressOption, do func(*operator) error) error { return at.operate(ctx, out, log, do) }
	switch command {
	case "serve":
		return serve(ctx, o, out, log)
	case "status":
		return operate(&o.Status.addressOption, func(x *operator) error { return x.status(ctx) })
	case "add":
		if err := checkAddr(o.Add.Member); err != nil {
			return usageError{err}
		}
		return operate(&o.Add.addressOption, func(x *operator) error { return x.add(ctx, o.Add.ID, o.Add.Member, o.Add.Force) })
	case "remove":
		return operate(&o.Remove.addressOption, func(x *operator) error { return x.remove(ctx, o.Remove.ID, o.Remove.Force) })
	case "replace":
		r := &o.Replace
		if err := r.check(); err != nil {
			return usageError{err}
		}
		return operate(&r.addressOption, func(x *operator) error { return x.replace(ctx, r.Old, r.ID, r.Member, r.Force) })
	case "transfer":
		return operate(&o.Transfer.addressOption, func(x *operator) error { return x.transfer(ctx, o.Transfer.ID) })
	}
	return operate(&o.Check, func(x *operator) error { return x.check(ctx) })
}

// credentials are those of the options, nil if they name none.
func (o *adapterOptions) credentials() (*secure.Credentials, error) {
	if o.TLSCert == "" && o.TLSKey == "" && o.TLSCA == "" {
		return nil, nil
	}
	if o.TLSCert == "" || o.TLSKey == "" || o.TLSCA == "" {
		return nil, errors.New("--tls-cert, --tls-key and --tls-ca go together")
	}
	c, err := secure.Load(o.TLSCert, o.TLSKey, o.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key and --tls-ca: %w", err)
	}
	return c, nil
}

// open opens the adapter over which nodes are spoken to: that of the option, or iWARP over TLS.
func (o *adapterOptions) open(ctx context.Context, c *secure.Credentials, refused secure.Refused) (*dat.IA, error) {
	if c == nil {
		return dat.Open(ctx, o.Provider)
	}
	name := o.Provider
	if provider, _, _ := strings.Cut(name, ":"); provider != iwarp.Name {
		name = iwarp.Name
	}
	return dat.Open(ctx, name, dat.WithProvider(c.Provider(refused)))
}

// unopened makes an error by which an adapter could not be opened as the command line says one of the command line.
func (o *adapterOptions) unopened(err error) error {
	if usage.StatusOf(err) != usage.Status {
		return err
	}
	text := err.Error()
	for failed := (*hw.Error)(nil); errors.As(err, &failed); err = failed.Err {
		text = cmp.Or(failed.Text, text)
	}
	return usageError{fmt.Errorf("--provider %s: %s", o.Provider, text)}
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
