package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"godat/examples/volume/fault"
	"godat/examples/volume/node"
	"godat/examples/volume/state"
)

// torment is what befalls a volume, as its seed says. Two troubles may last at the same time. Whatever they
// are, nothing is lost; while they last, nothing need go on.
type torment struct {
	*cluster
	r     *rand.Rand
	tally tally
	next  int             // the id of the next new node
	flips map[int]bool    // nodes of which a slot may have lost its data
	nodes map[int]*victim // that were not removed
	under []*trouble
	cut   bool // hosts do not reach all nodes

	beside *neighbor  // or nil
	narrow *multipath // a host that reaches one node alone, which follows, or nil
}

// victim is a node.
type victim struct {
	busy bool // a trouble has it
	down bool // it does not run, or not until the trouble has ended
	may  bool // end by itself: its disk is full or fails
}

// trouble is one that lasts.
type trouble struct {
	name  string
	end   func()
	mixed bool // two volumes are mixed up
}

// tally counts what befell volumes.
type tally struct {
	histories, operations, elections int
	pause                            time.Duration
	troubles                         map[string]int
}

func (t *tally) add(other tally) {
	t.histories += other.histories
	t.operations += other.operations
	t.elections += other.elections
	t.pause = max(t.pause, other.pause)
	for name, n := range other.troubles {
		t.troubles[name] += n
	}
}

func (t *tally) String() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d histories, %d operations, %d elections, longest pause %v;",
		t.histories, t.operations, t.elections, t.pause.Round(10*time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(t.troubles)) {
		fmt.Fprintf(&b, " %s %d", name, t.troubles[name])
	}
	return b.String()
}

// newTorment starts a volume.
func (c *cluster) newTorment(r *rand.Rand) *torment {
	t := &torment{cluster: c, r: r, next: 4, flips: make(map[int]bool), nodes: make(map[int]*victim), tally: tally{troubles: make(map[string]int)}}
	c.newProxy()
	c.three()
	for id := 1; id <= 3; id++ {
		t.nodes[id] = &victim{}
	}
	c.leader()
	return t
}

// run has some troubles begin and end while clients go on with a history.
func (t *torment) run(h *history, steps int) {
	for range steps {
		if n := len(t.under); n == 2 || n == 1 && t.r.IntN(2) == 0 {
			t.endOne()
		} else {
			t.begin()
		}
		t.watch()
		t.beside.goOn()
		h.wait(15+t.r.IntN(75), 2*time.Second)
	}
	t.endAll()
}

func (t *torment) endOne() {
	x := t.under[0]
	t.under = t.under[1:]
	t.Logf("end of %s", x.name)
	x.end()
}

func (t *torment) endAll() {
	for len(t.under) != 0 {
		t.endOne()
	}
	t.watch()
}

// watch looks for nodes that have ended.
func (t *torment) watch() {
	for id := range t.running {
		select {
		case <-t.running[id].ended:
			require.True(t, t.nodes[id].may, "node %d has ended", id)
		default:
		}
	}
	if t.narrow != nil {
		t.keepNarrow()
	}
}

// keepNarrow leaves the narrow host one node that follows: another one when that has come to lead, or is gone.
func (t *torment) keepNarrow() {
	leader, _ := t.serving()
	follows := func(id int) bool { v := t.nodes[id]; return v != nil && !v.down && id != leader }
	if follows(t.narrow.reached()) {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(t.nodes)) {
		if follows(id) {
			t.narrow.only(id)
			return
		}
	}
}

// serving is the node that leads, if one says so soon.
func (t *torment) serving() (leader int, s node.Status) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for id, v := range t.nodes {
		if !v.down {
			all.Go(func() {
				if x, err := t.ask(id, node.Command{Do: "status"}); err == nil && x.State == "optimized" {
					mu.Lock()
					defer mu.Unlock()
					if leader == 0 || x.Term > s.Term {
						leader, s = id, x
					}
				}
			})
		}
	}
	all.Wait()
	return leader, s
}

// victim picks a node without trouble, often the leader, or 0.
func (t *torment) victim() int {
	if leader, _ := t.serving(); leader != 0 && !t.nodes[leader].busy && t.r.IntN(2) == 0 {
		return leader
	}
	var free []int
	for _, id := range slices.Sorted(maps.Keys(t.nodes)) {
		if !t.nodes[id].busy {
			free = append(free, id)
		}
	}
	if len(free) == 0 {
		return 0
	}
	return free[t.r.IntN(len(free))]
}

// mixUps is beside the numbers of the troubles of one volume.
const mixUps = 100

// begin begins a trouble.
func (t *torment) begin() {
	id := t.victim()
	if id == 0 {
		return
	}
	what := t.r.IntN(19)
	if t.beside != nil && t.r.IntN(3) == 0 {
		what = mixUps
	}
	switch what {
	case 0, 1:
		t.last("kill", id, func() { t.kill(id) }, func() { t.start(id) })
	case 2, 3:
		t.last("power", id, func() { t.powerless(id) }, func() { t.start(id) })
	case 4:
		t.blackout()
	case 5:
		t.last("stop", id, func() { t.stop(id) }, func() { t.goOn(id) })
	case 6, 7:
		t.cutOff(id)
	case 8:
		t.count("reset", id)
		t.proxy.reset(id)
	case 9:
		t.ail("slow", id, fault.Trouble{Slow: time.Duration(20+t.r.IntN(600)) * time.Millisecond})
	case 10:
		t.ail("full", id, fault.Trouble{Full: true})
	case 11:
		t.ail("broken", id, fault.Trouble{Broken: true})
	case 12:
		t.flip(id)
	case 13:
		t.last("forget", id, func() { t.forget(id) }, func() { t.start(id) })
	case 14, 15:
		t.hiccup(id)
	case 16, 17:
		t.cutHosts()
	case mixUps:
		t.mixUp(id)
	default:
		if t.r.IntN(2) == 0 {
			t.transfer(id)
		} else {
			t.replace()
		}
	}
}

func (t *torment) count(name string, ids ...int) {
	t.Logf("%s %v", name, ids)
	t.tally.troubles[name]++
}

// last is a trouble that lasts, during which a node is not there.
func (t *torment) last(name string, id int, begin, end func()) {
	t.count(name, id)
	v := t.nodes[id]
	v.busy, v.down = true, true
	begin()
	t.under = append(t.under, &trouble{name: fmt.Sprint(name, " ", id), end: func() {
		end()
		v.busy, v.down = false, false
	}})
}

// powerless kills a node, and takes what its disk had not made stable.
func (t *torment) powerless(ids ...int) {
	for _, id := range ids {
		_ = t.running[id].Process.Kill() // all at the same time
	}
	for _, id := range ids {
		t.kill(id)
		require.NoError(t, t.disk(id).CutPower(t.r))
	}
}

// blackout is a power cut of all nodes.
func (t *torment) blackout() {
	t.endAll()
	ids := slices.Sorted(maps.Keys(t.nodes))
	t.count("blackout", ids...)
	t.powerless(ids...)
	for _, id := range ids {
		t.start(id)
	}
}

// cutOff cuts a node off: from one or from all, one way or both.
func (t *torment) cutOff(id int) {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(t.nodes)), func(other int) bool { return other == id })
	if t.r.IntN(2) == 0 {
		others = others[t.r.IntN(len(others)):][:1]
	}
	ways := t.r.IntN(3)
	name := [...]string{"cut to", "cut from", "cut"}[ways]
	t.count(name, append([]int{id}, others...)...)
	set := func(cut bool) {
		for _, other := range others {
			if ways != 1 {
				t.proxy.set(other, id, cut)
			}
			if ways != 0 {
				t.proxy.set(id, other, cut)
			}
		}
	}
	v := t.nodes[id]
	v.busy = true
	set(true)
	t.under = append(t.under, &trouble{name: fmt.Sprint(name, " ", id), end: func() {
		set(false)
		v.busy = false
	}})
}

// cutHosts leaves each host one node that it reaches, or two, whoever leads.
func (t *torment) cutHosts() {
	if t.cut {
		return
	}
	ids := slices.Sorted(maps.Keys(t.nodes))
	var reached []int
	for _, h := range t.hosts {
		if h == t.narrow {
			continue
		}
		none := make([]int, 0, most)
		for i := range most {
			none = append(none, i)
		}
		for range 1 + t.r.IntN(2) {
			id := ids[t.r.IntN(len(ids))]
			reached = append(reached, id)
			none = slices.DeleteFunc(none, func(i int) bool { return i == id-1 })
		}
		reached = append(reached, 0)
		h.cut(none...)
	}
	t.count("hosts cut", reached...)
	t.cut = true
	t.under = append(t.under, &trouble{name: "hosts cut", end: func() {
		for _, h := range t.hosts {
			if h != t.narrow {
				h.cut()
			}
		}
		t.cut = false
	}})
}

// ail is a trouble of a node's disk. The node may end by it, and says why then; it comes back when its disk
// does.
func (t *torment) ail(name string, id int, x fault.Trouble) {
	t.count(name, id)
	v := t.nodes[id]
	v.busy, v.may = true, x.Full || x.Broken
	require.NoError(t, t.disk(id).Say(x))
	t.under = append(t.under, &trouble{name: fmt.Sprint(name, " ", id), end: func() {
		require.NoError(t, t.disk(id).Say(fault.Trouble{}))
		select {
		case <-t.running[id].ended:
			why := syscall.ENOSPC.Error()
			if x.Broken {
				why = fault.ErrDisk.Error()
			}
			require.Contains(t, t.running[id].log.String(), why, "node %d says why it has ended", id)
			t.tally.troubles[name+" and ended"]++
			t.kill(id)
			t.start(id)
		default:
			if x.Full { // it may lack its next file, and end when it wants that
				t.kill(id)
				t.start(id)
			}
		}
		v.busy, v.may = false, false
	}})
}

// flip flips a bit of a slot. That may cost a node the last that it acknowledged, so all others must be there,
// and lead, before it is back.
func (t *torment) flip(id int) {
	t.endAll()
	leader, _ := t.serving()
	t.count("flip", id)
	t.flips[id] = true
	v := t.nodes[id]
	v.busy, v.down = true, true
	t.kill(id)
	t.untilAll("the others go on")
	if leader == 0 {
		leader = 1 + t.r.IntN(3)
	}
	const head, slots, slot = 4096, 8, 64 << 10
	off := head + ((leader-1)*slots+t.r.IntN(slots))*slot + t.r.IntN(32<<10)
	require.NoError(t, t.disk(id).Flip(filepath.Join(string(t.disk(id)), "journal"), off))
	t.start(id)
	v.busy, v.down = false, false
	t.untilAll("the node is back")
}

// forget kills a node, which forgets then when each part of its disk was written.
func (t *torment) forget(id int) {
	t.kill(id)
	at := state.Size(0) + diskLen
	require.NoError(t, t.disk(id).Clear(filepath.Join(string(t.disk(id)), "disk"), at, state.Size(diskLen)-at))
}

// hiccup stops a node until the others have gone on without it. While it gets what it has missed it stops once more, or
// ends, or the one that leads does.
func (t *torment) hiccup(id int) {
	t.endAll()
	pause := func(id int) {
		t.stop(id)
		time.Sleep(time.Duration(300+t.r.IntN(1500)) * time.Millisecond)
		t.goOn(id)
	}
	t.count("hiccup", id)
	v := t.nodes[id]
	v.busy = true
	pause(id)
	time.Sleep(time.Duration(t.r.IntN(150)) * time.Millisecond)
	then := id
	if leader, _ := t.serving(); leader != 0 && t.r.IntN(2) == 0 {
		then = leader
	}
	switch what := t.r.IntN(4); what {
	case 0:
		t.count("hiccup and again", then)
		pause(then)
	case 1, 2:
		t.count("hiccup and end", then)
		if what == 1 {
			t.kill(then)
		} else {
			t.powerless(then)
		}
		t.start(then)
	}
	v.busy = false
}

// untilAll waits until all nodes that are up have what the leader has.
func (t *torment) untilAll(otherwise string) {
	t.eventually(otherwise, func() bool {
		leader, want := t.serving()
		if leader == 0 {
			return false
		}
		for id, v := range t.nodes {
			if v.down {
				continue
			}
			s, err := t.ask(id, node.Command{Do: "status"})
			if err != nil || s.Rotten || s.Applied < want.Applied {
				return false
			}
		}
		return true
	})
}

func (t *torment) transfer(id int) {
	if leader, _ := t.serving(); leader != 0 && leader != id {
		t.count("transfer", id)
		_, _ = t.ask(leader, node.Command{Do: "transfer", ID: uint64(id)}) // it may have lost the lead
	}
}

// replace puts a new node in the place of another.
func (t *torment) replace() {
	if t.next > most {
		return
	}
	t.endAll()
	id, old := t.next, t.victim()
	t.next++
	t.count("replace", old, id)
	t.start(id, "--create", "--join")
	t.nodes[id] = &victim{}
	begun := false
	t.eventually("a new node votes", func() bool {
		leader, s := t.serving()
		switch m, ok := s.Members[uint64(id)]; {
		case leader == 0:
		case ok && !m.Learner:
			return true
		case ok:
			begun = true
			_, _ = t.ask(leader, node.Command{Do: "promote", ID: uint64(id)}) // it says when it can
		default:
			require.False(t, begun, "a member is lost")
			_, _ = t.ask(leader, node.Command{Do: "add", ID: uint64(id), Addr: t.peers[id-1]}) // the same
		}
		return false
	})
	t.eventually("an old node is removed", func() bool {
		leader, s := t.serving()
		if _, ok := s.Members[uint64(old)]; leader != 0 && !ok {
			return true
		}
		if leader != 0 {
			_, _ = t.ask(leader, node.Command{Do: "remove", ID: uint64(old)})
		}
		return false
	})
	t.kill(old)
	delete(t.nodes, old)
}

// conclude ends all nodes, and reads what they logged.
func (t *torment) conclude() {
	t.killAll()
	for _, p := range t.started {
		t.tally.elections += bytes.Count(p.log.Bytes(), []byte("ana=optimized"))
		for _, word := range []string{"panic:", "DATA RACE"} {
			require.NotContains(t, p.log.String(), word, "node %d", p.id)
		}
		if !t.flips[p.id] {
			require.NotContains(t, p.log.String(), "has lost data", "node %d", p.id)
		}
	}
}
