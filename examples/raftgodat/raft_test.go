package raftgodat

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// list is a state machine that keeps the first 8 bytes of what was applied.
type list struct {
	mu  sync.Mutex
	all []uint64
}

func (l *list) Apply(e *raft.Log) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, binary.LittleEndian.Uint64(e.Data))
	return nil
}

func (l *list) values() []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

func (l *list) Snapshot() (raft.FSMSnapshot, error) { return &saved{l.values()}, nil }

func (l *list) Restore(r io.ReadCloser) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.all = nil; len(b) > padding; b = b[8:] {
		l.all = append(l.all, binary.LittleEndian.Uint64(b))
	}
	return nil
}

// padding makes a snapshot have several chunks.
const padding = 3 * chunk

type saved struct{ all []uint64 }

func (s *saved) Persist(sink raft.SnapshotSink) error {
	var b []byte
	for _, v := range s.all {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	_, err := sink.Write(append(b, make([]byte, padding)...))
	if err != nil {
		return err
	}
	return sink.Close()
}
func (s *saved) Release() {}

// node is a raft on a transport.
type node struct {
	*raft.Raft
	list      *list
	transport *Transport
	id        raft.ServerID
}

func newNode(t *testing.T, ia *dat.IA, id raft.ServerID) *node {
	n := &node{list: &list{}, id: id}
	var err error
	n.transport, err = New(t.Context(), ia, ":0", Config{Timeout: 5 * time.Second})
	require.NoError(t, err)
	cfg := raft.DefaultConfig()
	cfg.LocalID, cfg.LogOutput, cfg.TrailingLogs, cfg.SnapshotThreshold = id, io.Discard, 4, 1<<20
	store := raft.NewInmemStore()
	n.Raft, err = raft.NewRaft(cfg, n.list, store, store, raft.NewInmemSnapshotStore(), n.transport)
	require.NoError(t, err)
	t.Cleanup(n.stop)
	return n
}

// stop shuts the node down, which closes its transport.
func (n *node) stop() { _ = n.Shutdown().Error() }

// apply applies values at the leader, whichever node that is, each in an entry of another size.
func apply(t *testing.T, nodes []*node, from, to uint64) {
	t.Helper()
	for v := from; v < to; v++ {
		data := make([]byte, 8+v%5*40_000)
		binary.LittleEndian.PutUint64(data, v)
		require.Eventually(t, func() bool {
			return leader(nodes) != nil && leader(nodes).Apply(data, 10*time.Second).Error() == nil
		}, patience, time.Millisecond)
	}
}

func leader(nodes []*node) *node {
	for _, n := range nodes {
		if n.State() == raft.Leader {
			return n
		}
	}
	return nil
}

func TestARaftOfThreeNodesKeepsWhatItAppliedWhenTheLeaderEnds(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		var nodes []*node
		var servers []raft.Server
		for i := range 3 {
			n := newNode(t, ia, raft.ServerID(fmt.Sprint("node", i)))
			nodes, servers = append(nodes, n), append(servers, raft.Server{ID: n.id, Address: n.transport.LocalAddr()})
		}
		require.NoError(t, nodes[0].BootstrapCluster(raft.Configuration{Servers: servers}).Error())
		apply(t, nodes, 0, 30)

		first := leader(nodes)
		first.stop()
		rest := slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return n == first })
		apply(t, rest, 30, 60)

		// A node that comes now needs the snapshot.
		late := newNode(t, ia, "late")
		atLeader := func(do func(n *node) raft.Future) {
			require.Eventually(t, func() bool { n := leader(rest); return n != nil && do(n).Error() == nil }, patience, time.Millisecond)
		}
		atLeader(func(n *node) raft.Future { return n.Snapshot() })
		atLeader(func(n *node) raft.Future { return n.AddVoter(late.id, late.transport.LocalAddr(), 0, patience) })
		atLeader(func(n *node) raft.Future { return n.LeadershipTransfer() })
		rest = append(rest, late)
		apply(t, rest, 60, 70)
		var want []uint64
		require.Eventually(t, func() bool { // an attempt to apply that seemed to fail may have gone well
			want = rest[0].list.values()
			return slices.Contains(want, 69) && !slices.ContainsFunc(rest, func(n *node) bool { return !slices.Equal(want, n.list.values()) })
		}, patience, time.Millisecond, "all have the same")
		assert.Subset(t, want, []uint64{0, 29, 30, 59, 60, 69})
		for _, n := range rest {
			n.stop()
		}
	})
}
