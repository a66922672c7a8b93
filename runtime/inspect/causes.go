package inspect

import (
	"regexp"
	"slices"
	"strings"

	dat "godat/runtime"
)

// Missing is a [godat/runtime.Troubled] row whose trouble may be that somebody is missed: nothing comes from there,
// or late. Misses is whose address that is, "host:port"; it is "" where the trouble says why, or is another. A line that
// names that address, or its host alone, and says more, stands before the row's.
type Missing interface{ Misses() string }

// Causing is a [godat/runtime.Troubled] row whose trouble may be why users, or other lines, feel something. Causes reports
// whether it is; then its line stands before theirs. peers are addresses, "host:port", of the peer that the trouble is about,
// if it is about one: of that peer's connections, their ends, attempts to connect and calls, no lines are told beside it.
type Causing interface {
	Causes() (is bool, peers []string)
}

// caused says of a row that has a trouble whether that is a cause, and of which peers.
func caused(r row) (is bool, peers []string) {
	c, ok := r.(Causing)
	if !ok {
		return false, nil
	}
	if t, ok := r.(dat.Troubled); !ok || t.Trouble(late) == "" {
		return false, nil
	}
	return c.Causes()
}

// explained are the peers of which rows of a snapshot say what is wrong.
func explained(s *dat.Snapshot) (peers []string) {
	for _, rows := range s.Reports {
		for _, r := range rows {
			_, of := caused(r)
			peers = append(peers, of...)
		}
	}
	return peers
}

// ofPeers are the lists whose lines may be about a peer.
var ofPeers = []string{"connections", "endpoints", "last ends", "rpc clients", "rpc connections"}

// isOf reports whether a line is about one of some peers.
func (t *Trouble) isOf(peers []string) bool {
	if !slices.Contains(ofPeers, t.Show) {
		return false
	}
	return slices.ContainsFunc(peers, func(peer string) bool { return peer == t.Name || names(t.Name, peer) || names(t.Text, peer) })
}

// missed says of a row's trouble whom it misses.
func missed(r row) string {
	if m, ok := r.(Missing); ok {
		return m.Misses()
	}
	return ""
}

// causesFirst puts each line that says why before the first line that misses the peer of which it says that. What
// users feel stays first.
func causesFirst(list []Trouble) {
	for i, cause := range list {
		if cause.misses != "" {
			continue
		}
		at := slices.IndexFunc(list[:i], func(t Trouble) bool {
			return t.rank > felt && t.misses != "" && names(cause.Head+": "+cause.Text, t.misses)
		})
		if at >= 0 {
			copy(list[at+1:i+1], list[at:i])
			list[at] = cause
		}
	}
}

var (
	wordEnds = regexp.MustCompile(`[\w.-]$`)
	portOf   = regexp.MustCompile(`^\]?(:\d+)?(?:[^\w]|$)`)
)

// names reports whether a text has an address, or its host without a port.
func names(text, address string) bool {
	host := hostOf(address)
	port := strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(address, "["), host), "]")
	for host != "" {
		before, after, found := strings.Cut(text, host)
		if !found {
			return false
		}
		if m := portOf.FindStringSubmatch(after); m != nil && !wordEnds.MatchString(before) && (m[1] == "" || m[1] == port) {
			return true
		}
		text = after
	}
	return false
}
