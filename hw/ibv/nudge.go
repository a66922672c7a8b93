//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// Linux's siw, as the acceptor, sends its answer before it takes over the socket
// (siw_accept). It does not look at what the initiator has sent in between until more
// comes, and the initiator may have sent its only message before it waits for an answer.
// So both ends of a connection on soft-iWARP nudge each other: they send requests of no
// bytes.
//
// A connection that is up has an alarm each 250 ms (alarmDelays). The initiator does not
// know when the acceptor takes over the socket, which a busy machine may delay. It sends
// writes, which have no effect on any peer, at the alarms 1, 2, 4, and so on.
//
// The acceptor has taken over its socket when its device tells that the connection is up.
// It has nothing to send but a read, whose answer makes siw look. If the initiator is on
// siw and is sending when the read comes, it answers with the bytes of its last message,
// and so breaks the connection (siw_activate_tx). So the acceptor sends the read only if
// its socket has kept the same unread octets between two alarms: the initiator has sent
// nothing in between, since siw would have looked. The acceptor waits until the alarm
// readNudge, because an initiator on siw refuses the connection if something comes close
// behind the answer to its request.
const (
	readNudge = 4
	lastNudge = 16 // of the initiator
)

// nudge nudges the peer if the alarm's turn has come.
func (a alarm) nudge() {
	q, life := a.qp, a.life
	if !q.lockAt(life, phaseUp) {
		return
	}
	defer q.mu.Unlock()
	q.nudged++
	last := lastNudge
	if q.conn.passive {
		last = readNudge
		if q.nudged >= readNudge-1 && q.up.reads_out > 0 && !bool(C.gd_look(q.c).heard) {
			before := q.unread
			q.unread = q.conn.unread()
			if q.nudged == readNudge && q.unread > 0 && q.unread == before {
				C.gd_nudge(q.c, true)
			}
		}
	} else if q.nudged&(q.nudged-1) == 0 {
		C.gd_nudge(q.c, false)
	}
	if q.nudged < last {
		q.dev.watcher.setAlarm(alarmNudge, q, life)
	}
}

// unread is how many octets wait in the connection's socket for siw.
func (c *conn) unread() int {
	local, remote := c.addresses()
	return unread(netip.AddrPort(local), netip.AddrPort(remote), os.ReadFile)
}

// unread is how many octets wait in the socket of a TCP connection of the system's. It is 0
// if there is no such connection.
func unread(local, remote netip.AddrPort, readFile func(string) ([]byte, error)) int {
	name := "/proc/net/tcp"
	if local.Addr().Is6() {
		name = "/proc/net/tcp6"
	}
	table, err := readFile(name)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(table), " "+inTable(local)+" "+inTable(remote)+" ")
	var state, queued, waiting int
	if _, err := fmt.Sscanf(rest, "%x %x:%x", &state, &queued, &waiting); err != nil {
		return 0
	}
	return waiting
}

// inTable is an address as the system's table of connections has it: words of the
// processor's, and a port.
func inTable(a netip.AddrPort) string {
	var b strings.Builder
	for words := a.Addr().AsSlice(); len(words) > 0; words = words[4:] {
		fmt.Fprintf(&b, "%08X", binary.NativeEndian.Uint32(words))
	}
	fmt.Fprintf(&b, ":%04X", a.Port())
	return b.String()
}
