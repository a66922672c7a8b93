package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	"godat/runtime/inspect"
)

// volumeRow is a volume on the page of --inspect, as this node knows it.
type volumeRow struct {
	Volume                     string // by its node's address
	Node                       uint64
	Role, Path                 string
	Leader, Term               uint64
	Records, Applied, Released uint64
	Slots, FreeSlots, Waiting  int           // of a leader: slots of its own, and writes that wait for one
	Rebuilt, Rebuilds          uint64        // bytes of a rebuild
	Zeros                      int           // bytes that are zeros, and still to be written
	Identity                   string        // of the volume
	Odd                        string        // why this node, and not the others, is of another volume
	Refused                    string        // why nodes refuse each other
	Waits                      string        // what the node waits for
	DiskTakes                  time.Duration // of the slowest write of late, until it was stable
	DiskTookAgo                time.Duration // when that one was stable; 0 while it is not
	NewestTakes                time.Duration // of the newest write
	Silent                     time.Duration // for how long the node has not said what it does
	Opens                      time.Duration // for how long the node has been opened, if it is not open yet
	others                     []string      // addresses of the other nodes
}

// Trouble says what is wrong with the volume at this node.
func (v volumeRow) Trouble(late time.Duration) string {
	switch {
	case v.Opens != 0 && v.Opens < late:
		return ""
	case v.Opens != 0:
		return fmt.Sprintf("the node is not open yet, after %s: it reads its log and journal, and makes them stable: where that lasts, look at its disk", lasting(v.Opens))
	case v.DiskTakes >= late:
		return fmt.Sprintf("the disk of this node, node %d, is slow: %s; look what else writes to the disk, and whether it fails", v.Node, wrote(v.DiskTakes, v.DiskTookAgo))
	case v.Silent >= late:
		return fmt.Sprintf("the node has not said for %s what it does: it is busy or stuck", lasting(v.Silent))
	case v.Odd != "":
		return v.Odd
	case v.Refused != "":
		return "nodes refuse each other: " + v.Refused
	case v.Waits != "":
		return v.Waits
	case v.Leader == 0:
		return "nobody leads that this node hears: look whether a majority of the nodes runs and is not being rebuilt"
	case v.Rebuilds != 0:
		return fmt.Sprintf("the node is being rebuilt: it has %d of %d bytes", v.Rebuilt, v.Rebuilds)
	}
	return ""
}

// Causes says that a slow disk or a stuck node is why others wait, and a wrong certificate why no node is reached.
func (v volumeRow) Causes() (is bool, peers []string) {
	if v.Odd != "" {
		return true, v.others
	}
	return v.Opens != 0 || v.DiskTakes >= inspect.Late || v.Silent >= inspect.Late, nil
}

// wrote says how long a write took, and when.
func wrote(took, ago time.Duration) string {
	if ago == 0 {
		return fmt.Sprintf("a write has taken %s so far, and is not stable", lasting(took))
	}
	return fmt.Sprintf("a write took %s to be stable, %s ago", lasting(took), lasting(ago))
}

// lasting is a time for people.
func lasting(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func (m *machine) volumeRows() (rows []any) {
	m.mu.Lock()
	nodes, views, opening := slices.Clone(m.nodes), slices.Clone(m.views), slices.Clone(m.opening)
	m.mu.Unlock()
	for _, addr := range opening {
		rows = append(rows, volumeRow{Volume: addr, Role: "not open yet", Opens: time.Since(m.began)})
	}
	for i, n := range nodes {
		s, silent := views[i].status()
		self := n.Self()
		rows = append(rows, volumeRow{
			Identity: s.Volume, Waits: s.Waits, Refused: refusedText(&s), Odd: odd(&s),
			DiskTakes: self.Disk.Longest, DiskTookAgo: self.Disk.Ago, NewestTakes: self.Disk.Newest, Silent: silent,
			Volume: n.Addr(), Node: s.ID, Role: s.Role, Path: s.State, Leader: s.Leader, Term: s.Term,
			Records: s.Last, Applied: s.Applied, Released: s.Released, Slots: s.Slots, FreeSlots: s.Free, Waiting: s.Waiting,
			Rebuilt: s.Rebuilt, Rebuilds: s.Rebuilds, Zeros: s.Zeros, others: addressesOf(s.Members, s.ID),
		})
	}
	return rows
}

// addressesOf are those of all members but one.
func addressesOf(members raftlog.Members, but uint64) (all []string) {
	for _, id := range slices.Sorted(maps.Keys(members)) {
		if id != but {
			all = append(all, members[id].Addr)
		}
	}
	return all
}

// refusedText says why nodes refuse each other, but for a node of which its own line says so.
func refusedText(s *node.Status) string {
	told := false
	for _, p := range s.Seen() {
		told = told || p.Refuses
	}
	var all []string
	for _, r := range s.Refusals {
		if !told || r.Node != 0 && !s.Seen()[r.Node].Refuses {
			all = append(all, refusalText(&r, s))
		}
	}
	return strings.Join(all, "; ")
}

// odd says why this node is the one that is of another volume: it refuses all others, or they it, and it hears no leader. So is one
// that is ahead of its leader.
func odd(s *node.Status) string {
	if s.Ahead != "" {
		return s.Ahead
	}
	var all []string
	why := ""
	for _, id := range slices.Sorted(maps.Keys(s.Others)) {
		x := s.Others[id]
		if !x.Refuses {
			return ""
		}
		all = append(all, s.Name(id))
		why = x.Why
	}
	if s.Leader != 0 || len(all) < 2 {
		return ""
	}
	if _, by, of := strings.Cut(why, " is by "); of {
		why = "their certificates are by " + by
	}
	return fmt.Sprintf("this node, node %d, is the odd one: it and %s refuse each other: %s%s", s.ID, strings.Join(all, ", "), why, mended(why))
}

// aheadWords are in the refusals of a node that is ahead of its leader.
const aheadWords = "never had"

// mended says how nodes come to take each other that do not for a reason.
func mended(why string) string {
	switch {
	case strings.Contains(why, "certificate"):
		return "; give the odd one the certificate of this volume, and start it again"
	case strings.Contains(why, aheadWords):
		return "; its page says what to do"
	case strings.Contains(why, "options"):
		return "; give the odd one the others' options, and start it again"
	}
	return ""
}
