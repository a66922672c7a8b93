package main

import (
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/cpu"
)

// machine is what the checks look at.
type machine struct {
	root          string // of the file system
	ports         []port // of its devices
	interfaces    []net.Interface
	locked, files uint64 // the limits on locked bytes and on descriptors; 0 where there is none
	crc           bool   // the processor computes CRC-32Cs
}

// port is a port of a device, as /sys describes it.
type port struct {
	dir, name, netdev, link, state, rate string
	iwarp                                bool
}

// thisMachine is this machine, with another root for tests.
func thisMachine(root string) *machine {
	m := &machine{root: root, crc: cpu.X86.HasSSE42 || cpu.ARM64.HasCRC32}
	m.locked, m.files = limits()
	m.interfaces, _ = net.Interfaces()
	for _, dir := range m.list("/sys/class/infiniband/*/ports/*") {
		device := path.Dir(path.Dir(dir))
		_, state, _ := strings.Cut(m.text(dir+"/state"), ": ")
		m.ports = append(m.ports, port{
			dir: dir, name: path.Base(device) + "/" + path.Base(dir), netdev: m.text(dir + "/gid_attrs/ndevs/0"),
			link: m.text(dir + "/link_layer"), state: state, rate: m.text(dir + "/rate"),
			iwarp: strings.HasSuffix(m.text(device+"/node_type"), "RNIC"),
		})
	}
	return m
}

// checks are one function each, in the order of the lines.
var checks = []struct {
	name string
	look func(*machine) line
}{
	{"devices", devices},
	{"device files", deviceFiles},
	{"GIDs", gids},
	{"modules", modules},
	{"devices in software", softDevices},
	{"container", container},
	{"control group", controlGroup},
	{"locked memory", lockedMemory},
	{"descriptors", descriptors},
	{"socket buffers", socketBuffers},
	{"congestion control", congestion},
	{"backlog", backlog},
	{"ports", freePorts},
	{"MTU", mtu},
	{"CRC-32C", crc32c},
}

// examine makes all checks.
func examine(m *machine) (list []line) {
	for _, c := range checks {
		l := c.look(m)
		l.Check = c.name
		list = append(list, l)
	}
	return list
}

// text is what a file contains, without blanks around it; empty if it can't be read.
func (m *machine) text(name string) string {
	text, _ := os.ReadFile(filepath.Join(m.root, name))
	return strings.TrimSpace(string(text))
}

// list is the files that a pattern matches.
func (m *machine) list(pattern string) (names []string) {
	found, _ := filepath.Glob(filepath.Join(m.root, pattern))
	for _, f := range found {
		names = append(names, path.Clean("/"+filepath.ToSlash(strings.TrimPrefix(f, m.root))))
	}
	return names
}

func (m *machine) has(name string) bool {
	_, err := os.Stat(filepath.Join(m.root, name))
	return err == nil
}

// severity is the state of what devices need and miss.
func (m *machine) severity() string {
	if len(m.ports) > 0 {
		return bad
	}
	return note
}

// netdev is an interface on which a device in software can be made.
func (m *machine) netdev() string {
	for _, i := range m.interfaces {
		if i.Flags&(net.FlagLoopback|net.FlagUp) == net.FlagUp {
			return i.Name
		}
	}
	return "eth0"
}
