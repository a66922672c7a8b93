package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/examples/volume/node"
)

// all waits until each node that runs serves hosts.
func (c *cluster) all() {
	c.eventually("not all nodes serve hosts", func() bool {
		for id := range c.running {
			s, err := c.ask(id, node.Command{Do: "status"})
			if err != nil || !s.Serves() && s.State != nvme.ANANonOptimized.String() {
				return false
			}
		}
		return true
	})
}

// only leaves the host the way to one node.
func (h *multipath) only(id int) {
	var none []int
	for i := range h.addrs {
		if i != id-1 {
			none = append(none, i)
		}
	}
	h.cut(none...)
}

// reached is the only node that the host reaches, or 0.
func (h *multipath) reached() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.none) != len(h.addrs)-1 {
		return 0
	}
	for i := range h.addrs {
		if !slices.Contains(h.none, i) {
			return i + 1
		}
	}
	return 0
}

// One host has lost the leader and one follower, the other one the leader and the other follower.
func TestHostsWithDifferentCutsGoOnAndTheLeaderStays(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	c.all()
	leader := c.leader()
	h := newHistory()
	hosts := []*multipath{c.host(), c.host()}
	followers := slices.DeleteFunc([]int{1, 2, 3}, func(id int) bool { return id == leader })
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for number := range 4 {
		clients.Go(func() { h.client(hosts[number%2], number, rand.New(rand.NewPCG(21, uint64(number))), stop) })
	}
	h.wait(100, patience)
	for i := range hosts {
		hosts[i].only(followers[i])
	}
	cut := time.Since(h.begun)
	h.wait(400, patience)
	assert.Equal(t, leader, c.leader())
	for i := range hosts {
		hosts[i].only(followers[1-i])
	}
	h.wait(400, patience)
	close(stop)
	clients.Wait()
	h.end(t, c.host())
	require.NoError(t, h.Check(time.Minute))
	t.Logf("%d operations in %v, longest pause %v", h.Answered(), time.Since(h.begun)-cut, h.Pause())
}

// state is the state of a node's ANA group, as its log page says.
func (c *cluster) state(at *host.Controller) nvme.ANAState {
	page := make([]byte, nvme.PageLen)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := at.Admin(ctx, nvme.GetLogPage(nvme.LogANA, 0, nvme.PageLen), page)
	require.NoError(c, err)
	return nvme.ANAState(page[nvme.ANAHeaderLen+16])
}

func TestAHostSeesThatAFollowerServesAndHearsWhenThatChanges(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	c.all()
	leader := c.leader()
	follower := leader%3 + 1
	at, err := host.Connect(t.Context(), c.ia, host.Config{Addr: c.listens[follower-1], Subsystem: c.token.Subsystem.Name(), Queues: 1})
	require.NoError(t, err)
	defer func() { assert.NoError(t, at.Close()) }()
	_, err = at.Admin(t.Context(), nvme.SetFeature(nvme.FeatureAsyncEvents, nvme.ANANotices), nil)
	require.NoError(t, err)
	require.Equal(t, nvme.ANANonOptimized, c.state(at))
	c.kill(leader)
	event, err := at.Admin(t.Context(), nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil)
	require.NoError(t, err)
	require.Equal(t, nvme.ANAChanged, nvme.AsyncEvent(event))
	c.all()
	want := nvme.ANANonOptimized
	if c.leader() == follower {
		want = nvme.ANAOptimized
	}
	require.Equal(t, want, c.state(at))
}
