package node

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"godat/examples/nvmeof/identity"
	"godat/runtime/rpc"
)

// saying is a call with a note that a test has changed.
func (f *follower) saying(change func(*note), method uint16, rest []byte) error {
	x, _, err := parseNote(f.noteOf(2))
	require.NoError(f, err)
	change(&x)
	_, err = f.client.Call(f.Context(), rpc.Call{Method: method, Payload: append(x.append(nil), rest...), SinkBytes: make([]byte, 4096)}, nil)
	return err
}

func TestNothingOfAStrangerIsTakenAndARefusalSaysWhy(t *testing.T) {
	f := newFollower(t)
	require.NoError(t, f.log.SetGone(3))
	members := f.log.Members()
	delete(members, 3)
	require.NoError(t, f.log.SetMembers(members))
	heartbeat, err := appendMessage(nil, &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(7))})
	require.NoError(t, err)
	offset := make([]byte, 8)
	for name, x := range map[string]struct {
		change func(*note)
		why    string
	}{
		"another volume":   {func(x *note) { x.volume = identity.New() }, "of volume"},
		"another version":  {func(x *note) { x.version = wireVersion + 1 }, "versions"},
		"no version":       {func(x *note) { x.magic = 2 }, "versions"},
		"another receiver": {func(x *note) { x.to = 2 }, "means node 2"},
		"itself":           {func(x *note) { x.from = 1 }, "both are node 1"},
		"no node":          {func(x *note) { x.from = 9 }, "no node 9"},
		"a removed node":   {func(x *note) { x.from = 3 }, "was removed"},
		"other options":    {func(x *note) { x.terms[0]++ }, "options"},
	} {
		for method, rest := range map[uint16][]byte{methodMessage: heartbeat, methodSnapshot: nil, methodChunk: offset} {
			err := f.saying(x.change, method, rest)
			require.ErrorIs(t, err, errStranger, "%s, method %d", name, method)
			require.ErrorContains(t, err, x.why, name)
		}
	}
	s := f.Status()
	assert.Zero(t, s.Term)
	assert.Zero(t, f.log.Vote().Term)
	assert.NotEmpty(t, s.Refusals)
	for _, r := range s.Refusals {
		assert.True(t, r.Here)
	}
	require.NoError(t, f.saying(func(*note) {}, methodMessage, heartbeat))
}

func TestARefusalIsThatOfTheVersionBeforeIfItNamesTheMethodAlone(t *testing.T) {
	f := newFollower(t)
	require.ErrorIs(t, f.saying(func(*note) {}, 99, nil), noMethod(99))
	err := f.saying(func(*note) {}, methodHealth, []byte("no JSON"))
	require.Error(t, err)
	require.NotErrorIs(t, err, noMethod(methodHealth))
}

func TestATermThatNoElectionCameToIsNotKept(t *testing.T) {
	f := newFollower(t)
	for _, term := range []uint64{math.MaxUint64, 1 << 63, 2 + mostTerms} {
		m := beat()
		m.Term = new(term)
		require.ErrorIs(t, f.say(m), errStranger)
	}
	require.Zero(t, f.Status().Term)
	m := beat()
	m.Term = new(uint64(mostTerms))
	require.NoError(t, f.say(m))
	f.answers(pb.MsgHeartbeatResp)
	require.Equal(t, uint64(mostTerms), f.Status().Term)
}

func TestMessagesThatNoEngineSendsAreMalformed(t *testing.T) {
	entries := func(all ...*pb.Entry) *pb.Message {
		return &pb.Message{Type: pb.MsgApp.Enum(), Term: new(uint64(2)), Index: new(uint64(4)), LogTerm: new(uint64(1)), Entries: all}
	}
	at := func(index, term uint64) *pb.Entry { return &pb.Entry{Index: new(index), Term: new(term)} }
	for name, m := range map[string]*pb.Message{
		"a proposal":        {Type: pb.MsgProp.Enum(), Term: new(uint64(1))},
		"a message to self": {Type: pb.MsgHup.Enum(), Term: new(uint64(1))},
		"no term":           {Type: pb.MsgHeartbeat.Enum()},
		"a gap":             entries(at(6, 1)),
		"a term that falls": entries(at(5, 2), at(6, 1)),
		"a term to come":    entries(at(5, 3)),
	} {
		assert.False(t, sound(m), name)
	}
	assert.True(t, sound(entries(at(5, 1), at(6, 2))))
}

func TestWhatNobodyHasSentIsNotAcknowledged(t *testing.T) {
	c := newTrio(t, nil)
	leader := c.leader(nil)
	require.NoError(t, leader.Device().Zero(0, 4096))
	s := leader.Status()
	require.True(t, leader.ask(leader.events, func() {
		leader.consensus.step(&pb.Message{
			Type: pb.MsgAppResp.Enum(), From: new(leader.cfg.ID%3 + 1), To: new(leader.cfg.ID), Term: new(s.Term), Index: new(s.Last + 1000),
		})
	}))
	require.NoError(t, leader.Device().Zero(0, 4096))
	after := leader.Status()
	for _, p := range after.Replicas {
		assert.Less(t, p.Match, s.Last+1000)
	}
	require.Len(t, after.Refusals, 1, "status says it")
	assert.Contains(t, after.Refusals[0].Why, "which nobody has sent")
	assert.Equal(t, leader.cfg.ID%3+1, after.Refusals[0].Node)
}

func TestAHelloNamesWhatDiffers(t *testing.T) {
	f := newFollower(t)
	terms := Terms{All: append([]Term{}, f.terms.All...)}
	terms.All[1].Value = "32"
	b, err := json.Marshal(terms)
	require.NoError(t, err)
	err = f.saying(func(x *note) { x.terms = terms.digest() }, methodHello, b)
	require.ErrorIs(t, err, errStranger)
	require.ErrorContains(t, err, "slots: 4 here, 32 there")
	b, err = json.Marshal(f.terms)
	require.NoError(t, err)
	require.NoError(t, f.saying(func(*note) {}, methodHello, b))

	founder := Terms{Founding: []Term{{"peers", "1=a"}}}
	assert.NotEmpty(t, founder.Differences(&Terms{Founding: []Term{{"peers", "1=b"}}}))
	assert.Empty(t, founder.Differences(&Terms{}), "a node that was added knows other peers")
}

func TestACommandForAnotherVolumeIsRefused(t *testing.T) {
	f := newFollower(t)
	for _, volume := range []string{"", identity.New().String()} {
		b, err := json.Marshal(Command{Do: "remove", ID: 2, Volume: volume})
		require.NoError(t, err)
		_, err = f.client.Call(t.Context(), rpc.Call{Method: methodAdmin, Payload: b}, nil)
		require.ErrorIs(t, err, errStranger)
	}
	b, err := json.Marshal(Command{Do: "remove", ID: 2, Volume: f.Status().Volume})
	require.NoError(t, err)
	_, err = f.client.Call(t.Context(), rpc.Call{Method: methodAdmin, Payload: b}, nil)
	require.ErrorIs(t, err, ErrNotNow)
}

func TestACallOfAnEarlierProgramIsRefused(t *testing.T) {
	f := newFollower(t)
	b := append(binary.LittleEndian.AppendUint64(nil, 2), make([]byte, 17)...) // its note
	_, err := f.client.Call(t.Context(), rpc.Call{Method: methodMessage, Payload: b}, nil)
	require.ErrorIs(t, err, errStranger)
	require.ErrorContains(t, err, "versions")
	require.Len(t, f.log.Members(), 3)
}

// The right node's calls come between those of a stranger of its id.
func TestARefusalIsNewsOnce(t *testing.T) {
	var q refusals
	x, now := refusedBy{node: 2, addr: "10.0.0.2", why: "of another volume", here: true}, time.Now()
	require.True(t, q.note(x, now))
	for range 1000 {
		now = now.Add(time.Second)
		require.False(t, q.note(x, now))
	}
	require.Len(t, q.list(now), 1)
	require.Empty(t, q.list(now.Add(refusalHolds+1)), "it holds no more")
	require.True(t, q.note(x, now.Add(2*refusalHolds)))
	for i := range uint64(10 * mostRefusals) {
		q.note(refusedBy{node: i}, now)
	}
	require.Len(t, q.list(now), mostRefusals)
}
