package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3/tracker"

	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
)

func TestAReplicaThatDoesNotAnswerIsNoCopy(t *testing.T) {
	for want, p := range map[string]node.Progress{
		"":                            {State: tracker.StateReplicate.String()},
		"node 2 is asked what it has": {State: tracker.StateProbe.String()}, // as one is that was killed just now
		"node 2 is sent the disk":     {State: tracker.StateSnapshot.String()},
		"node 2 is out":               {State: tracker.StateReplicate.String(), Out: true},
		"node 2 is silent":            {State: tracker.StateReplicate.String(), Silent: true},
	} {
		s := &node.Status{
			ID: 1, Members: raftlog.Members{1: {Addr: "a"}, 2: {Addr: "b"}, 3: {Addr: "c", Learner: true}},
			Replicas: map[uint64]node.Progress{1: {}, 2: p, 3: {}},
		}
		have, asked, missing := copies(s)
		assert.Equal(t, 2, asked)
		if want == "" {
			assert.Equal(t, 2, have)
			assert.Empty(t, missing)
			continue
		}
		assert.Equal(t, 1, have)
		assert.Equal(t, []string{want}, missing)
	}
}

// statusAt is what the command prints of a node, and the status with which it ends.
func (c *cluster) statusAt(id int) (text string, exit int) {
	var out, log bytes.Buffer
	exit = program([]string{"status", c.peers[id-1]}, &out, &log)
	return out.String() + log.String(), exit
}

// newThree is a volume of three nodes, and which of them leads.
func newThree(t *testing.T) (c *cluster, leader, follower, other int) {
	c = newCluster(t)
	c.three()
	leader = c.leader()
	follower = 1 + leader%3
	return c, leader, follower, 6 - leader - follower
}

func TestStatusOfANodeThatWasRemovedSaysSo(t *testing.T) {
	t.Parallel()
	c, leader, follower, other := newThree(t)
	for _, id := range []int{follower, leader} {
		var out bytes.Buffer
		require.NoError(t, newOperator(c.ia, c.peers[other-1], &out).remove(t.Context(), uint64(id), false))
		for range 3 {
			text, exit := c.statusAt(id)
			require.Equal(t, exitFewer, exit, text)
			require.Contains(t, text, "was removed from the volume: end it")
			require.NotContains(t, text, "copies: 1 of 1\n")
		}
		// A command finds the leader through it, too.
		require.ErrorContains(t, newOperator(c.ia, c.peers[id-1], &out).remove(t.Context(), 7, false), "no node 7")
	}
	c.eventually("the only member does not lead", func() bool {
		text, exit := c.statusAt(other)
		return exit == 0 && bytes.Contains([]byte(text), []byte("copies: 1 of 1\n"))
	})
}

func TestStatusHasTheMembersAndTheCopiesOfOneMoment(t *testing.T) {
	t.Parallel()
	c, leader, follower, other := newThree(t)
	c.kill(other)
	c.eventually("the leader does not miss the node", func() bool {
		text, _ := c.statusAt(leader)
		return strings.Contains(text, "is silent\n")
	})
	for _, id := range []int{leader, follower} { // which hears of it later
		text, exit := c.statusAt(id)
		require.Equal(t, exitFewer, exit, text)
		require.Regexp(t, fmt.Sprintf(`(?m)^%d .*  silent: `, other), text)
		require.Contains(t, text, fmt.Sprintf("copies: 2 of 3; node %d is silent\n", other))
	}
}

func TestALeaderThatDoesNotAnswerHereStillLeads(t *testing.T) {
	members := raftlog.Members{1: {Addr: "a:1"}, 2: {Addr: "b:1"}}
	follows := &node.Status{ID: 1, Leader: 2, Members: members}
	late := advise(context.DeadlineExceeded, "b:1: it does not answer in time")
	for name, x := range map[string]struct {
		reached error
		follows bool
		want    string
	}{
		"it is late":            {late, true, "node 1 follows node 2, which does not answer here: "},
		"its process has ended": {errSilent, true, "nobody leads: "},
		"nobody follows it":     {late, false, "nobody leads: "},
	} {
		for _, first := range []bool{true, false} { // the command asked the follower, or the leader
			var not notFound
			if !first {
				not.reached("b:1", x.reached)
			}
			s := *follows
			if !x.follows {
				s.Leader = 0
			}
			not.leads("a:1", &s)
			if first {
				not.reached("b:1", x.reached)
			}
			err := not.err()
			require.ErrorIs(t, err, errNobody, name)
			assert.True(t, strings.HasPrefix(err.Error(), x.want), "%s: %v", name, err)
		}
	}
}
