package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/node"
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
	require.NoError(t, newOperator(c.ia, c.peers[follower-1], &out).replace(context.Background(), uint64(dead), 4, c.peers[3]))
	close(stop)
	<-loaded
	s, err := c.ask(c.leader(), node.Command{Do: "status"})
	require.NoError(t, err)
	require.Len(t, s.Members, 3)
	require.NotContains(t, s.Members, uint64(dead))
	require.False(t, s.Members[4].Learner)
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	var last rebuilding
	require.NoError(t, json.Unmarshal(lines[len(lines)-1], &last))
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
	require.ErrorContains(t, o.add(t.Context(), uint64(leader), "127.0.0.1:1"), "member already")
	require.ErrorContains(t, o.transfer(t.Context(), 5), "no other member")
	require.ErrorContains(t, o.replace(t.Context(), 5, 6, "127.0.0.1:1"), "no member")
	require.NoError(t, o.remove(t.Context(), 5), "it is none")
	require.NoError(t, status(context.Background(), c.ia, c.peers[follower-1], &out))
	assert.Contains(t, out.String(), fmt.Sprintf("node %d: StateLeader, optimized; leader %d", follower, follower))
	assert.Contains(t, out.String(), c.peers[2])
}
