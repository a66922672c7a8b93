package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachNodeSaysWhatItsLeaderKnowsOfTheOthers(t *testing.T) {
	c := newTrioOf(t, func(id uint64, _ *valve) bool { return id == 3 }, nil, func(cfg *Config) { cfg.Page = fmt.Sprintf("http://page%d/", cfg.ID) })
	leader := c.leader(nil)
	follower := &c.all[2-leader.cfg.ID] // nodes 1 and 2 run
	c.eventually(func() bool { return follower.Status().Told[3].Silent }, "the follower does not say that node 3 is missing")
	c.eventually(func() bool {
		told, other := follower.Status(), follower.cfg.ID
		there, here := leader.Status().Replicas[other].Self, told.Told[leader.cfg.ID].Self
		return there != nil && there.Page == follower.cfg.Page && here != nil && here.Page == leader.cfg.Page && told.Others[leader.cfg.ID].Page == leader.cfg.Page
	}, "nodes don't say where each other's pages are")
	s := follower.Status()
	assert.Equal(t, fmt.Sprintf("node %d (its page %s)", leader.cfg.ID, leader.cfg.Page), s.Name(leader.cfg.ID))
	assert.Equal(t, "node 3 at loop:7003", s.Name(3))

	follower.disk.Lock()
	require.NoError(t, leader.Device().Zero(0, 4096))
	c.eventually(func() bool {
		x := leader.Status().Replicas[follower.cfg.ID].Self
		return x != nil && x.Disk.Longest >= 100*time.Millisecond
	}, "the leader does not say that the follower's disk is slow")
	follower.disk.Unlock()
}

func TestWhatALeaderToldHoldsForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h health
		h.tells(map[uint64]Progress{3: {Out: true, Self: &Self{Disk: Takes{Longest: time.Second, Ago: time.Second}}}})
		time.Sleep(time.Second)
		assert.Equal(t, map[uint64]Progress{3: {Out: true, Self: &Self{Disk: Takes{Longest: time.Second, Ago: 2 * time.Second}}}}, h.told(5*time.Second))
		h.hasPage(3, "http://page3/")
		p := h.of(3, Progress{}, 5*time.Second)
		assert.Equal(t, &Self{Page: "http://page3/", Disk: Takes{Longest: time.Second, Ago: 2 * time.Second}}, p.Self, "who comes to lead knows what the former leader told")
		time.Sleep(5 * time.Second)
		assert.Nil(t, h.told(5*time.Second), "nobody has told anything since")
	})
}

func TestANodeThatIsNotReachedIsMissedForTheCauseThatTellsMost(t *testing.T) {
	var h health
	died, silent := errors.New("its process has died"), fmt.Errorf("x: %w", context.DeadlineExceeded)
	missed := func() Missed { return h.others([]uint64{2})[2].Missed }
	h.loses(2, died)
	assert.Equal(t, Missed{Why: "its process has died"}, missed())
	h.reaches(2, errors.New("connection refused"), false)
	assert.Equal(t, Missed{Why: "its process has died; now nobody listens there", Ended: true}, missed())
	h.reaches(2, errors.New("the certificate"), true)
	assert.Equal(t, Missed{Why: "the certificate", Refuses: true}, missed())
	h.reaches(2, nil, false)
	assert.Zero(t, missed())
	h.loses(2, silent)
	h.reaches(2, silent, false)
	assert.Equal(t, Missed{Why: "it does not answer"}, missed())
}

func TestTheNewestWriteAndTheLongestOneAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p, other pace
		wait := func(d time.Duration) func() error { return func() error { time.Sleep(d); return nil } }
		require.NoError(t, p.during(wait(4*time.Second)))
		require.NoError(t, p.during(wait(time.Second)))
		assert.Equal(t, Takes{Newest: time.Second, Longest: 4 * time.Second, Ago: time.Second}, takes(&other, &p))
		other.begin()
		time.Sleep(5 * time.Second)
		assert.Equal(t, Takes{Newest: 5 * time.Second, Longest: 5 * time.Second}, takes(&other, &p), "it is under way")
		other.forget()
		time.Sleep(recent)
		assert.Equal(t, Takes{Newest: time.Second}, takes(&other, &p), "the long one is long ago")
	})
}
