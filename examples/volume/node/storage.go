package node

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
)

// storage is what the engine reads.
type storage struct {
	*raftlog.Log
	disk *state.Disk
}

// InitialState implements raft.Storage.
func (s *storage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	v := s.Vote()
	applied, _ := s.disk.Applied()
	return &pb.HardState{Term: new(v.Term), Vote: new(v.For), Commit: new(applied)}, confState(s.Members()), nil
}

// Snapshot implements raft.Storage. The data of a snapshot goes another way.
func (s *storage) Snapshot() (*pb.Snapshot, error) {
	index, term := s.disk.Applied()
	return &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(index), Term: new(term), ConfState: confState(s.Members())}}, nil
}

func confState(all raftlog.Members) *pb.ConfState {
	cs := new(pb.ConfState)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if all[id].Learner {
			cs.Learners = append(cs.Learners, id)
		} else {
			cs.Voters = append(cs.Voters, id)
		}
	}
	return cs
}

// quiet is a raft.Logger that tells a logger of what is worth it.
type quiet struct{ to *slog.Logger }

var _ raft.Logger = quiet{}

func (q quiet) Debug(...any)                {}
func (q quiet) Debugf(string, ...any)       {}
func (q quiet) Info(v ...any)               { q.to.Debug(fmt.Sprint(v...)) }
func (q quiet) Infof(f string, v ...any)    { q.to.Debug(fmt.Sprintf(f, v...)) }
func (q quiet) Warning(v ...any)            { q.to.Warn(fmt.Sprint(v...)) }
func (q quiet) Warningf(f string, v ...any) { q.to.Warn(fmt.Sprintf(f, v...)) }
func (q quiet) Error(v ...any)              { q.to.Error(fmt.Sprint(v...)) }
func (q quiet) Errorf(f string, v ...any)   { q.to.Error(fmt.Sprintf(f, v...)) }
func (q quiet) Fatal(v ...any)              { panic(fmt.Sprint(v...)) }
func (q quiet) Fatalf(f string, v ...any)   { panic(fmt.Sprintf(f, v...)) }
func (q quiet) Panic(v ...any)              { panic(fmt.Sprint(v...)) }
func (q quiet) Panicf(f string, v ...any)   { panic(fmt.Sprintf(f, v...)) }
