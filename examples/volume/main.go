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

	"github.com/alecthomas/kong"

	"godat/examples/internal/usage"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/secure"
	"godat/hw"
	_ "godat/hw/ibv" // --provider may name it
	"godat/hw/iwarp"
	dat "godat/runtime"
)

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
	name := strings.Fields(command.Command())[0]
	ctx := context.Background()
	if name != "recover" { // which a signal ends at once, and the next one goes on
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	err = run(ctx, name, o, out, log)
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
