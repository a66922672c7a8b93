package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/node"
	"godat/examples/volume/secure"
	dat "godat/runtime"
	"godat/runtime/inspect"
)

// The bounds of a tick, of which an election takes 10 to 20. Below, a leader that waits for the processor looks dead;
// above, the state "change" may last longer than the 30 s that the target tells hosts.
const (
	shortestTick = 10 * time.Millisecond
	longestTick  = time.Second
)

// serve serves until ctx ends.
func serve(ctx context.Context, options *options, out, log io.Writer) error {
	o := &options.Serve
	level := slog.LevelInfo
	if o.Verbose {
		level = slog.LevelDebug
	}
	if err := o.check(); err != nil {
		return usageError{err}
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	if err := o.try(ctx); err != nil {
		return err
	}
	if o.Create {
		if err := createAloud(ctx, &o.volumeOptions, o.Provider, o.Data[0], out); err != nil {
			return err
		}
	}
	all, err := openAll(o.Data)
	if err != nil {
		return err
	}
	if !o.Create {
		err = all.agree(o)
	}
	if err == nil && o.Tick != nil {
		err = all.keepTick(*o.Tick)
	}
	if err == nil {
		err = serveAll(ctx, options, all, out, logger)
	}
	return full(strings.Join(o.Data, ", "), errors.Join(err, all.close()))
}

// serveAll serves open directories until ctx ends.
func serveAll(ctx context.Context, options *options, all volumes, out io.Writer, log *slog.Logger) error {
	a := &all[0].about
	m := &machine{elsewhere: make(map[uuid][]string)}
	m.metrics = newMetrics(m)
	c, err := all.credentials(options)
	if err != nil {
		return err
	}
	if m.ia, err = dat.Open(ctx, options.Serve.Provider); err != nil {
		return err
	}
	m.between = m.ia
	if c != nil {
		m.between, err = options.Serve.open(ctx, c, m.refused)
	}
	adapters := []*dat.IA{m.ia}
	if err == nil && c != nil {
		adapters = append(adapters, m.between)
	}
	if err == nil {
		var page string
		if page, err = inspect.Serve(ctx, options.Serve.Inspect, options.Serve.Traces, adapters...); page != "" {
			log.Info("the page shows the adapters", "url", page)
		}
		m.page = page
		err = taken(options.Serve.Inspect, "inspect", err)
	}
	var wait func() error
	if err == nil {
		wait, err = m.metrics.serve(ctx, options.Serve.Metrics, adapters...)
	}
	if err == nil {
		if err = m.open(ctx, all, &options.Serve, log); err == nil {
			all.warn(c, log)
			fmt.Fprintf(out, "node %d of %s serves hosts on %s\n", a.ID, a.subsystem(), m.target.Addr())
			err = m.run(ctx)
		}
		err = errors.Join(err, wait())
	}
	for _, ia := range adapters {
		err = errors.Join(err, ia.Close())
	}
	return err
}

// credentials are what the nodes show each other: those of the options, or of the directories, or nil.
func (all volumes) credentials(options *options) (*secure.Credentials, error) {
	c, err := options.Serve.credentials()
	if err != nil {
		return nil, usageError{err}
	}
	for _, f := range all {
		if c != nil || len(f.about.Secret) == 0 {
			continue
		}
		if len(all) > 1 {
			return nil, errors.New("volumes that are served together have certificates by one authority: give --tls-cert, --tls-key and --tls-ca, or make them with --plain")
		}
		return secure.LoadDir(filepath.Join(f.dir, "tls"))
	}
	return c, nil
}

// warn says once what nodes without certificates are open to.
func (all volumes) warn(c *secure.Credentials, log *slog.Logger) {
	for _, f := range all {
		if addr := f.about.Peers[f.about.ID].Addr; c == nil && !loopback(addr) {
			log.Warn("the nodes have no certificates: whoever reaches this address may read the disk, change the members, and end the volume", "address", addr)
		}
	}
}

// machine is a target with the nodes of volumes.
type machine struct {
	ia      *dat.IA // to hosts
	between *dat.IA // to other nodes
	target  *target.Target
	metrics *metrics
	addr    string   // at which hosts reach it
	page    string   // the URL of its page, or empty
	other   []string // addresses of targets that are no nodes here

	mu        sync.Mutex
	opening   []string // addresses of nodes that are not open yet
	began     time.Time
	nodes     []*node.Node
	views     []*view           // of nodes
	elsewhere map[uuid][]string // addresses of the other nodes, of each volume
}

// watched are the nodes' views.
func (m *machine) watched() []*view {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.views)
}

// hostsOf are the hosts of a volume's node.
func (m *machine) hostsOf(volume uuid) node.Hosts {
	return node.Hosts{Addr: m.addr, Elsewhere: func(addrs []string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.elsewhere[volume] = addrs
		all := slices.Clone(m.other)
		for _, addrs := range m.elsewhere {
			all = append(all, addrs...)
		}
		slices.Sort(all)
		_ = m.target.SetElsewhere(slices.Compact(all)...) // they are addresses: other nodes have listened there
	}}
}

// advertised is the address of which the other nodes tell hosts. One that listens everywhere is reached by hosts where
// other nodes reach it, unless the option says otherwise.
func (o *serveOptions) advertised(listens string, a *about) (string, error) {
	if o.Advertise != "" {
		return o.Advertise, nil
	}
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		if host, _, err = net.SplitHostPort(a.Peers[a.ID].Addr); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

// pageFor is a page's URL as those open it who reach the node at an address; empty if they can't.
func pageFor(page, addr string) string {
	at, err := url.Parse(page)
	if page == "" || err != nil {
		return ""
	}
	ip, err := netip.ParseAddr(at.Hostname())
	host, _, split := net.SplitHostPort(addr)
	switch {
	case err != nil || split != nil:
	case ip.IsUnspecified():
		at.Host = net.JoinHostPort(host, at.Port())
	case ip.IsLoopback() && !loopback(addr):
		return ""
	}
	return at.String()
}

// open opens the target and the nodes.
func (m *machine) open(ctx context.Context, all volumes, o *serveOptions, log *slog.Logger) (err error) {
	if err := m.report(all); err != nil {
		return err
	}
	about := &all[0].about
	const ids = 8000
	first := uint16(about.ID-1)*ids + 1
	m.target, err = target.New(ctx, m.ia, target.Config{
		Addr: o.Listen, Subsystem: about.subsystem(), ControllerIDs: target.IDRange{First: first, Last: first + ids - 1}, Log: log,
		Transfer: all.transfer(),
	})
	if err != nil {
		return taken(o.Listen, "listen", err)
	}
	m.other = o.Other
	m.addr, err = o.advertised(m.target.Addr(), about)
	if err == nil {
		err = m.target.SetElsewhere(o.Other...)
	}
	for _, f := range all {
		if err == nil {
			err = m.add(ctx, f, log)
		}
	}
	if err != nil {
		return errors.Join(err, m.close(ctx))
	}
	return nil
}

// report has the page show the nodes, also before they are open, which a slow disk makes long.
func (m *machine) report(all volumes) error {
	m.began = time.Now()
	for _, f := range all {
		m.opening = append(m.opening, f.about.Peers[f.about.ID].Addr)
	}
	_, err := m.ia.Report("volumes", m.volumeRows)
	if err == nil {
		_, err = m.ia.Report("replicas", m.replicaRows)
	}
	return err
}

// close closes what has been opened, and did not run.
func (m *machine) close(ctx context.Context) error {
	stopped, stop := context.WithCancel(ctx)
	stop()
	return m.run(stopped)
}

// refused has the nodes say who does not trust whom.
func (m *machine) refused(addr string, here bool, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.nodes {
		n.Refused(addr, here, why)
	}
}

// transfer is the longest Write that all volumes take.
func (all volumes) transfer() int {
	most := 1 << 20
	for _, f := range all {
		most = min(most, f.about.Layout.SlotSize)
	}
	return most
}

// add adds the node of a volume, which is a namespace of an ANA group of its own.
func (m *machine) add(ctx context.Context, f *files, log *slog.Logger) error {
	a := &f.about
	if err := m.target.SetANAState(a.Namespace, nvme.ANAInaccessible); err != nil {
		return err
	}
	n, err := node.Open(ctx, m.between, node.Config{
		ID: a.ID, Addr: a.Peers[a.ID].Addr, Peers: a.Peers, Layout: a.Layout, Journal: f.journal, Disk: f.disk, Log: f.log,
		Tick: a.Tick, Birth: a.Birth, Hosts: m.hostsOf(a.Volume),
		Terms:    a.terms(),
		Page:     pageFor(m.page, a.Peers[a.ID].Addr),
		OnCommit: m.metrics.committed(a.Volume),
		Logger:   log.With("namespace", a.Namespace),
		OnState:  func(s nvme.ANAState) { _ = m.target.SetANAState(a.Namespace, s) }, // which is one
	})
	if err != nil {
		return taken(a.Peers[a.ID].Addr, "", err)
	}
	m.mu.Lock()
	m.nodes, m.views, m.opening = append(m.nodes, n), append(m.views, &view{node: n}), m.opening[1:]
	m.mu.Unlock()
	return m.target.Set(a.Namespace, target.Namespace{Store: n.Device(), ID: a.disk(), ANAGroup: a.Namespace})
}

// run serves until ctx ends, or until a node can't go on. A node that leads gives the lead away before it ends.
func (m *machine) run(ctx context.Context) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	all, running := errgroup.WithContext(running)
	for _, n := range m.nodes {
		all.Go(func() error { return n.Run(running) })
	}
	all.Go(func() error { return m.target.Run(running) })
	all.Go(func() error {
		defer stop()
		select {
		case <-ctx.Done():
			m.handOver()
		case <-running.Done():
		}
		return nil
	})
	return all.Wait()
}

// handOver gives the lead of all volumes away.
func (m *machine) handOver() {
	var all errgroup.Group
	for _, n := range m.nodes {
		all.Go(func() error {
			n.HandOver()
			return nil
		})
	}
	_ = all.Wait() // nothing fails
}
