package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

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
