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
func (t *trouble) isOf(peers []string) bool {
	if !slices.Contains(ofPeers, t.Show) {
		return false
	}
	return slices.ContainsFunc(peers, func(peer string) bool { return peer == t.Name || names(t.Name, peer) || names(t.Text, peer) })
}

// Joined is a [godat/runtime.Troubled] row whose trouble may be of connections. Connections is the address, "host:port",
// with which they are, or at which the program listens; it is "" where the trouble is another. Lines about ends of such
// connections, about attempts to connect that have failed, and of the listener about peers that were refused, are the
// same trouble: they are said with the row's. explained says that the row knows better why; or else they say why.
type Joined interface {
	Connections() (address string, explained bool)
}

// missed says of a row's trouble whom it misses.
func missed(r row) string {
	if m, ok := r.(Missing); ok {
		return m.Misses()
	}
	return ""
}

// because are kinds of lines that say why those of another kind are.
var because = map[string]string{"descriptors": "process descriptors"}

// explains reports whether a line says why another one is.
func (t *trouble) explains(effect *trouble) bool {
	if why, ok := because[effect.Kind]; ok && why == t.Kind {
		return true
	}
	text := t.Head + ": " + t.Text
	return effect.misses != "" && t.misses == "" && effect.rank > felt && names(text, effect.misses)
}

// causesFirst puts each line that says why before the first line of what follows from it. What users feel stays before
// all else.
func causesFirst(list []trouble) {
	for i := range list {
		cause := list[i]
		at := slices.IndexFunc(list[:i], func(t trouble) bool { return cause.explains(&t) })
		if at >= 0 {
			copy(list[at+1:i+1], list[at:i])
			list[at] = cause
		}
	}
}

// join says lines about connections with the row whose trouble they are.
func (f *finder) join() {
	for i := range f.list {
		if row := &f.list[i]; row.with != "" {
			f.joinTo(row)
		}
	}
	f.list = slices.DeleteFunc(f.list, func(t trouble) bool { return t.joined })
}

// joinTo says with a row's line those that belong to it: the first before it, as its cause, unless the row says why itself.
func (f *finder) joinTo(row *trouble) {
	why := ""
	for i := range f.list {
		t := &f.list[i]
		if t.joined || t.with != "" || !f.isWith(t, row) {
			continue
		}
		t.joined = true
		f.found[t.Kind]--
		if why != "" { // the latest is said, and all are in the list of ends
			continue
		}
		if strings.HasPrefix(t.Text, "ended ") {
			why = "the connection " + t.Name + " "
		}
		why += t.Text + "; "
	}
	if why != "" && !row.explained {
		row.Text = why + unsaid(strings.ReplaceAll(row.Text, " within the last minute", ""), why) // which it says
	}
}

// unsaid is a text of which each part, "what: why", has its reason only if it was not said before.
func unsaid(text, said string) string {
	parts := strings.Split(text, "; ")
	for i, part := range parts {
		if what, why, ok := strings.Cut(part, ": "); ok && strings.Contains(said, why) {
			parts[i] = what
		}
	}
	return strings.Join(parts, "; ")
}

// isWith reports whether a line is about the connections of a row: about ends of some, or about peers that were refused,
// if the row says why.
func (f *finder) isWith(t, row *trouble) bool {
	address := row.with
	switch t.Show {
	case "last ends":
		for i := len(f.now.LastEnds) - 1; i >= 0; i-- {
			if e := &f.now.LastEnds[i]; endName(e) == t.Name {
				return e.Remote == address || e.Local == address
			}
		}
	case "listeners":
		return row.explained && (t.Kind == "rejected" || t.Kind == "no places") && t.Name == "Listener("+address+")"
	}
	return false
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
