package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
)

func TestANodeIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(3, 4))}
	d.write(150)
	dead := 1 + c.leader()%3
	c.kill(dead)
	d.write(50)
	c.start(4, "--create", "--join")
	stop, loaded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(loaded)
		for {
			select {
			case <-stop:
				return
			default:
				d.write(1)
			}
		}
	}()
	var out bytes.Buffer
	follower := 6 - dead - c.leader()
	require.NoError(t, newOperator(c.ia, c.peers[follower-1], &out).replace(context.Background(), uint64(dead), 4, c.peers[3], false))
	close(stop)
	<-loaded
	s, err := c.ask(c.leader(), node.Command{Do: "status"})
	require.NoError(t, err)
	require.Len(t, s.Members, 3)
	require.NotContains(t, s.Members, uint64(dead))
	require.False(t, s.Members[4].Learner)
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	var last rebuilding
	for _, line := range lines {
		if line[0] == '{' {
			require.NoError(t, json.Unmarshal(line, &last))
		}
	}
	require.Contains(t, string(lines[len(lines)-1]), fmt.Sprintf("node %d is removed; members are ", dead))
	assert.Equal(t, rebuilding{Node: 4, State: "whole"}, last)
	c.same()
	c.kill(c.leader()) // the new node is one of a majority
	d.write(20)
	d.read()
}

func TestAnOperatorSeesAVolumeAndMovesItsLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	leader := c.leader()
	follower := 1 + leader%3
	_, err := c.ask(follower, node.Command{Do: "transfer", ID: uint64(follower)})
	require.ErrorContains(t, err, fmt.Sprintf("node %d does", leader))
	var out bytes.Buffer
	o := newOperator(c.ia, c.peers[follower-1], &out)
	require.NoError(t, o.transfer(t.Context(), uint64(follower)))
	require.ErrorContains(t, o.add(t.Context(), uint64(leader), "127.0.0.1:1", false), "member already")
	require.EqualError(t, o.transfer(t.Context(), 5), "node 5 is no other member that votes; members are 1, 2, 3")
	require.ErrorContains(t, o.replace(t.Context(), 5, 6, "127.0.0.1:1", false), "no member")
	require.ErrorContains(t, o.replace(t.Context(), 3, 3, "127.0.0.1:1", false), "another id")
	require.ErrorContains(t, o.remove(t.Context(), 5, false), "no node 5; members are 1, 2, 3")
	require.ErrorContains(t, o.replace(t.Context(), uint64(leader), uint64(follower), c.peers[follower-1], false), "would only remove node")
	c.eventually("the new leader has not heard all", func() bool {
		return newOperator(c.ia, c.peers[follower-1], &out).status(t.Context()) == nil
	})
	var log bytes.Buffer
	require.Equal(t, exitFailed, program([]string{"remove", c.peers[0], "5"}, &out, &log))
	require.NotContains(t, log.String(), "certificates", "a node has answered")
	assert.Contains(t, out.String(), fmt.Sprintf("node %d leads, term ", follower))
	assert.Contains(t, out.String(), c.peers[2])
}

func TestNoCommandEndsAVolume(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	leader := c.leader()
	dead := 1 + leader%3
	other := 6 - leader - dead
	at := newOperator(c.ia, c.peers[leader-1], io.Discard)
	c.kill(dead)
	c.eventually("the leader does not miss the node", func() bool {
		s, err := c.ask(leader, askStatus)
		return err == nil && s.Replicas[uint64(dead)].Silent
	})
	_, err := c.ask(leader, node.Command{Do: "add", ID: uint64(other), Addr: "127.0.0.1:1"})
	require.ErrorContains(t, err, "member already")
	require.ErrorContains(t, at.remove(t.Context(), uint64(other), false), "no majority")
	require.ErrorContains(t, at.transfer(t.Context(), uint64(dead)), "has not been heard for")
	require.NoError(t, at.remove(t.Context(), uint64(dead), false))
	require.ErrorContains(t, at.add(t.Context(), uint64(dead), c.peers[dead-1], false), "was a member")
	require.NoError(t, at.remove(t.Context(), uint64(other), false))
	require.ErrorContains(t, at.remove(t.Context(), uint64(leader), false), "nobody would be left to vote")
	require.Equal(t, leader, c.leader())
}

func TestALeaderThatIsAskedToEndHandsOverFirst(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	leader := c.leader()
	p := c.running[leader]
	c.signal(leader, syscall.SIGTERM)
	<-p.ended
	delete(c.running, leader)
	require.NotEqual(t, leader, c.leader())
	require.Contains(t, p.log.String(), "another one is to lead")
	require.Zero(t, p.ProcessState.ExitCode())
}

func TestANodeThatJoinsLearnsFromTheVolumeWhereItsLeaderIs(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	leader := c.leader()
	c.run(4, []string{
		"serve", "--create", "--join", "--id=4", "--peers=4=" + c.peers[3] + "," + fmt.Sprintf("%d=%s", 1+leader%3, freePort(t)), // where nobody is
		"--listen=" + c.listens[3], "--data=" + string(c.disk(4)), "--token=" + c.tokenText(),
	})
	c.eventually("it does not say what it waits for", func() bool {
		s, err := c.ask(4, askStatus)
		return err == nil && strings.Contains(s.Waits, "it waits to be added") && strings.Contains(s.Waits, c.peers[3])
	})
	text, exit := c.statusAt(4)
	require.Equal(t, exitFewer, exit)
	require.Contains(t, text, "copies: none here: node 4 is no member yet\n")
	require.NotContains(t, text, "being rebuilt")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	require.NoError(t, newOperator(c.ia, c.peers[leader%3], &out).add(ctx, 4, c.peers[3], false), out.String())
	s, err := c.ask(4, askStatus)
	require.NoError(t, err)
	require.Empty(t, s.Waits)
	c.same()
}

func TestAReplaceThatWasInterruptedGoesOnAndOneOfMembersTakesNoCopyAway(t *testing.T) {
	members := func(voters ...uint64) raftlog.Members {
		all := make(raftlog.Members)
		for _, id := range voters {
			all[id] = raftlog.Member{}
		}
		return all
	}
	learns := members(1, 2, 3)
	learns[4] = raftlog.Member{Learner: true}
	for _, all := range []raftlog.Members{members(1, 2, 3), learns, members(1, 2, 3, 4), members(1, 4), members(2, 3, 4)} {
		require.NoError(t, onlyRemoves(all, nil, 1, 4))
	}
	require.ErrorContains(t, onlyRemoves(members(1, 2, 3), nil, 1, 2), "node 2 votes already, so this would only remove node 1")
	require.ErrorContains(t, onlyRemoves(members(1, 2, 3, 4, 5), nil, 1, 2), "leave a copy less")
	require.NoError(t, onlyRemoves(members(1, 2, 3, 4, 5), map[uint64]uint64{5: 1}, 1, 5), "of a volume of four")
	require.ErrorContains(t, onlyRemoves(members(1, 2, 3, 4, 5), map[uint64]uint64{5: 1}, 2, 5), "leave a copy less")
}

func TestAReplaceOfAVolumeOfTwoNodesGoesOnAfterTheNewNodeVotes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	command := func() *operator { return newOperator(c.ia, c.peers[0], &out) }
	require.NoError(t, command().remove(ctx, 3, false), out.String())
	c.kill(3)
	c.start(4, "--create", "--join")
	require.NoError(t, command().addFor(ctx, 2, 4, c.peers[3], false), out.String()) // and here it was interrupted
	require.ErrorContains(t, command().replace(ctx, 1, 4, c.peers[3], false), "leave a copy less", "another one")
	require.NoError(t, command().replace(ctx, 2, 4, c.peers[3], false), out.String())
	s, err := c.ask(1, askStatus)
	require.NoError(t, err)
	require.Equal(t, raftlog.Members{1: {Addr: c.peers[0]}, 4: {Addr: c.peers[3]}}, s.Members)
}
