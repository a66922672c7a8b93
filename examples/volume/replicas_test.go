package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
)

func TestAReplicasLineSaysItsCauseFirstAndWhatToDo(t *testing.T) {
	slow := &node.Self{Disk: node.Takes{Longest: 4 * time.Second, Ago: 9 * time.Second}, Runs: 30 * time.Second}
	for want, p := range map[string]node.Progress{
		"": {},
		"nothing has been heard of it for 3 s: it does not answer; open its page: if that opens, the network between is cut; else its process is stopped, or its host": {
			Silent: true, Missed: node.Missed{For: 3 * time.Second, Why: "it does not answer"},
		},
		"nothing is heard of it: its process has ended (nobody listens there); start it, and see in its log why": {
			Silent: true, Missed: node.Missed{Why: "nobody listens there", Ended: true},
		},
		"it answers nothing that the leader sends, though it calls; look at its page, and at its disk": {
			Silent: true, Missed: node.Missed{For: time.Second},
		},
		"its disk is slow: a write took 4 s to be stable, 9 s ago; the replica is out, 7 records behind; look what else writes to that disk, and whether it fails": {
			Out: true, Behind: 7, Self: slow,
		},
		"its disk is slow: a write took 4 s to be stable, 9 s ago; it came back 10 s ago, started anew, after 25 s away, and has all that is written; look what else writes to that disk, and whether it fails": {
			Back: 10 * time.Second, Away: 25 * time.Second, Self: slow,
		},
		"it came back 10 s ago, after 5 s away, and is 1 record behind": {Back: 10 * time.Second, Away: 5 * time.Second, Behind: 1},
	} {
		s := &node.Status{
			ID: 1, Leader: 2, Members: raftlog.Members{1: {Addr: "a"}, 2: {Addr: "b"}, 3: {Addr: "c"}},
			Told: map[uint64]node.Progress{3: p}, Others: map[uint64]node.Other{3: {Page: "http://c/"}},
		}
		r := newReplicaRow(3, s)
		assert.Equal(t, "node 3 (its page http://c/)", r.Replica)
		assert.Equal(t, want, r.Trouble(time.Second))
	}
}

func TestWhatNobodyHasSaidOfAReplicaIsUnknown(t *testing.T) {
	s := &node.Status{ID: 1, Leader: 2, Last: 7, Members: raftlog.Members{1: {Addr: "a"}, 2: {Addr: "b"}, 3: {Addr: "c"}}}
	for id, has := range map[uint64]string{1: "7", 2: "unknown", 3: "unknown"} {
		r := newReplicaRow(id, s)
		assert.Equal(t, has, r.Has)
		assert.Equal(t, "unknown", r.Lag)
	}
	s.Told = map[uint64]node.Progress{3: {Match: 5}}
	r := newReplicaRow(3, s)
	assert.Equal(t, []string{"5", "0"}, []string{r.Has, r.Lag})
}

func TestANodesPageIsTheURLByWhichTheOthersOpenIt(t *testing.T) {
	for _, x := range [][3]string{
		{"http://0.0.0.0:6060/", "10.0.0.2:7000", "http://10.0.0.2:6060/"},
		{"http://[::]:6060/", "db2:7000", "http://db2:6060/"},
		{"http://10.1.0.2:6060/", "10.0.0.2:7000", "http://10.1.0.2:6060/"},
		{"http://127.0.0.1:6060/", "10.0.0.2:7000", ""},
		{"http://127.0.0.1:6060/", "127.0.0.1:7000", "http://127.0.0.1:6060/"},
		{"", "10.0.0.2:7000", ""},
	} {
		assert.Equal(t, x[2], pageFor(x[0], x[1]), x)
	}
}
