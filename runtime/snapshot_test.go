package runtime

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// snapshot describes an adapter, by way of JSON: what a page gets.
func snapshot(t testing.TB, ia *IA) (s Snapshot) {
	t.Helper()
	now, err := ia.Snapshot()
	require.NoError(t, err)
	text, err := json.Marshal(now)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &s))
	return s
}

// described finds a connection in a snapshot.
func described(t testing.TB, ia *IA, c *Conn) ConnSnapshot {
	t.Helper()
	for _, s := range snapshot(t, ia).Conns {
		if s.ID == c.ID() {
			return s
		}
	}
	require.Fail(t, "no such connection")
	return ConnSnapshot{}
}

// movedBy finds what operations of a kind moved.
func movedBy(q ep.QueueSnapshot, kind hw.Op) ep.Moved {
	for _, m := range q.Moved {
		if m.Kind == kind.String() {
			return m
		}
	}
	return ep.Moved{}
}

func TestASnapshotHasEachConnectionAndWhatItMoved(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			ia := open(t, provider)
			l, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 100})
			for range 3 {
				say(t, client, strings.Repeat("x", 70))
				hear(t, server)
			}
			want := ep.Moved{Kind: hw.OpSend.String(), Operations: 3, Octets: 210}
			require.Eventually(t, func() bool {
				return movedBy(described(t, ia, client).Endpoint.Requests, hw.OpSend) == want
			}, patience, time.Millisecond, "the last send completes")
			want.Kind = hw.OpRecv.String()
			assert.Equal(t, want, movedBy(described(t, ia, server).Endpoint.Receives, hw.OpRecv))
			s := snapshot(t, ia)
			require.Len(t, s.Conns, 2)
			for _, c := range s.Conns {
				assert.Equal(t, ep.Connected.String(), c.Endpoint.State)
				assert.Equal(t, 4, c.Depth)
				assert.NotEmpty(t, c.Endpoint.Local)
				assert.NotEmpty(t, c.Endpoint.Remote)
				assert.False(t, c.Endpoint.Connected.Before(c.Endpoint.Made))
				require.Len(t, c.Endpoint.Story, 2)
				assert.Equal(t, "connected", c.Endpoint.Story[1].Text)
			}
			assert.Equal(t, l.String(), described(t, ia, server).Listener)
			assert.Empty(t, s.Endpoints)
			require.Len(t, s.Listeners, 1)
			assert.Equal(t, l.String(), s.Listeners[0].Name)
			assert.EqualValues(t, 1, s.Listeners[0].Accepted)
			assert.Equal(t, 1, s.Listeners[0].Taken)
			assert.Len(t, s.Dispatchers, 4, "asynchronous errors; requests; events of either")
		})
	}
}

func TestASnapshotTellsHowConnectionsEnded(t *testing.T) {
	ia := open(t, "loop")
	_, client, server := both(t, ia, ConnConfig{})
	require.NoError(t, client.Close())
	require.True(t, nextEvent(t, server.Events()).Ended())
	s := snapshot(t, ia)
	var ended uint64
	for _, e := range s.Ends {
		ended += e.Count
	}
	assert.EqualValues(t, 2, ended)
	require.Len(t, s.LastEnds, 2)
	for _, e := range s.LastEnds {
		assert.Equal(t, event.Disconnected.String(), e.Event)
		require.NotNil(t, e.Cause)
		assert.NotEmpty(t, e.Cause.Text)
		assert.NotEmpty(t, e.Owner)
		assert.Len(t, e.Story, 4)
	}
}

// Whoever looks reads words that others write meanwhile: the detector of races would tell.
// What is seen only grows.
func TestSnapshotsGrowBesideTheTrafficThatTheyLookAt(t *testing.T) {
	ia := open(t, "loop")
	_, client, server := both(t, ia, ConnConfig{Depth: 4})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 500 {
			say(t, client, "x")
			hear(t, server)
			say(t, server, "y")
			hear(t, client)
		}
	}()
	var last ep.Moved
	for over := false; !over; {
		over = isDone(done)
		c := described(t, ia, server)
		now := movedBy(c.Endpoint.Receives, hw.OpRecv)
		assert.GreaterOrEqual(t, now.Operations, last.Operations)
		assert.GreaterOrEqual(t, now.Octets, last.Octets)
		assert.LessOrEqual(t, c.Endpoint.Receives.Outstanding, c.Endpoint.Receives.Depth)
		last = now
	}
	assert.Equal(t, ep.Moved{Kind: hw.OpRecv.String(), Operations: 500, Octets: 500}, last)
}

func TestASnapshotSaysWhichCallHoldsTheBuffersOfAConnection(t *testing.T) {
	ia := open(t, "loop")
	_, client, server := both(t, ia, ConnConfig{Depth: 2}) // with Debug
	say(t, client, "a")
	say(t, client, "b")
	for range 2 {
		leak(t, server)
	}
	s := described(t, ia, server).Buffers
	assert.Equal(t, 2, s.Held)
	require.Len(t, s.Holders, 1)
	assert.Equal(t, 2, s.Holders[0].Buffers)
	assert.Contains(t, s.Holders[0].Call, "runtime.leak")
	assert.Empty(t, snapshot(t, ia).Pools, "the pool stands with its connection")
}

// leak takes a message and keeps its buffer.
func leak(t testing.TB, c *Conn) { require.NotNil(t, c.Message(nextEvent(t, c.Events()))) }

func TestAProgramAddsToASnapshot(t *testing.T) {
	ia := open(t, "loop")
	type disk struct{ Name string }
	stop, err := ia.Report("disks", func() []any { return []any{disk{"a"}, disk{"b"}} })
	require.NoError(t, err)
	_, err = ia.Report("disks", func() []any { return []any{disk{"c"}} })
	require.NoError(t, err)
	_, err = ia.Report("queues", func() []any { panic("no queue") })
	require.NoError(t, err)
	s, err := ia.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, map[string][]any{
		"disks": {disk{"a"}, disk{"b"}, disk{"c"}}, "queues": {"the program's function panicked: no queue"},
	}, s.Reports)
	stop()
	stop()
	s, err = ia.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, []any{disk{"c"}}, s.Reports["disks"])
	require.NoError(t, ia.Close())
	_, err = ia.Snapshot()
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
}

func TestASnapshotTellsHowOldTheOldestOperationIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia := open(t, "loop")
		_, client, server := both(t, ia, ConnConfig{Depth: 2})
		first := described(t, ia, server).Endpoint.Receives
		assert.Zero(t, first.OldestAge, "nobody has looked before")
		time.Sleep(time.Minute)
		second := described(t, ia, server).Endpoint.Receives
		assert.Equal(t, time.Minute, second.OldestAge)
		assert.Equal(t, first.Outstanding, second.Outstanding)
		assert.NotZero(t, second.OldestCookie)
		say(t, client, "a")
		hear(t, server)
		assert.Zero(t, described(t, ia, server).Endpoint.Receives.OldestAge, "another one is the oldest")
		require.NoError(t, ia.Close())
	})
}

func TestASnapshotTellsWhatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia := open(t, "loop")
		_, client, server := both(t, ia, ConnConfig{Depth: 2})
		say(t, client, "a")
		of := func() evd.DispatcherSnapshot {
			for _, d := range snapshot(t, ia).Dispatchers {
				if d.Name == described(t, ia, server).Endpoint.Recv {
					return d
				}
			}
			return evd.DispatcherSnapshot{}
		}
		assert.Equal(t, 1, of().Queued)
		time.Sleep(time.Minute)
		assert.Equal(t, time.Minute, of().OldestAge)
		hear(t, server)
		say(t, client, "b")
		assert.Zero(t, of().OldestAge, "another event is the oldest")
		hear(t, server)
		assert.Zero(t, of().Queued)
		require.NoError(t, ia.Close())
	})
}

func TestAResetOfCountersChangesNoSnapshot(t *testing.T) {
	ia := open(t, "loop")
	_, client, server := both(t, ia, ConnConfig{})
	say(t, client, "a")
	hear(t, server)
	before := snapshot(t, ia)
	reset, err := ia.ResetCounters()
	require.NoError(t, err)
	assert.EqualValues(t, 1, reset.Accepted)
	_, err = server.Endpoint.ResetCounters()
	require.NoError(t, err)
	after := snapshot(t, ia)
	assert.Equal(t, before.Counters, after.Counters)
	assert.Equal(t, before.Conns[0].Endpoint.Receives.Posted, after.Conns[0].Endpoint.Receives.Posted)
	again, err := ia.ResetCounters()
	require.NoError(t, err)
	assert.Zero(t, again)
}
