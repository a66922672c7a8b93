package runtime

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
func movedBy(q QueueSnapshot, kind Op) Moved {
	for _, m := range q.Moved {
		if m.Kind == kind.String() {
			return m
		}
	}
	return Moved{}
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
			want := Moved{Kind: OpSend.String(), Operations: 3, Octets: 210}
			require.Eventually(t, func() bool {
				return movedBy(described(t, ia, client).Endpoint.Requests, OpSend) == want
			}, patience, time.Millisecond, "the last send completes")
			want.Kind = OpRecv.String()
			assert.Equal(t, want, movedBy(described(t, ia, server).Endpoint.Receives, OpRecv))
			s := snapshot(t, ia)
			require.Len(t, s.Conns, 2)
			for _, c := range s.Conns {
				assert.Equal(t, StateConnected.String(), c.Endpoint.State)
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
		assert.Equal(t, Disconnected.String(), e.Event)
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
	var last Moved
	for over := false; !over; {
		over = isDone(done)
		c := described(t, ia, server)
		now := movedBy(c.Endpoint.Receives, OpRecv)
		assert.GreaterOrEqual(t, now.Operations, last.Operations)
		assert.GreaterOrEqual(t, now.Octets, last.Octets)
		assert.LessOrEqual(t, c.Endpoint.Receives.Outstanding, c.Endpoint.Receives.Depth)
		last = now
	}
	assert.Equal(t, Moved{Kind: OpRecv.String(), Operations: 500, Octets: 500}, last)
}
