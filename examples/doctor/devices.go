package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// devices looks for devices whose ports are up.
func devices(m *machine) line {
	l := good("none; loop and iwarp need none").unless(len(m.ports) > 0, note, "for ibv, install an adapter, or make a device in software")
	var says []string
	for _, p := range m.ports {
		says = append(says, fmt.Sprintf("%s: %s, %s, %s, %s", p.name, p.state, p.link, p.rate, cmp.Or(p.netdev, "no interface")))
		l = l.unless(p.state == "ACTIVE", bad, "plug the cable of "+p.name+" in, or ip link set "+cmp.Or(p.netdev, "its interface")+" up")
		l.Says = strings.Join(says, "\n")
	}
	return l
}

// deviceFiles looks whether this user may use the devices.
func deviceFiles(m *machine) line {
	files := m.list("/dev/infiniband/uverbs*")
	if len(files) == 0 {
		return good("no /dev/infiniband/uverbs*").unless(len(m.ports) == 0, bad, "modprobe -a ib_uverbs rdma_ucm; in a container, --device /dev/infiniband")
	}
	for _, file := range append(files, "/dev/infiniband/rdma_cm") {
		f, err := os.OpenFile(filepath.Join(m.root, file), os.O_RDWR, 0)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return line{State: bad, Says: file + " is missing", Do: "modprobe rdma_ucm; in a container, --device /dev/infiniband"}
		case err != nil:
			return line{
				State: bad, Says: fmt.Sprintf("user %d can't use %s: %v", os.Getuid(), file, errors.Unwrap(err)),
				Do: "a rule of udev that makes its mode 0666, as rdma-core has; in a container, --device /dev/infiniband",
			}
		}
		_ = f.Close()
	}
	return good("this user may use rdma_cm and %s", strings.Join(files, ", "))
}

// gids lists the addresses of the ports. RoCE needs one of version 2 beyond the link.
func gids(m *machine) line {
	l := good("none, as there is no device")
	var says []string
	for _, p := range m.ports {
		routed := p.iwarp || p.link != "Ethernet"
		for _, file := range m.list(p.dir + "/gids/*") {
			gid, err := netip.ParseAddr(m.text(file))
			if err != nil || gid.IsUnspecified() {
				continue
			}
			kind := m.text(p.dir + "/gid_attrs/types/" + path.Base(file))
			says = append(says, fmt.Sprintf("%s %s: %s, %s", p.name, path.Base(file), gid.Unmap(), cmp.Or(kind, "no type")))
			routed = routed || kind == "RoCE v2" && !gid.IsLinkLocalUnicast()
		}
		l = l.unless(routed, bad, "give its interface an address: ip addr add 10.0.0.1/24 dev "+cmp.Or(p.netdev, m.netdev()))
		l.Says = cmp.Or(strings.Join(says, "\n"), "none")
	}
	return l
}

// modules looks for those that every device needs.
func modules(m *machine) line {
	if !m.has("/sys/module") {
		return unread("/sys/module")
	}
	ok := m.has("/sys/module/ib_uverbs") && m.has("/sys/module/rdma_ucm")
	return good("ib_uverbs and rdma_ucm, loaded: %t", ok).unless(ok, m.severity(), "modprobe -a ib_uverbs rdma_ucm")
}

// softDevices says how to make devices in software.
func softDevices(m *machine) line {
	loadable := m.text("/lib/modules/" + m.text("/proc/sys/kernel/osrelease") + "/modules.dep")
	var says, do []string
	for _, soft := range []struct{ kind, module string }{{"rxe", "rdma_rxe"}, {"siw", "siw"}} {
		add := fmt.Sprintf("rdma link add %s0 type %[1]s netdev %s", soft.kind, m.netdev())
		if m.has("/sys/module/" + soft.module) {
			says, do = append(says, soft.module+" is loaded"), append(do, add)
		} else if strings.Contains(loadable, "/"+soft.module+".ko") {
			says, do = append(says, soft.module+" can be loaded"), append(do, "modprobe -a "+soft.module+" rdma_ucm; "+add)
		}
	}
	if says == nil {
		says = []string{"no module rdma_rxe or siw is seen here"}
		do = []string{"on the host, install all modules of the kernel (linux-modules-extra-… on Ubuntu); iwarp needs none"}
	}
	return good("%s", strings.Join(says, ", ")).unless(len(m.ports) > 0, note, strings.Join(do, "\n"))
}
