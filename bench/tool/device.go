package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// device is an RDMA device of this host, and how to reach it.
type device struct {
	name   string
	gid    int    // the place of its IPv4 address among its GIDs
	addr   string // that address
	netdev string // the network interface that has it
}

// findDevice finds a device with an IPv4 address in the directory of Linux's devices.
func findDevice(sys fs.FS) (device, error) {
	entries, _ := fs.ReadDir(sys, ".")
	if len(entries) == 0 {
		return device{}, errors.New("it needs an RDMA device, and this host has none")
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if d, ok := describe(sys, e.Name()); ok {
			return d, nil
		}
	}
	return device{}, fmt.Errorf("it needs an RDMA device with an IPv4 address among its GIDs, as of RoCE: %s have none", strings.Join(names, ", "))
}

// describe reads a device's first port.
func describe(sys fs.FS, name string) (device, bool) {
	port := path.Join(name, "ports", "1")
	gids, _ := fs.ReadDir(sys, path.Join(port, "gids"))
	var places []int
	for _, g := range gids {
		if place, err := strconv.Atoi(g.Name()); err == nil {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	for _, place := range places {
		at := strconv.Itoa(place)
		text, _ := fs.ReadFile(sys, path.Join(port, "gids", at))
		gid, err := netip.ParseAddr(strings.TrimSpace(string(text)))
		if err != nil || !gid.Is4In6() {
			continue
		}
		netdev, _ := fs.ReadFile(sys, path.Join(port, "gid_attrs", "ndevs", at))
		return device{name, place, gid.Unmap().String(), strings.TrimSpace(string(netdev))}, true
	}
	return device{}, false
}

// datConf is a registry file of DAPL with the device, whose adapter has the device's name.
func (d device) datConf() string {
	return fmt.Sprintf("%s u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"%s 0\" \"\"\n", d.name, d.netdev)
}
