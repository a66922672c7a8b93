package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"godat/examples/volume/node"
	"godat/runtime/inspect"
)

// replicaRow is a replica of a volume: as the leader sees it, who tells all, or as this node does if it hears no leader.
type replicaRow struct {
	Replica string // by its node
	Node    uint64
	Address string
	Here    bool // it is this node's
	Leads   bool
	Votes   bool
	Direct  bool          // it gets entries that name slots
	Has     string        // record, if somebody has said so
	Lag     string        // the same, in records, behind the leader
	State   string        // as the leader sees it
	Silent  bool          // its node answers nothing that the leader sends
	For     time.Duration // for how long nothing is
	Why     string        // nothing is heard
	Takes   time.Duration // of late, at most, until it had more of what it lacks
	// DiskTakes is how long its slowest write of late took to be stable, DiskTookAgo when it was, and NewestTakes that
	// of the newest one.
	DiskTakes, DiskTookAgo, NewestTakes time.Duration
	Back, Away                          time.Duration // it came back so long ago, and had been away
	Runs                                time.Duration // since its node began
	lag                                 uint64
	refuses, ended                      bool
	callers                             []string
}

// Trouble says what is wrong with the replica, the cause first.
func (r replicaRow) Trouble(late time.Duration) string {
	slow := r.DiskTakes >= late // it answers late, or has just said so
	if r.Silent && !slow && (r.For == 0 || r.For >= node.Briefly) {
		return r.missed()
	}
	var all []string
	if slow && !r.Here { // of which the volume's line says more
		all = append(all, "its disk is slow: "+wrote(r.DiskTakes, r.DiskTookAgo))
	}
	switch {
	case r.Leads:
	case r.Silent && !slow:
		all = append(all, "it answers nothing that the leader sends, though it calls")
	case !r.Direct:
		all = append(all, fmt.Sprintf("the replica is out, %s behind", records(r.lag)))
	case r.Takes >= late && !slow:
		all = append(all, fmt.Sprintf("it took %s until it had more of what is written", lasting(r.Takes)))
	}
	if r.Back != 0 && (!slow || r.anew()) {
		all = append(all, r.back())
	}
	switch {
	case all == nil:
		return ""
	case r.Here:
	case slow:
		all = append(all, "look what else writes to that disk, and whether it fails")
	case r.Back == 0:
		all = append(all, "look at its page, and at its disk")
	}
	return strings.Join(all, "; ")
}

// anew reports whether the node came back since it was started anew.
func (r replicaRow) anew() bool { return r.Runs != 0 && r.Runs < r.Back+r.Away }

// back says that the replica came back.
func (r replicaRow) back() string {
	text := fmt.Sprintf("it came back %s ago, ", lasting(r.Back))
	if r.anew() {
		text += "started anew, "
	}
	text += fmt.Sprintf("after %s away", lasting(r.Away))
	switch {
	case r.lag == 0:
		text += ", and has all that is written"
	case r.Direct:
		text += fmt.Sprintf(", and is %s behind", records(r.lag))
	}
	return text
}

// missed says why nothing is heard of the replica's node, and what to do.
func (r replicaRow) missed() string {
	if r.Here {
		return fmt.Sprintf("the leader has heard nothing of this node for %s", lasting(r.For))
	}
	text := "nothing is heard of it"
	if r.For != 0 {
		text = fmt.Sprintf("nothing has been heard of it for %s", lasting(r.For))
	}
	switch {
	case r.ended: // the host answers, and no process does
		text += fmt.Sprintf(": its process has ended (%s)", r.Why)
	case r.Why != "":
		text += ": " + r.Why
	}
	switch {
	case r.refuses && strings.Contains(r.Why, aheadWords):
		return fmt.Sprintf("it follows nobody: %s%s", r.Why, mended(r.Why))
	case r.refuses:
		return fmt.Sprintf("it is the odd one, which the others refuse: %s%s", r.Why, mended(r.Why))
	case r.ended:
		return text + "; start it, and see in its log why"
	}
	return text + "; open its page: if that opens, the network between is cut; else its process is stopped, or its host"
}

func records(n uint64) string {
	if n == 1 {
		return "1 record"
	}
	return fmt.Sprintf("%d records", n)
}

// Causes says that the trouble of a node is why calls to it fail or wait, and its connections end.
func (r replicaRow) Causes() (is bool, peers []string) {
	if r.Here {
		return false, nil
	}
	return true, append([]string{r.Address}, r.callers...)
}

func (m *machine) replicaRows() (rows []any) {
	for _, v := range m.watched() {
		s, _ := v.status()
		for _, id := range slices.Sorted(maps.Keys(s.Members)) {
			rows = append(rows, newReplicaRow(id, &s))
		}
	}
	return rows
}

// unknown is what a leader has not said, such as one of the version before, who tells his followers nothing.
const unknown = "unknown"

func newReplicaRow(id uint64, s *node.Status) replicaRow {
	m, other := s.Members[id], s.Others[id]
	r := replicaRow{Replica: s.Name(id), Node: id, Address: m.Addr, Here: id == s.ID, Leads: id == s.Leader, Votes: !m.Learner, Direct: true, Has: unknown, Lag: unknown, callers: other.Addrs}
	if r.Here {
		r.Replica, r.Has = fmt.Sprintf("node %d (this one)", id), fmt.Sprint(s.Last)
	}
	p, seen := s.Seen()[id]
	unreached := other.Why != "" && (other.For == 0 || other.For >= node.Briefly) && (s.Leader == 0 || s.Leader == s.ID)
	switch {
	case seen && (!unreached || r.Here):
		r.Direct, r.lag, r.State, r.Takes, r.Back, r.Away = !p.Out, p.Behind, p.Text(), p.Takes, p.Back, p.Away
		r.Has, r.Lag = fmt.Sprint(p.Match), fmt.Sprint(p.Behind)
		r.miss(p.Silent, &p.Missed)
		if self := p.Self; self != nil {
			r.DiskTakes, r.DiskTookAgo, r.NewestTakes, r.Runs = self.Disk.Longest, self.Disk.Ago, self.Disk.Newest, self.Runs
		}
	case id == s.ID, s.Leader == 0 && odd(s) != "": // this node is the matter
	case unreached, s.Leader == 0, s.Leader == id && other.For >= silentLeader: // what this node knows by itself
		r.miss(other.Why != "", &other.Missed)
	}
	return r
}

// silentLeader is for how long a leader is silent until that is told: without heartbeats for so long it leads no more.
const silentLeader = 3 * time.Second

// miss says that nothing is heard of the node, if so.
func (r *replicaRow) miss(silent bool, x *node.Missed) {
	if r.Silent = silent; silent {
		r.For, r.Why, r.refuses, r.ended = x.For, x.Why, x.Refuses, x.Ended
	}
}

var _ inspect.Causing = replicaRow{}
