package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
)

func TestANodeMadeAgainUnderItsIDIsRefusedByName(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(9, 10))}
	d.write(20)
	leader := c.leader()
	again := 1 + leader%3
	c.eventually("not three copies", func() bool {
		s, err := c.ask(leader, askStatus)
		return err == nil && s.Replicas[uint64(again)].Match == s.Last
	})
	c.kill(again)
	require.NoError(t, os.RemoveAll(string(c.disk(again))))
	c.start(again, "--create")
	why := fmt.Sprintf("replace %d by a node of another id", again)
	for _, id := range []int{leader, again} {
		c.eventually("no refusal", func() bool {
			s, err := c.ask(id, askStatus)
			return err == nil && len(s.Refusals) != 0
		})
		s, err := c.ask(id, askStatus)
		require.NoError(t, err)
		require.Contains(t, s.Refusals[0].Why, why)
	}
	d.write(20)
	s, err := c.ask(c.leader(), askStatus)
	require.NoError(t, err)
	require.Less(t, s.Replicas[uint64(again)].Match, s.Last)
	c.start(4, "--create", "--join")
	require.NoError(t, newOperator(c.ia, c.peers[leader-1], os.Stderr).replace(t.Context(), uint64(again), 4, c.peers[3], false))
	c.kill(again)
	c.same()
}

// ways are the addresses that a node tells hosts.
func (c *cluster) ways(id int) (addrs []string) {
	ctx, cancel := context.WithTimeout(c.Context(), 3*time.Second)
	defer cancel()
	at, err := host.Connect(ctx, c.ia, host.Config{Addr: c.listens[id-1]})
	if err != nil {
		return nil
	}
	defer func() { require.NoError(c, at.Close()) }()
	all, err := at.Discover(ctx)
	if err != nil {
		return nil
	}
	for _, e := range all {
		addrs = append(addrs, e.Address+":"+e.Service)
	}
	slices.Sort(addrs)
	return addrs
}

func TestDiscoveryFollowsTheMembers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	tell := func(want []string, ids ...int) {
		want = slices.Sorted(slices.Values(want))
		for _, id := range ids {
			c.eventually(fmt.Sprintf("node %d does not tell %v", id, want), func() bool { return slices.Equal(want, c.ways(id)) })
		}
	}
	tell(c.listens[:3], 1, 2, 3)
	c.start(4, "--create", "--join")
	require.NoError(t, newOperator(c.ia, c.peers[1], os.Stderr).replace(t.Context(), 1, 4, c.peers[3], false))
	tell(c.listens[1:4], 2, 3, 4)
	c.kill(2)
	c.kill(3)
	c.start(2)
	tell(c.listens[1:4], 2) // from its files: node 3 does not run
}
