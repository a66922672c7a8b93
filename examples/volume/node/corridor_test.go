package node

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/state"
	"godat/runtime/rpc"
)

// guest is a host that uses a node.
type guest struct {
	w      *target.Write
	answer func() error
	read   *target.Read
	seen   func() error
	host   identity.ID
}

func newGuest(host byte) *guest {
	g := &guest{host: identity.ID{host}}
	g.w, g.answer = target.NewWrite()
	g.w.From.Host = g.host
	g.read, g.seen = target.NewRead()
	return g
}

// begin has a write's data in its place.
func (g *guest) begin(m *member, off, n int, value byte) error {
	d := m.Device()
	g.w.Offset, g.w.Len = off, n
	d.Place(g.w)
	if err := g.answer(); err != nil {
		return err
	}
	copy(d.Data(g.w), bytes.Repeat([]byte{value}, n))
	return nil
}

// again tries a command again while its path does not serve: that of a node that is slow, for a moment.
func again(command func() error) (err error) {
	for end := time.Now().Add(patient); time.Now().Before(end); pause(context.Background(), time.Millisecond) {
		if err = command(); !errors.Is(err, errElsewhere) && !errors.Is(err, errChange) {
			break
		}
	}
	return err
}

func (g *guest) write(m *member, off, n int, value byte) error {
	return again(func() error {
		if err := g.begin(m, off, n, value); err != nil {
			return err
		}
		m.Device().Take(g.w)
		return g.answer()
	})
}

// reads reads a range that has one value.
func (g *guest) reads(m *member, off, n int) (byte, error) {
	d := m.Device()
	if err := again(func() error {
		g.read.Offset, g.read.Len = off, n
		d.Gate(g.read)
		return g.seen()
	}); err != nil {
		return 0, err
	}
	b := make([]byte, n)
	if err := d.Copy(b, off); err != nil {
		return 0, err
	}
	if !bytes.Equal(b, bytes.Repeat(b[:1], n)) {
		panic("a mixture")
	}
	return b[0], nil
}

// passageOf waits for a follower's passage to its leader.
func passageOf(m *member) (p *passage) {
	for p == nil && m.ask(m.events, func() { p = m.consensus.corridor.passage }) {
		pause(m.ctx, time.Millisecond)
	}
	return p
}

// followers waits for the leader, and for the others to bring commands to it.
func (c *trio) followers() (leader *member, others []*member) {
	c.Helper()
	c.eventually(func() bool {
		leader, others = nil, nil
		for i := range c.all {
			switch m := &c.all[i]; m.Status().State {
			case nvme.ANAOptimized.String():
				leader = m
			case nvme.ANANonOptimized.String():
				others = append(others, m)
			}
		}
		return leader != nil && len(others) == 2
	}, "not all nodes serve hosts")
	return leader, others
}

func TestHostsThatReachDifferentFollowersGoOn(t *testing.T) {
	c := newTrio(t, nil)
	leader, others := c.followers()
	a, b, own := newGuest(1), newGuest(2), newGuest(3)
	for round := range byte(20) {
		for _, n := range []int{512, 4096, 16 << 10} {
			require.NoError(t, a.write(others[0], 0, n, 2*round+1))
			for _, m := range []*member{others[1], leader, others[0]} {
				got, err := b.reads(m, 0, n)
				require.NoError(t, err)
				require.Equal(t, 2*round+1, got, "an answered write is seen at each node")
			}
			require.NoError(t, b.write(others[1], 0, n, 2*round+2))
			got, err := a.reads(others[0], 0, n)
			require.NoError(t, err)
			require.Equal(t, 2*round+2, got)
			require.NoError(t, own.write(leader, 32<<10, n, round))
		}
	}
	require.NoError(t, again(func() error { return others[0].Device().ZeroFor(target.Origin{Host: a.host}, 0, 512) }))
	got, err := b.reads(others[1], 0, 512)
	require.NoError(t, err)
	require.Zero(t, got)
	for _, m := range c.all {
		assert.Empty(t, m.consensus.corridor.rooms)
		assert.Empty(t, m.door.orders)
	}
}

// The host has lost its way to one node while that stood still with a write, and has made the write again by another one.
func TestAWriteThatStoodStillAtAFollowerNeverComesAfterWhatItsHostWroteElsewhere(t *testing.T) {
	c := newTrio(t, nil)
	leader, others := c.followers()
	for _, elsewhere := range []*member{leader, others[1]} {
		g := newGuest(7)
		var late *errand
		for late == nil {
			require.NoError(t, g.write(others[0], 0, 512, 1))
			require.True(t, others[0].ask(others[0].events, func() {
				v := others[0].consensus.corridor
				if v.passage == nil || v.passage.passes.all[g.host] == nil {
					return // the machine is busy
				}
				room := v.free[0]
				copy(others[0].annex[room*layout.SlotSize:], bytes.Repeat([]byte{2}, 512))
				late = &errand{order: order{kind: orderWrite, size: 512, host: g.host, pass: v.passage.passes.all[g.host].pass}, source: others[0].annexed.Remote(room*layout.SlotSize, 512)}
			}))
		}
		require.NoError(t, g.write(elsewhere, 0, 512, 2))
		require.NoError(t, g.write(elsewhere, 0, 512, 3))
		p := passageOf(others[0])
		_, err := others[0].consensus.corridor.call(p, methodOrder, late.order.append(nil), late.source)
		require.Error(t, err)
		got, err := g.reads(leader, 0, 512)
		require.NoError(t, err)
		require.Equal(t, byte(3), got)
	}
}

// The blocks of a disk that is rebuilt are of several moments.
func TestABlockIsNotReadWhenARebuildHasBegunSinceTheGate(t *testing.T) {
	c := newTrio(t, nil)
	_, others := c.followers()
	g, m := newGuest(1), others[0]
	require.NoError(t, g.write(m, 0, 4096, 1))
	_, err := g.reads(m, 0, 4096) // the gate is open
	require.NoError(t, err)
	require.True(t, m.ask(m.events, func() {
		x := m.consensus
		index, _ := x.disk.Applied()
		x.offer = offer{x.term, index + 1}
		var caught *state.CatchUp
		caught, err = x.begin(state.Snapshot{Index: index, Whole: index, Size: blocks})
		assert.NotNil(t, caught)
	}))
	require.NoError(t, err)
	require.ErrorIs(t, m.Device().Copy(make([]byte, 4096), 0), errElsewhere)
	_, err = m.Device().Same(make([]byte, 4096), 0)
	require.ErrorIs(t, err, errElsewhere)
}

func TestAHostThatUsesTwoNodesAtATimeGoesOn(t *testing.T) {
	c := newTrio(t, nil)
	leader, others := c.followers()
	done := make(chan error, 3)
	for i, m := range []*member{leader, others[0], others[1]} {
		go func() {
			g := newGuest(5)
			for round := range byte(5) {
				if err := g.write(m, i*4096, 4096, round); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 3 {
		require.NoError(t, <-done)
	}
}

func TestAFollowerWhoseLeaderIsGoneSaysChangeAndThenBringsCommandsToTheNextOne(t *testing.T) {
	c := newTrio(t, nil)
	leader, others := c.followers()
	g := newGuest(1)
	require.NoError(t, g.write(others[0], 0, 4096, 1))
	require.NoError(t, g.begin(others[0], 0, 4096, 2))
	leader.events.put(func() { leader.consensus.raft.TransferLeader(others[1].cfg.ID) })
	next := c.leader(leader)
	require.Same(t, others[1], next)
	others[0].Device().Take(g.w)
	if err := g.answer(); err != nil {
		require.ErrorIs(t, err, errChange)
	}
	c.followers()
	for _, m := range []*member{others[0], leader} {
		require.NoError(t, g.write(m, 0, 4096, 3))
		got, err := g.reads(m, 0, 4096)
		require.NoError(t, err)
		require.Equal(t, byte(3), got)
	}
	for i := range c.all {
		assert.Empty(t, c.all[i].consensus.corridor.rooms)
	}
}

func TestAnOrderThatNobodyCanMeanIsRefused(t *testing.T) {
	c := newTrio(t, nil)
	leader, others := c.followers()
	for name, o := range map[string]order{
		"beyond the disk": {kind: orderZero, off: blocks, size: 512}, "nothing": {kind: orderZero}, "another kind": {kind: 9, size: 512},
		"far": {kind: orderWrite, off: 1<<64 - 1, size: 512}, "no pass": {kind: orderZero, size: 512}, "no data": {kind: orderWrite, size: 512},
	} {
		for _, b := range [][]byte{o.append(nil), nil, o.append(nil)[1:]} {
			p := passageOf(others[0])
			_, err := p.client.Call(t.Context(), rpc.Call{Method: methodOrder, Payload: append(others[0].note(p.lead), b...)}, nil)
			require.Error(t, err, name)
		}
	}
	require.NoError(t, leader.ctx.Err())
}

// The others are of the version before.
func TestAFollowerWhoseLeaderTakesNoCommandsOfOthersIsInaccessible(t *testing.T) {
	f := newFollower(t)
	close(f.slots.open)
	close(f.disk.open)
	require.NoError(t, f.say(f.write(2, 1, 1, 4, 0xa1)))
	f.answers(pb.MsgAppResp)
	require.True(t, f.ask(f.events, func() {
		f.ways.learnForwards(2, false)
		f.consensus.corridor.tick()
		assert.False(t, f.consensus.corridor.opening)
	}))
	assert.Equal(t, nvme.ANAInaccessible.String(), f.Status().State)
	w, answer := target.NewWrite()
	w.Len = 512
	f.Device().Place(w)
	assert.ErrorIs(t, answer(), errElsewhere)
}
