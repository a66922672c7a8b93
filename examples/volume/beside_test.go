package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"godat/examples/volume/fault"
	"godat/examples/volume/node"
)

// neighbor is a volume beside the one that is tormented, of which nothing may ever be in the other.
type neighbor struct {
	*cluster
	content *content
}

// newNeighbour starts another volume.
func (t *torment) newNeighbour(seed uint64) {
	n := &neighbor{cluster: newCluster(t.TB)}
	n.newProxy()
	n.three()
	n.leader()
	n.content = &content{h: n.host(), r: rand.New(rand.NewPCG(seed, 101))}
	t.proxy.beside, n.proxy.beside = n.proxy, t.proxy
	t.beside = n
}

// goOn writes to the neighbor while its volume is tormented with the other one.
func (n *neighbor) goOn() {
	if n != nil {
		n.content.write(2)
	}
}

// holds reads all that the neighbor was to keep.
func (n *neighbor) holds() {
	if n != nil {
		n.content.read()
		n.same()
	}
}

// mixUp begins a trouble between two volumes at a node of each, which have the same id: one at a time.
func (t *torment) mixUp(id int) {
	if id > 3 || slices.ContainsFunc(t.under, func(x *trouble) bool { return x.mixed }) {
		return
	}
	under := len(t.under)
	t.mix(id)
	for _, x := range t.under[min(under, len(t.under)):] {
		x.mixed = true
	}
}

func (t *torment) mix(id int) {
	switch t.r.IntN(6) {
	case 0:
		t.exchangeAddresses(id)
	case 1:
		t.exchangeDirectories(id)
	case 2:
		t.oldCopy(id)
	case 3:
		t.otherOptions(id)
	case 4:
		t.formerVolume(id)
	default:
		t.letStrangersCall()
	}
}

// exchangeAddresses lets who calls a node of one volume reach that of the other.
func (t *torment) exchangeAddresses(id int) {
	exchange := func(yes bool) {
		for _, p := range []*proxy{t.proxy, t.beside.proxy} {
			p.exchange(id, yes)
			p.reset(id)
		}
	}
	t.last("addresses exchanged", id, func() { exchange(true) }, func() { exchange(false) })
	t.nodes[id].down = false
}

// exchangeDirectories gives the machine of a node of each volume the other's directory.
func (t *torment) exchangeDirectories(id int) {
	exchange := func() {
		ours, theirs := t.disk(id), t.beside.disk(id)
		t.kill(id)
		t.beside.kill(id)
		t.move(ours, ours+".x")
		t.move(theirs, ours)
		t.move(ours+".x", theirs)
		t.start(id)
		t.beside.start(id)
	}
	t.last("directories exchanged", id, exchange, exchange)
}

// move moves a directory, and what is stable of it.
func (t *torment) move(from, to fault.Disk) {
	require.NoError(t, os.Rename(string(from), string(to)))
	require.NoError(t, os.Rename(from.Stable(), to.Stable()))
}

// oldCopy gives a node an older copy of its directory. It has forgotten what it has acknowledged since, so all others must
// be there, and lead, before it is back.
func (t *torment) oldCopy(id int) {
	t.endAll()
	t.count("old copy", id)
	t.flips[id] = true
	v := t.nodes[id]
	v.busy, v.down = true, true
	dir := t.disk(id)
	old := dir + ".old"
	t.kill(id)
	require.NoError(t, os.CopyFS(string(old), os.DirFS(string(dir))))
	require.NoError(t, os.CopyFS(old.Stable(), os.DirFS(dir.Stable())))
	t.start(id)
	v.down = false
	t.untilAll("the node is back")
	v.down = true
	t.kill(id)
	t.untilAll("the others go on")
	require.NoError(t, os.RemoveAll(string(dir)))
	require.NoError(t, os.RemoveAll(dir.Stable()))
	t.move(old, dir)
	t.start(id)
	v.down = false
	t.untilAll("the node is back, of an old copy")
	v.busy = false
}

// otherOptions gives a node another tick.
func (t *torment) otherOptions(id int) {
	t.endAll()
	t.last("other options", id, func() {
		t.kill(id)
		t.start(id, "--tick=150ms")
		t.says(t.cluster, id, "tick")
	}, func() {
		t.kill(id)
		t.start(id, "--tick=100ms")
	})
}

// says waits until a node says of another one what differs.
func (t *torment) says(c *cluster, id int, what string) {
	t.eventually("no refusal says "+what, func() bool {
		s, err := c.ask(id, node.Command{Do: "status"})
		return err == nil && slices.ContainsFunc(s.Refusals, func(r node.Refusal) bool { return strings.Contains(r.Why, what) })
	})
}

// formerVolume has the address of a node be that of one of another volume, as that of one which was there before.
func (t *torment) formerVolume(id int) {
	former := &cluster{TB: t.TB, ia: t.ia, between: t.between, dir: filepath.Join(t.dir, fmt.Sprint("former", t.next, len(t.started))), peers: t.peers, listens: t.listens, token: newToken(1), running: make(map[int]*process)}
	require.NoError(t, os.Mkdir(former.dir, 0o700))
	t.endAll()
	t.last("former volume", id, func() {
		t.kill(id)
		former.start(id, "--create")
		t.says(former, id, "volume")
	}, func() {
		former.kill(id)
		t.start(id)
	})
}

// letStrangersCall lets strangers call the nodes of both volumes.
func (t *torment) letStrangersCall() {
	t.count("strangers")
	s := &strangers{volumes: [2]*cluster{t.cluster, t.beside.cluster}, r: rand.New(rand.NewPCG(t.r.Uint64(), 102))}
	both := func(s *strangers) {
		for _, c := range []*cluster{t.cluster, t.beside.cluster} {
			c.proxy.lets(s)
		}
	}
	both(s)
	ended := make(chan struct{})
	var calling sync.WaitGroup
	calling.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				s.call()
			}
		}
	})
	t.under = append(t.under, &trouble{name: "strangers", end: func() {
		close(ended)
		calling.Wait()
		both(nil)
	}})
}
