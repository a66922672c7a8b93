package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"godat/examples/volume/raftlog"
)

// checkPeers checks that nodes can reach each other, each at an address of its own.
func checkPeers(all raftlog.Members) error {
	at := make(map[string]uint64)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		addr := all[id].Addr
		if id < 1 || id > nodes {
			return fmt.Errorf("node %d; there may be 1 to %d", id, nodes)
		}
		if err := checkAddr(addr); err != nil {
			return fmt.Errorf("node %d: %w", id, err)
		}
		same, _, err := parseAddr(addr, 1)
		if err != nil {
			return err
		}
		if other := at[same]; other != 0 {
			return fmt.Errorf("nodes %d and %d have one address, %s: each wants its own", other, id, addr)
		}
		at[same] = id
	}
	return nil
}

// checkAddr checks an address at which others reach a node.
func checkAddr(addr string) error {
	same, _, err := parseAddr(addr, 1)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(same)
	switch ip, errIP := netip.ParseAddr(host); {
	case err != nil || host == "":
		return fmt.Errorf("the address is %q, and not HOST:PORT", addr)
	case errIP == nil && ip.IsUnspecified():
		return fmt.Errorf("the address is %q, at which nobody is reached: give that of a machine", addr)
	}
	return nil
}

// parseAddr returns an address as all write it, whose port is a number, and that number.
func parseAddr(addr string, leastPort uint64) (same string, port uint64, err error) {
	host, number, err := net.SplitHostPort(addr)
	port, errPort := strconv.ParseUint(number, 10, 64)
	switch {
	case err != nil || errors.Is(errPort, strconv.ErrSyntax):
		return "", 0, fmt.Errorf("the address is %q, and not HOST:PORT", addr)
	case port < leastPort || port > math.MaxUint16:
		return "", 0, fmt.Errorf("the address is %q, and a port is %d to %d", addr, leastPort, math.MaxUint16)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.FormatUint(port, 10)), port, nil
}
