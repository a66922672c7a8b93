package main

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// socketBuffers looks at how much of a connection over iwarp may be under way.
func socketBuffers(m *machine) line {
	const enough = 4 << 20 // 10 Gbit/s over 3 ms
	var says, do []string
	for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
		fields := append(strings.Fields(m.text("/proc/sys/net/ipv4/"+name)), "", "", "")
		most, err := strconv.ParseUint(fields[2], 10, 64)
		if err != nil {
			return unread("/proc/sys/net/ipv4/" + name)
		}
		says = append(says, name+" up to "+size(most))
		if most < enough {
			do = append(do, fmt.Sprintf("sysctl -w net.ipv4.%s=\"%s %s %d\"", name, fields[0], fields[1], enough))
		}
	}
	return good("%s", strings.Join(says, ", ")).unless(do == nil, note, strings.Join(do, "\n"))
}

// congestion looks at how TCP paces what iwarp sends.
func congestion(m *machine) line {
	const file = "/proc/sys/net/ipv4/tcp_congestion_control"
	own := m.text(file)
	if own == "" {
		return unread(file)
	}
	return good("%s; available: %s", own, cmp.Or(m.text("/proc/sys/net/ipv4/tcp_available_congestion_control"), "unknown")).unless(own != "bbr", note,
		"within a data center, try congestion=cubic of iwarp's parameters; on one host it takes reno by itself")
}

// backlog looks at how many peers may connect to a server at the same time.
func backlog(m *machine) line {
	const file, enough = "/proc/sys/net/core/somaxconn", 1024
	most, err := strconv.Atoi(m.text(file))
	if err != nil {
		return unread(file)
	}
	return good("%d peers may connect at the same time", most).unless(most >= enough, note, "sysctl -w net.core.somaxconn=1024")
}

// freePorts looks whether those of the examples are free.
func freePorts(m *machine) line {
	own := strings.Join(strings.Fields(m.text("/proc/sys/net/ipv4/ip_local_port_range")), " to ")
	var taken []string
	const all = "4420 7000 7174 7175 62000"
	for _, port := range strings.Fields(all) {
		if ln, err := net.Listen("tcp", ":"+port); err != nil {
			taken = append(taken, port)
		} else {
			_ = ln.Close()
		}
	}
	return good("of %s, taken: %s; clients take %s", all, cmp.Or(strings.Join(taken, " "), "none"), cmp.Or(own, "unknown ones")).unless(taken == nil, note,
		"let servers listen on other ports; ss -tlnp shows who listens")
}

// mtu looks at the interfaces.
func mtu(m *machine) line {
	const least = 1280 // of IPv6; RoCE has a path MTU of 1024 over it
	l := good("")
	var says []string
	for _, i := range m.interfaces {
		if i.Flags&net.FlagUp != 0 {
			says = append(says, fmt.Sprintf("%s %d", i.Name, i.MTU))
			l = l.unless(i.MTU >= least, note, "ip link set "+i.Name+" mtu 1500, or 9000 where each switch and peer takes that")
		}
	}
	l.Says = cmp.Or(strings.Join(says, ", "), "no interface is up")
	return l.unless(says != nil, bad, "ip link set lo up, and another for peers")
}

// crc32c looks whether the processor computes what iwarp sends with each FPDU.
func crc32c(m *machine) line {
	return good("the processor computes it: %t", m.crc).unless(m.crc, note,
		"iwarp is slower; crc=false of its parameters at both ends, where the network may be trusted")
}
