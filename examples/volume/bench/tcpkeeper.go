package main

import (
	"errors"
	"log/slog"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"godat/examples/volume/entry"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/replica"
)

var discard = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)

// send sends a message, or loses it.
func (n *tcpNode) send(m *pb.Message) {
	select {
	case n.peers[m.GetTo()] <- m:
	default:
		n.raft.ReportUnreachable(m.GetTo())
	}
}

// abdicate answers all writes.
func (n *tcpNode) abdicate() {
	for _, x := range n.named {
		x.done <- errTCP
	}
	for _, done := range n.proposed {
		done <- errTCP
	}
	n.named, n.proposed = nil, nil
}

// answer takes the answers of the keeper.
func (n *tcpNode) answer(responses []*pb.Message) {
	for _, m := range responses {
		if m.GetTo() == n.id {
			_ = n.raft.Step(m) // refused is lost
		} else {
			n.send(m)
		}
	}
}

// keep is the goroutine of the replica.
func (n *tcpNode) keep() {
	for {
		select {
		case <-n.ctx.Done():
			return
		case f := <-n.jobs:
			f()
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err) // a measurement is void
	}
}

// keepAll keeps all that waits, like a volume's keeper.
func (n *tcpNode) keepAll() {
	for {
		x, ok := n.appends.Take()
		if !ok {
			return
		}
		n.keepAppend(x)
	}
}

func (n *tcpNode) keepAppend(x raftlog.Append) {
	if x.Vote != nil {
		must(n.log.SetVote(*x.Vote))
	}
	var records []replica.Record
	for _, e := range x.Entries {
		records = append(records, replica.Record{Index: e.GetIndex(), Term: e.GetTerm(), Data: e.Data})
	}
	must(n.replica.Accept(records))
	n.put(n.events, func() { n.answer(x.Responses) })
}

func (n *tcpNode) keepApply(m *pb.Message) {
	index := m.GetEntries()[len(m.GetEntries())-1].GetIndex()
	must(n.replica.Apply(index))
	n.put(n.events, func() {
		n.answer(m.GetResponses())
		for len(n.named) != 0 && n.named[0].index <= index {
			n.named[0].done <- nil
			n.named = n.named[1:]
		}
	})
}

// keptBack is how many records a node keeps for another one that is behind.
const keptBack = 256

// release makes the disk stable, and gives up records that nobody needs.
func (n *tcpNode) release() {
	index, err := n.replica.Release()
	must(err)
	n.put(n.events, func() {
		n.raft.WithProgress(func(_ uint64, _ raft.ProgressType, p tracker.Progress) {
			if n.raft.BasicStatus().RaftState == raft.StateLeader {
				index = min(index, p.Match)
			}
		})
		n.log.SetFloor(index - min(index, keptBack))
	})
	must(n.log.Trim())
}

// writer implements commits.
func (n *tcpNode) writer() func(off int, data []byte) error {
	done := make(chan error, 1)
	return func(off int, data []byte) error {
		e := entry.Entry{Op: entry.Small, Off: uint64(off), Len: uint32(len(data)), Data: data}.Sealed(data)
		b := e.Append(nil)
		n.put(n.events, func() {
			if err := n.raft.Propose(b); err != nil {
				done <- err
				return
			}
			n.proposed = append(n.proposed, done)
		})
		select {
		case err := <-done:
			return err
		case <-n.ctx.Done():
			return errTCP
		}
	}
}

func (n *tcpNode) status() (leads bool, term uint64) {
	done := make(chan struct{})
	n.put(n.events, func() {
		s := n.raft.BasicStatus()
		leads, term = s.RaftState == raft.StateLeader, s.GetTerm()
		close(done)
	})
	<-done
	return leads, term
}

// rebuilt implements commits: such a node does not come back.
func (n *tcpNode) rebuilt() (times, bytes int) { return 0, 0 }

// whole implements commits.
func (n *tcpNode) whole() bool { return true }

func (n *tcpNode) close() error {
	n.end()
	err := n.listener.Close()
	n.tasks.Wait()
	return errors.Join(err, n.closeFiles())
}

// tcpStorage is what the engine of a node on TCP reads.
type tcpStorage struct {
	*raftlog.Log
}

// InitialState implements raft.Storage.
func (s tcpStorage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	return &pb.HardState{}, &pb.ConfState{Voters: slices.Sorted(maps.Keys(s.Members()))}, nil
}

// Snapshot implements raft.Storage.
func (s tcpStorage) Snapshot() (*pb.Snapshot, error) {
	return nil, raft.ErrSnapshotTemporarilyUnavailable
}
