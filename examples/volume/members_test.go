package main

import (
	"bytes"
	"context"
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
	at := c.peers[c.leader()-1]
	require.NoError(t, add(context.Background(), c.ia, memberOptions{Addr: at, ID: 4, Member: c.peers[3]}))
	_, err := node.Ask(context.Background(), c.ia, at, node.Command{Do: "remove", ID: uint64(dead)})
	require.NoError(t, err)
	close(stop)
	<-loaded
	c.eventually("the members are others", func() bool {
		s, err := c.ask(c.leader(), node.Command{Do: "status"})
		_, gone := s.Members[uint64(dead)]
		return err == nil && len(s.Members) == 3 && !gone && !s.Members[4].Learner
	})
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
	c.eventually("no leader moves", func() bool {
		_, _ = c.ask(c.leader(), node.Command{Do: "transfer", ID: uint64(follower)}) // again, until it is heard
		return c.leader() == follower
	})
	var out bytes.Buffer
	require.NoError(t, status(context.Background(), c.ia, c.peers[follower-1], &out))
	assert.Contains(t, out.String(), fmt.Sprintf("node %d: StateLeader, optimized; leader %d", follower, follower))
	assert.Contains(t, out.String(), c.peers[2])
}
