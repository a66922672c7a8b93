package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"godat/examples/volume/node"
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
	Refused                    string        // why nodes refuse each other
	Waits                      string        // what the node waits for
	DiskTakes                  time.Duration // of the slowest write of late, until it was stable
	Silent                     time.Duration // for how long the node has not said what it does
	Opens                      time.Duration // for how long the node has been opened, if it is not open yet
}

// Trouble says what is wrong with the volume at this node.
func (v volumeRow) Trouble(late time.Duration) string {
	switch {
	case v.Opens != 0 && v.Opens < late:
		return ""
	case v.Opens != 0:
		return fmt.Sprintf("the node is not open yet, after %v: it reads its log and journal, and makes them stable: where that lasts, look at its disk", v.Opens.Round(10*time.Millisecond))
	case v.DiskTakes >= late:
		return fmt.Sprintf("this node's disk is slow: a write took %v to be stable; look what else writes to the disk, and whether it fails", v.DiskTakes.Round(10*time.Millisecond))
	case v.Silent >= late:
		return fmt.Sprintf("the node has not said for %v what it does: it is busy or stuck", v.Silent.Round(10*time.Millisecond))
	case v.Refused != "":
		return "nodes refuse each other: " + v.Refused
	case v.Waits != "":
		return v.Waits
	case v.Leader == 0:
		return "nobody leads: look whether a majority of the nodes runs and is not being rebuilt"
	case v.Rebuilds != 0:
		return fmt.Sprintf("the node is being rebuilt: it has %d of %d bytes", v.Rebuilt, v.Rebuilds)
	}
	return ""
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
		var refused []string
		for _, r := range s.Refusals {
			refused = append(refused, refusalText(&r, &s))
		}
		rows = append(rows, volumeRow{
			Identity: s.Volume, Waits: s.Waits, Refused: strings.Join(refused, "; "),
			DiskTakes: n.DiskTakes(), Silent: silent,
			Volume: n.Addr(), Node: s.ID, Role: s.Role, Path: s.State, Leader: s.Leader, Term: s.Term,
			Records: s.Last, Applied: s.Applied, Released: s.Released, Slots: s.Slots, FreeSlots: s.Free, Waiting: s.Waiting,
			Rebuilt: s.Rebuilt, Rebuilds: s.Rebuilds, Zeros: s.Zeros,
		})
	}
	return rows
}

// replicaRow is a replica of a volume that this node leads.
type replicaRow struct {
	Replica string // by its node's address
	Node    uint64
	Votes   bool
	Direct  bool          // it gets entries that name slots
	Has     uint64        // record
	Lag     uint64        // in records, behind the leader
	State   string        // as the leader sees it
	Silent  bool          // the leader hears nothing of its node
	Takes   time.Duration // of late, at most, until it had more of what it lacks
}

// Trouble says what is wrong with the replica.
func (r replicaRow) Trouble(late time.Duration) string {
	switch {
	case r.Silent:
		return "nothing is heard of the replica's node: look at its page, whether it runs, or why it has ended, and at its disk"
	case !r.Direct:
		return fmt.Sprintf("the replica is out, %d records behind: look whether its node runs, and at its disk", r.Lag)
	case r.Takes >= late:
		return fmt.Sprintf("the replica's node took %v until it had more of what is written: look at its page, and at its disk", r.Takes.Round(10*time.Millisecond))
	}
	return ""
}

// Misses says that the trouble is one of a replica that gives no answer, or a late one; why, another line may say.
func (r replicaRow) Misses() string { return r.Replica }

func (m *machine) replicaRows() (rows []any) {
	m.mu.Lock()
	views := slices.Clone(m.views)
	m.mu.Unlock()
	for _, v := range views {
		s, _ := v.status()
		for _, id := range slices.Sorted(maps.Keys(s.Replicas)) {
			rows = append(rows, newReplicaRow(id, &s))
		}
	}
	return rows
}

func newReplicaRow(id uint64, s *node.Status) replicaRow {
	p, m := s.Replicas[id], s.Members[id]
	return replicaRow{
		Replica: m.Addr, Node: id, Votes: !m.Learner, Direct: !p.Out, Has: p.Match, Lag: s.Last - min(s.Last, p.Match),
		State: p.Text(), Silent: p.Silent, Takes: p.Takes,
	}
}
