package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"godat/examples/internal/usage"
	"godat/hw/iwarp"
	dat "godat/runtime"
)

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

// agree refuses options that say something else than the directories do: these are as they were made.
func (all volumes) agree(o *serveOptions) error {
	for _, f := range all {
		differ, err := f.about.differ(&o.volumeOptions, len(all) > 1)
		if err != nil {
			return usageError{err}
		}
		if len(differ) != 0 {
			return usageError{fmt.Errorf("%s was made with other options, which stay: %s; leave these away", f.dir, strings.Join(differ, "; "))}
		}
	}
	return nil
}

// differ says which options are others than those that a directory was made with. Of one of several volumes only what
// is the same for all may be given.
func (a *about) differ(o *volumeOptions, several bool) (all []string, err error) {
	is := func(name string, given bool, here, there any) {
		switch {
		case !given:
		case several && name != "id":
			all = append(all, fmt.Sprintf("--%s is of one volume, and several are served", name))
		case fmt.Sprint(here) != fmt.Sprint(there):
			all = append(all, fmt.Sprintf("--%s: %v here, %v there", name, here, there))
		}
	}
	size, slotSize := 0, 0
	if o.Size != "" {
		if size, err = parseSize(o.Size); err != nil {
			return nil, fmt.Errorf("--size: %w", err)
		}
	}
	if o.SlotSize != "" {
		if slotSize, err = parseSize(o.SlotSize); err != nil {
			return nil, fmt.Errorf("--slot-size: %w", err)
		}
	}
	is("id", o.ID != 0, o.ID, a.ID)
	is("size", o.Size != "", size, a.Size)
	is("slot-size", o.SlotSize != "", slotSize, a.Layout.SlotSize)
	is("slots", o.Slots != 0, o.Slots, a.Layout.Slots)
	is("namespace", o.Namespace != 0, o.Namespace, a.Namespace)
	is("name", o.Name != "", strconv.Quote(o.Name), strconv.Quote(a.Name))
	is("join", o.Join, o.Join, a.Join)
	is("tls", o.TLS, o.TLS, len(a.Secret) != 0)
	is("plain", o.Plain, o.Plain, len(a.Secret) == 0)
	if o.Peers != "" {
		peers, err := parsePeers(o.Peers)
		if err != nil {
			return nil, err
		}
		given := about{Peers: peers}
		is("peers", true, given.peers(), a.peers())
	}
	if o.Beside != "" {
		all = append(all, "--beside is for --create")
	}
	if o.Token != "" {
		t, err := tokenOf(o.Token)
		if err != nil {
			return nil, fmt.Errorf("--token: %w", err)
		}
		own := a.token()
		own.Peers = t.Peers // a node that joined has others
		if t != own {
			is("token", true, "of volume "+t.Volume.String(), "of volume "+own.Volume.String()+", with its options")
		}
	}
	return all, nil
}

// keepTick keeps another tick for good.
func (all volumes) keepTick(tick time.Duration) error {
	for _, f := range all {
		if f.about.Tick == tick {
			continue
		}
		f.about.Tick = tick
		if err := writeWhole(filepath.Join(f.dir, "volume.json"), &f.about); err != nil {
			return err
		}
	}
	return nil
}
