package target

import (
	"fmt"
	"sync"
	"sync/atomic"

	"godat/examples/nvmeof/nvme"
)

// mostGroups is the highest id of an ANA group.
const mostGroups = 128

// group is an ANA group.
type group struct {
	state   atomic.Uint32 // an nvme.ANAState, which queues read for each command; written under groups.mu
	changes uint64        // groups.changes when the group last changed; guarded by groups.mu
}

// groups are the ANA groups of a target, and the contents of the ANA log page. Its methods may be
// called from any goroutine.
type groups struct {
	all [mostGroups]group // by id, from 1

	mu      sync.Mutex // held by changes of the page's contents
	changes uint64     // of the page
}

func (g *groups) init() {
	for i := range g.all {
		g.all[i].state.Store(uint32(nvme.ANAOptimized))
	}
}

// at is the group with an id.
func (g *groups) at(id uint32) *group { return &g.all[id-1] }

// note counts a change of a group. The caller holds the lock.
func (g *groups) note(id uint32) {
	g.changes++
	g.at(id).changes = g.changes
}

// page is the ANA log page about the namespaces of a table: the groups that have one.
func (g *groups) page(t *table, groupsOnly bool) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	var members [mostGroups][]uint32
	for i, ns := range *t.list.Load() {
		if ns != nil {
			at := ns.page.ANAGroup - 1
			members[at] = append(members[at], uint32(i+1))
		}
	}
	var about []nvme.ANAGroup
	for i, nsids := range members {
		if nsids == nil {
			continue
		}
		if groupsOnly {
			nsids = nil
		}
		about = append(about, nvme.ANAGroup{
			ID: uint32(i + 1), Changes: g.all[i].changes, State: nvme.ANAState(g.all[i].state.Load()), Namespaces: nsids,
		})
	}
	return nvme.AppendANA(nil, g.changes, about)
}

// access is the status of an I/O command for a namespace, by the state of its group.
func (ns *namespace) access() nvme.Status {
	if s := nvme.ANAState(ns.group.state.Load()); s > nvme.ANANonOptimized {
		return s.Status()
	}
	return nvme.Success
}

// SetANAState says how this target reaches the namespaces of an ANA group, 1 to 128, from now
// on. Each group begins as nvme.ANAOptimized. Hosts get an event, and choose the path of
// their commands by what all targets of the subsystem say. While a group is
// neither optimized nor non-optimized, I/O commands that come for its namespaces fail with a
// path related status, which hosts answer with the same command over another path; those that
// came before are completed as ever. It may be called at any time after New.
func (t *Target) SetANAState(id uint32, state nvme.ANAState) error {
	if id < 1 || id > mostGroups {
		return fmt.Errorf("target: ANA group %d; there may be 1 to %d", id, mostGroups)
	}
	if state.Status() == nvme.InternalPathError {
		return fmt.Errorf("target: there is no %v", state)
	}
	if t.groups.set(id, state) {
		t.log.Info("ANA group changed", "group", id, "state", state)
		t.controllers.groupsChanged()
	}
	return nil
}

// set sets the state of a group, and reports whether that is news.
func (g *groups) set(id uint32, state nvme.ANAState) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at(id).state.Swap(uint32(state)) == uint32(state) {
		return false
	}
	g.note(id)
	return true
}
