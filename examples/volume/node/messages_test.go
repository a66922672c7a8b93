package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"godat/runtime/rpc"
)

// beat is a heartbeat of node 2's.
func beat() *pb.Message {
	return &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(1))}
}

func TestMessagesOfACallArriveInTheirOrder(t *testing.T) {
	b := (&site{cfg: Config{ID: 2}}).note(1)
	for term := range uint64(3) {
		m := beat()
		m.Term = new(term + 1)
		var err error
		b, err = appendMessage(b, m)
		require.NoError(t, err)
		b, err = appendMessage(b, justNote)
		require.NoError(t, err)
	}
	x, messages, err := parseMessages(b, 2, 1)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), x.from)
	require.Len(t, messages, 3)
	for i, m := range messages {
		assert.Equal(t, uint64(i+1), m.GetTerm())
	}
	for short := range b {
		_, got, err := parseMessages(b[:short], 2, 1)
		if err == nil {
			require.Less(t, len(got), 3)
		}
	}
	for name, call := range map[string]struct{ from, to uint64 }{"another caller": {3, 1}, "another node": {2, 3}} {
		_, _, err := parseMessages(b, call.from, call.to)
		assert.ErrorIs(t, err, errNote, name)
	}
}

func TestAnAppendThatIsFullHasRoomInACall(t *testing.T) {
	const high = 1 << 60 // numbers that are long
	for _, data := range []int{24, 64, 24 + 512, 24 + 4<<10, 24 + smallest - 512} {
		size, m := 0, beat()
		m.Type, m.Term, m.Index, m.LogTerm, m.Commit = pb.MsgApp.Enum(), new(uint64(high)), new(uint64(high)), new(uint64(high)), new(uint64(high))
		for {
			e := &pb.Entry{Type: pb.EntryNormal.Enum(), Index: new(uint64(len(m.Entries) + 1)), Term: new(uint64(1)), Data: make([]byte, data)}
			if size += proto.Size(e); size > mostAppend {
				break // as the engine counts
			}
			m.Entries = append(m.Entries, e)
		}
		b, err := appendMessage((&site{cfg: Config{ID: 2}}).note(1), m)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(b), mostMessage, "entries of %d bytes", data)
		assert.Greater(t, len(m.Entries), mostMessage/2/max(data, 48), "entries of %d bytes: more than half of a call is theirs", data)
	}
}

func FuzzMessages(f *testing.F) {
	b, err := appendMessage((&site{cfg: Config{ID: 2}}).note(1), beat())
	require.NoError(f, err)
	f.Add(b)
	f.Add(append(b, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, messages, err := parseMessages(b, 0, 1)
		if err != nil {
			return
		}
		for _, m := range messages {
			assert.Equal(t, x.from, m.GetFrom())
			assert.Equal(t, uint64(1), m.GetTo())
		}
	})
}

func TestMessagesThatFindNoRoomInACallGoInTheNext(t *testing.T) {
	f := newFollower(t)
	const messages = 9
	require.True(t, f.ask(f.events, func() {
		for i := range uint64(messages) {
			require.True(t, f.consensus.lanes.send(&pb.Message{
				Type: pb.MsgApp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(1)), Index: new(i),
				Entries: []*pb.Entry{{Index: new(i + 1), Term: new(uint64(1)), Data: make([]byte, mostMessage*2/5)}},
			}))
		}
	}))
	for i := range uint64(messages) {
		_, m := f.answers(pb.MsgApp)
		require.Equal(t, i, m.GetIndex())
	}
}

// kinds are those of the messages of an answer.
func kinds(t *testing.T, answer []byte) (of []pb.MessageType) {
	t.Helper()
	_, messages, err := parseMessages(answer, 1, 2)
	require.NoError(t, err)
	for _, m := range messages {
		of = append(of, m.GetType())
	}
	return of
}

func TestACallBringsItsAnswersBack(t *testing.T) {
	f := newHolder(t, time.Hour)
	close(f.slots.open)
	answer, err := f.call(f.write(2, 1, 1, 4, 0xa1), f.write(2, 1, 2, 5, 0xa2))
	require.NoError(t, err)
	assert.Equal(t, []pb.MessageType{pb.MsgAppResp, pb.MsgAppResp}, kinds(t, answer))
	answer, err = f.call(beat())
	require.NoError(t, err)
	assert.Equal(t, []pb.MessageType{pb.MsgHeartbeatResp}, kinds(t, answer))
}

func TestAHeartbeatIsAnsweredWhileTheDiskIsWritten(t *testing.T) {
	f := newHolder(t, time.Hour)
	appended := make(chan []byte)
	go func() {
		defer close(appended)
		answer, err := f.call(f.write(2, 1, 1, 4, 0xa1))
		assert.NoError(t, err)
		appended <- answer
	}()
	<-f.slots.flushing
	answer, err := f.call(beat())
	require.NoError(t, err)
	assert.Equal(t, []pb.MessageType{pb.MsgHeartbeatResp}, kinds(t, answer))
	close(f.slots.open)
	assert.Equal(t, []pb.MessageType{pb.MsgAppResp}, kinds(t, <-appended))
}

func TestAnAnswerThatIsLateGoesByItself(t *testing.T) {
	f := newFollower(t)
	answer, err := f.call(f.write(2, 1, 1, 4, 0xa1))
	require.NoError(t, err)
	assert.Empty(t, kinds(t, answer), "the slot is not stable")
	close(f.slots.open)
	_, m := f.answers(pb.MsgAppResp)
	assert.Equal(t, uint64(1), m.GetIndex())
}

func TestAnswersToACallThatIsRefusedGoByThemselves(t *testing.T) {
	f := newHolder(t, time.Hour)
	close(f.slots.open)
	rotten := f.write(2, 1, 2, 5, 0xa2)
	f.memory[f.journal.Offset(5)]++
	_, err := f.call(f.write(2, 1, 1, 4, 0xa1), rotten)
	var refusal *rpc.Error
	require.ErrorAs(t, err, &refusal)
	require.ErrorIs(t, err, errGone)
	_, m := f.answers(pb.MsgAppResp)
	assert.Equal(t, uint64(1), m.GetIndex())
}

func TestACallThatGoesTakesWhatIsThere(t *testing.T) {
	var q holds
	ask, answer := &pb.Message{Type: pb.MsgApp.Enum()}, &pb.Message{Type: pb.MsgAppResp.Enum(), To: new(uint64(2))}
	h := newHold(2, []*pb.Message{ask, ask})
	q = append(q, h)
	require.True(t, q.give(answer))
	assert.Equal(t, []*pb.Message{answer}, q.take(h))
	assert.False(t, q.give(answer), "nobody waits")
	h = newHold(2, []*pb.Message{ask})
	q = append(q, h)
	require.True(t, q.give(answer))
	assert.Empty(t, q)
	assert.Equal(t, []*pb.Message{answer}, q.take(h), "it has all")
	assert.Nil(t, newHold(2, []*pb.Message{answer}), "nothing to wait for")
}
