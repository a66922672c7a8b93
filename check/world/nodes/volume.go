// Package nodes is a program of the seeded world: volumes of three to five nodes whose writers and clients go on while
// nodes are stopped, lose power, have slow or full disks or flipped bits, members change, and the network between them has
// troubles, a host is cut off from some, and a stranger speaks as a node; beside one there may be another, one of whose nodes
// knows a wrong address.
package nodes

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"godat/check/world/program"
	"godat/examples/volume/raftlog"
)

// Name is that of the program.
const Name = "volume"

// Volume is the program. Its rounds are two seconds each.
type Volume struct{ program.Size }

// Named returns the program, for program.Main.
func Named(name string, size program.Size) (program.Program, error) {
	if name != Name {
		return nil, fmt.Errorf("no program %q: %s", name, Name)
	}
	return Volume{size}, nil
}

// Run runs the program.
func (p Volume) Run(w *program.World) error {
	draw, pace := w.Draw(500), cmp.Or(p.Pause, 400*time.Millisecond)
	beside := draw.IntN(2)
	first, err := found(w, 0, 3+beside+draw.IntN(3-beside), pace, nil)
	if err != nil {
		return err
	}
	all := []*volume{first}
	if beside == 1 {
		second, err := found(w, 2, 3, pace, first.mistaken)
		if err != nil {
			return err
		}
		second.lame = true
		all = append(all, second)
	}
	until := time.Now().Add(time.Duration(p.Rounds) * 2 * time.Second)
	var working sync.WaitGroup
	for i, v := range all {
		v.busy(&working, writers-2*i, 2-i, until)
	}
	working.Go(func() { p.troubles(w, all) })
	working.Wait()
	for _, v := range all {
		if v.settle(settled) {
			v.judge()
		}
	}
	for _, v := range all {
		v.end()
	}
	return nil
}

// mistaken is what nodes of another volume are told by mistake: that a further one of theirs is where the last one of this
// volume is.
func (v *volume) mistaken(peers raftlog.Members) {
	wrong := v.all[len(v.all)-1]
	peers[wrong.id] = raftlog.Member{Addr: wrong.addr}
}
