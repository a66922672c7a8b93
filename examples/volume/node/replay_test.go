package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// A node that was killed applies changes of the members once more, which it has kept already.
func TestAChangeThatIsAppliedOnceMoreDemotesNobody(t *testing.T) {
	f := follows(t)
	var entries []*pb.Entry
	change := func(kind pb.ConfChangeType, id uint64) *pb.Entry {
		b, err := proto.Marshal(&pb.ConfChange{Type: kind.Enum(), NodeId: new(id), Context: []byte("somewhere")})
		require.NoError(t, err)
		return &pb.Entry{Type: pb.EntryConfChange.Enum(), Data: b}
	}
	members := f.log.Members()
	delete(members, 3)
	require.NoError(t, f.log.SetMembers(members))
	require.True(t, f.log.Gone(3))
	for _, id := range []uint64{2, 3} {
		entries = append(entries, change(pb.ConfChangeAddLearnerNode, id))
	}
	entries = append(entries, change(pb.ConfChangeAddNode, 3))
	var changes []*pb.ConfChange
	require.True(t, f.ask(f.keeper.jobs, func() {
		var err error
		changes, err = f.keeper.changeMembers(entries)
		assert.NoError(t, err)
	}))
	assert.Equal(t, members, f.log.Members())
	require.Len(t, changes, 3)
	for _, c := range changes {
		assert.Equal(t, raft.None, c.GetNodeId(), "nor does the engine change anything")
	}
}
