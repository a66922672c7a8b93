package nodes

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"godat/check/world/program"
	"godat/examples/nvmeof/identity"
	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/registers"
	dat "godat/runtime"
)

// volume is a volume whose members change.
type volume struct {
	w        *program.World
	number   int
	name     string
	id       identity.ID
	place    func(id uint64) (host, addr, serves string)
	operator *dat.IA
	pace     time.Duration // the most that a writer or a client pauses
	draws    uint64        // the first source of random numbers of its parties
	history  registers.History
	marks    [][]mark // of each writer
	lame     bool     // one of its members is not there, ever: so it waits while another one is away

	mu   sync.Mutex
	all  []*member
	gone []*member // that were members
}

// found makes a volume of so many nodes, and starts them. slip changes what a node is told of the others.
func found(w *program.World, number, nodes int, pace time.Duration, slip func(raftlog.Members)) (*volume, error) {
	v := &volume{
		w: w, number: number, name: fmt.Sprintf("volume %d", number), id: identity.ID{byte(number)}, pace: pace, draws: 600 + 100*uint64(number),
		place: func(id uint64) (host, addr, serves string) {
			host = fmt.Sprintf("10.0.%d.%d", number, id)
			if w.Network == nil {
				port := 7000 + 100*number + int(id)
				return host, fmt.Sprintf("loop:%d", port), fmt.Sprintf("loop:%d", port+50)
			}
			return host, fmt.Sprintf("%s:%d", host, 7000+id), fmt.Sprintf("%s:%d", host, 7050+id)
		},
	}
	var err error
	if v.operator, err = w.Open(fmt.Sprintf("10.0.%d.99", number)); err != nil {
		return nil, err
	}
	peers := make(raftlog.Members)
	for id := uint64(1); id <= uint64(nodes); id++ {
		_, addr, _ := v.place(id)
		peers[id] = raftlog.Member{Addr: addr}
	}
	if slip != nil {
		slip(peers)
	}
	for id := range uint64(nodes) {
		m, err := v.member(id+1, maps.Clone(peers))
		if err != nil {
			return nil, err
		}
		v.all = append(v.all, m)
	}
	for _, m := range v.all {
		if err := m.start(); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// list is the members.
func (v *volume) list() []*member {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.all)
}

// busy starts writers and clients.
func (v *volume) busy(all *sync.WaitGroup, many, clients int, until time.Time) {
	v.marks = make([][]mark, many)
	for number := range v.marks {
		v.marks[number] = make([]mark, share)
		draw := v.w.Draw(v.draws + uint64(number))
		by, err := v.hand(number, draw)
		if err != nil {
			v.w.Wrong("%s: writer %d does not begin: %v", v.name, number, err)
			continue
		}
		all.Go(func() { v.write(number, until, draw, by) })
	}
	for number := range clients {
		all.Go(func() { v.access(number, until) })
	}
}

// settled is the most time that a volume takes until all is as it should be.
const settled = 5 * time.Minute

// until gives the leader the command that step returns, again and again, until step says that all is done. What the leader
// refuses it may take later.
func (v *volume) until(what string, step func(leader node.Status) (c node.Command, done bool)) bool {
	ctx, cancel := context.WithTimeout(context.Background(), settled)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		for _, m := range v.list() {
			if m.up() == nil {
				continue
			}
			s, err := node.Ask(ctx, v.operator, m.addr, node.Command{Do: "status"})
			if err != nil || !s.Serves() {
				continue
			}
			c, done := step(s)
			if done {
				return true
			}
			c.Volume = s.Volume
			if _, err = node.Ask(ctx, v.operator, m.addr, c); err != nil {
				last = err
			}
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	v.w.Wrong("%s: %s took %v: %v", v.name, what, settled, last)
	return false
}

// join adds a node, and waits until it votes. It reports whether there was a number for one.
func (v *volume) join() bool {
	v.mu.Lock()
	id := uint64(len(v.all) + len(v.gone) + 1)
	known := make(raftlog.Members)
	for _, m := range v.all {
		known[m.id] = raftlog.Member{Addr: m.addr}
	}
	v.mu.Unlock()
	if id > uint64(layout(v.id).Nodes) {
		return false
	}
	m, err := v.member(id, known)
	if err == nil {
		m.joins = true
		err = m.start()
	}
	if err != nil {
		v.w.Wrong("%s: node %d does not begin: %v", v.name, id, err)
		return false
	}
	voted := v.until(fmt.Sprintf("to add node %d", id), func(leader node.Status) (node.Command, bool) {
		is, member := leader.Members[id]
		switch {
		case !member:
			return node.Command{Do: "add", ID: id, Addr: m.addr}, false
		case is.Learner:
			return node.Command{Do: "promote", ID: id}, false
		}
		return node.Command{}, true
	})
	v.w.Step(m.host, "node %d is a member that votes: %v", id, voted)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, m)
	return voted
}

// remove removes a member, and ends it.
func (v *volume) remove(m *member) {
	v.until(fmt.Sprintf("to remove node %d", m.id), func(leader node.Status) (node.Command, bool) {
		_, member := leader.Members[m.id]
		return node.Command{Do: "remove", ID: m.id}, !member
	})
	v.mu.Lock()
	v.all = slices.DeleteFunc(v.all, func(other *member) bool { return other == m })
	v.gone = append(v.gone, m)
	v.mu.Unlock()
	m.end(false, nil)
	v.w.Step(m.host, "node %d is removed", m.id)
}

// forgotten starts a node that was removed, as an operator may by mistake. The node says that it was removed, and harms nothing.
func (v *volume) forgotten(m *member) {
	if err := m.start(); err != nil {
		m.w.Step(m.host, "refused: %v", err)
		return
	}
	told := false
	for range 600 {
		n := m.up()
		if n == nil {
			break
		}
		s := n.Status()
		if told = strings.Contains(s.Waits, "removed") || slices.ContainsFunc(s.Refusals, func(r node.Refusal) bool { return strings.Contains(r.Why, "removed") }); told {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if !told {
		m.w.Wrong("%s: node %d was removed, runs again, and is not told so in a minute", v.name, m.id)
	}
	m.end(false, nil)
}

// settle waits until all nodes have applied the same.
func (v *volume) settle(most time.Duration) bool {
	text := ""
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		same, last := true, uint64(0)
		text = ""
		for i, m := range v.list() {
			n := m.up()
			if n == nil {
				v.w.Wrong("%s: node %d is down at the end", v.name, m.id)
				return false
			}
			s := n.Status()
			if i == 0 {
				last = s.Last
			}
			same = same && s.Last == last && s.Applied == last && last != 0 && !s.Rotten
			text += fmt.Sprintf(" %d: %d of %d, rotten %v;", m.id, s.Applied, s.Last, s.Rotten)
		}
		if same {
			return true
		}
	}
	v.w.Wrong("%s: the nodes have not applied the same:%s", v.name, text)
	return false
}

// leads waits until a member other than m serves.
func (v *volume) leads(but *member) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, m := range v.list() {
			if n := m.up(); n != nil && m != but {
				if s := n.Status(); s.Serves() {
					return true
				}
			}
		}
	}
	v.w.Wrong("%s: nobody leads for %v", v.name, patience)
	return false
}

// end ends all nodes in order.
func (v *volume) end() {
	for _, m := range v.list() {
		m.end(false, nil)
	}
}

// pause is a wait of a random length.
func pause(draw *rand.Rand, most time.Duration) { time.Sleep(time.Duration(draw.Int64N(int64(most)))) }

// transfer asks the leader to give the lead to a member, who may refuse.
func (v *volume) transfer(to *member) {
	asked := false
	v.until("to find the leader", func(leader node.Status) (node.Command, bool) {
		if asked || leader.ID == to.id {
			return node.Command{}, true
		}
		asked = true
		return node.Command{Do: "transfer", ID: to.id}, false
	})
}
