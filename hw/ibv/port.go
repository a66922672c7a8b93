package ibv

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"godat/hw"
)

// port is what the kernel's sysfs says of a device's port.
type port struct {
	gids  []gid
	pkeys []uint16 // by index
}

// gid is an entry of a port's table of global identifiers.
type gid struct {
	index int
	addr  [16]byte
	kind  gidKind
}

// gidKind is how packets from a GID travel.
type gidKind string

const (
	kindIB     gidKind = "ib" // on InfiniBand, and on Ethernet as RoCE version 1
	kindRoCEv1 gidKind = "roce_v1"
	kindRoCEv2 gidKind = "roce_v2"
)

// gidChoice is the parameter gid: a kind, an index, or neither.
type gidChoice struct {
	kind  gidKind // empty: any
	index int     // -1: any
}

func parseGID(s string) (gidChoice, error) {
	if k := gidKind(s); k == kindRoCEv1 || k == kindRoCEv2 {
		return gidChoice{kind: k, index: -1}, nil
	}
	n, err := parseInt(s, 0, 255) // the last index of the longest table
	return gidChoice{index: n}, err
}

// readPort reads a port's directory, as /sys/class/infiniband/rxe0/ports/1. A GID of zeros is
// an entry that is not in use.
func readPort(dir string) (p port, err error) {
	names, err := os.ReadDir(filepath.Join(dir, "gids"))
	for _, n := range names {
		if index, bad := strconv.Atoi(n.Name()); bad == nil {
			if g, used := readGID(dir, index); used {
				p.gids = append(p.gids, g)
			}
		}
	}
	slices.SortFunc(p.gids, func(a, b gid) int { return cmp.Compare(a.index, b.index) })
	p.pkeys = readPKeys(dir)
	return p, err
}

func readPKeys(dir string) (keys []uint16) {
	for i := 0; ; i++ {
		key, bad := strconv.ParseUint(attribute(dir, "pkeys", strconv.Itoa(i)), 0, 16)
		if bad != nil {
			return keys
		}
		keys = append(keys, uint16(key))
	}
}

// readGID reads an entry of a port's table, and reports whether it is in use.
func readGID(dir string, index int) (g gid, used bool) {
	name := strconv.Itoa(index)
	raw, bad := hex.DecodeString(strings.ReplaceAll(attribute(dir, "gids", name), ":", ""))
	if bad != nil || copy(g.addr[:], raw) != len(g.addr) || g.addr == [16]byte{} {
		return gid{}, false
	}
	g.index, g.kind = index, kindOf(attribute(dir, "gid_attrs/types", name))
	return g, true
}

// foundGID is the GID of a device's pairs. A port's table has up to 1024, each in files of its own.
type foundGID struct {
	mu  sync.Mutex
	gid gid // zero: not found yet
}

// choose returns the GID for a choice. It reads the port's table only if it has not found a GID
// yet, if that has gone, or if the table may have got a better one since: addresses come back one
// by one, and a link-local one is often the first.
func (f *foundGID) choose(op, dir string, c gidChoice, own netip.Addr) (gid, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g, used := readGID(dir, f.gid.index); used && g == f.gid && g.score(own) >= c.bestScore() {
		return g, nil
	}
	p, err := readPort(dir)
	if err != nil {
		return gid{}, internalError(op, err)
	}
	g, err := p.choose(c, own)
	if err != nil {
		return gid{}, paramError(op, "gid", err)
	}
	f.gid = g
	return g, nil
}

// attribute is the text of a file of sysfs; it is empty if the file can't be read.
func attribute(path ...string) string {
	b, _ := os.ReadFile(filepath.Join(path...))
	return strings.TrimSpace(string(b))
}

func kindOf(kernel string) gidKind {
	switch kernel {
	case "RoCE v2":
		return kindRoCEv2
	case "IB/RoCE v1":
		return kindRoCEv1
	}
	return kindIB
}

func (g gid) String() string {
	return fmt.Sprintf("%d (%s %s)", g.index, g.kind, netip.AddrFrom16(g.addr).Unmap())
}

var errNoGID = errors.New("the port has no GID")

// What speaks for a GID, in points.
const (
	pointsRoCEv2 = 4
	pointsOwn    = 2
	pointsWide   = 1 // it is not link-local
)

// score is how well a GID serves a device with the address own.
func (g gid) score(own netip.Addr) (points int) {
	ip := netip.AddrFrom16(g.addr).Unmap()
	if g.kind == kindRoCEv2 {
		points += pointsRoCEv2
	}
	if ip == own {
		points += pointsOwn
	}
	if !ip.IsLinkLocalUnicast() {
		points += pointsWide
	}
	return points
}

// bestScore is the score that no later GID is better than, so that a GID with it is kept. A choice
// by index has one GID alone.
func (c gidChoice) bestScore() int {
	switch {
	case c.index >= 0:
		return 0
	case c.kind != "" && c.kind != kindRoCEv2:
		return pointsOwn + pointsWide
	}
	return pointsRoCEv2 + pointsOwn + pointsWide
}

// choose finds the GID for a choice. Of several it takes what the connection manager would
// for the device's address own: RoCE version 2 before version 1, and that address before
// others. The error lists what the port has.
func (p port) choose(c gidChoice, own netip.Addr) (gid, error) {
	best, most := gid{}, -1
	for _, g := range p.gids {
		if c.index >= 0 && g.index != c.index || c.kind != "" && g.kind != c.kind {
			continue
		}
		if score := g.score(own); score > most {
			best, most = g, score
		}
	}
	switch {
	case most >= 0:
		return best, nil
	case len(p.gids) == 0:
		return gid{}, errNoGID
	case c.index >= 0:
		return gid{}, fmt.Errorf("the port has no GID %d, only %s", c.index, list("%v", p.gids))
	}
	return gid{}, fmt.Errorf("the port has no GID of %s, only %s", c.kind, list("%v", p.gids))
}

// pkeyIndex finds a partition key. Its highest bit, full membership, does not count.
func (p port) pkeyIndex(key int) (int, error) {
	const membership = 1 << 15
	for i, k := range p.pkeys {
		if k != 0 && k&^membership == uint16(key)&^membership {
			return i, nil
		}
	}
	used := slices.DeleteFunc(slices.Clone(p.pkeys), func(k uint16) bool { return k == 0 })
	return 0, fmt.Errorf("the port has no P_Key %#04x, only %s", key, list("%#04x", used))
}

// list has the texts of values, each in the format.
func list[T any](format string, all []T) string {
	var texts []string
	for _, v := range all {
		texts = append(texts, fmt.Sprintf(format, v))
	}
	return strings.Join(texts, ", ")
}

// mtuCode is verbs' number of an MTU in bytes, and mtuOf the reverse.
func mtuCode(mtu int) int { return max(1, bits.Len(uint(mtu-1))-7) }

func mtuOf(code int) int { return 128 << code }

// checkMTU refuses an MTU parameter that the port can't send.
func checkMTU(param, active int) (int, error) {
	switch {
	case param == 0:
		return active, nil
	case param > active:
		return 0, fmt.Errorf("MTU %d, and the port's is %d", param, active)
	}
	return param, nil
}

// paramError is the error of a parameter with a value that the port does not have.
func paramError(op, name string, err error) error {
	return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "parameter %s: %w", name, err)
}

func internalError(op string, err error) error {
	return hw.Errorf(op, hw.InternalError, hw.NoSubtype, "%w", err)
}
