package node

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/target"
)

var storms = flag.Int("storms", 2, "seeds of TestAFollowerIsRebuiltAgainAndAgainUnderLoad")

// write writes blocks at a leader that may be none.
func (m *member) write(r *rand.Rand, w *target.Write, answer func() error) error {
	d := m.Device()
	if w.Len = 512 << r.IntN(6); r.IntN(8) == 0 {
		return d.Zero(0, w.Len)
	}
	w.Offset = r.IntN((blocks-w.Len)/512) * 512
	d.Place(w)
	if err := answer(); err != nil {
		return err
	}
	for at := range w.Len {
		d.Data(w)[at] = byte(r.Uint32())
	}
	d.Take(w)
	return answer()
}

// mostOffered is how many records at most trouble offers that nobody has yet. They are written in the end.
const mostOffered = 8

// trouble does to a follower what a leader does that has no records for it, or too early, or twice.
func (c *trio) trouble(r *rand.Rand) {
	id := 1 + r.IntN(len(c.all))
	m := &c.all[id-1]
	if r.IntN(2) == 0 {
		leader := c.leader(nil)
		leader.ask(leader.events, func() {
			if x := leader.consensus.reign; x != nil && leader != m {
				x.takeOut(m.cfg.ID)
			}
		})
	}
	for range 1 + r.IntN(3) {
		ahead := uint64(r.IntN(mostOffered + 1))
		m.events.put(func() {
			x := m.consensus
			x.catchUp(x.term, x.applied+ahead)
		})
	}
}

func TestAFollowerIsRebuiltAgainAndAgainUnderLoad(t *testing.T) {
	for seed := range uint64(*storms) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newTrio(t, nil)
			c.leader(nil)
			stop, answered := make(chan struct{}), make(chan struct{})
			var writers sync.WaitGroup
			for number := range uint64(3) {
				writers.Go(func() {
					r := rand.New(rand.NewPCG(seed, number))
					w, answer := target.NewWrite()
					for at := 0; ; {
						if c.all[at].write(r, w, answer) != nil {
							at = r.IntN(len(c.all))
						}
						select {
						case <-stop:
							return
						case answered <- struct{}{}:
						}
					}
				})
			}
			r := rand.New(rand.NewPCG(seed, 9))
			for range 60 {
				for range r.IntN(60) {
					<-answered
				}
				c.trouble(r)
			}
			close(stop)
			writers.Wait()
			for i := range c.all {
				c.all[i].ask(c.all[i].events, func() {}) // it has had all its trouble
			}
			for range mostOffered {
				c.eventually(func() bool { return c.leader(nil).Device().Zero(0, 4096) == nil }, "no write succeeds")
			}
			leader := c.leader(nil)
			c.eventually(func() bool {
				for i := range c.all {
					lacks := true // what it was offered last, and has not got yet
					c.all[i].ask(c.all[i].events, func() { lacks = c.all[i].consensus.lacks() })
					if s := c.all[i].Status(); lacks || s.Rotten || s.Last == 0 || s.Applied != leader.Status().Last {
						return false
					}
				}
				return true
			}, "a node does not come back")
			for i := range c.all {
				require.NoError(t, c.all[i].ctx.Err())
				assert.NoError(t, c.all[i].Node.disk.Ready())
				require.NoError(t, leader.Node.disk.Settle(0, len(leader.Node.disk.Memory())))
				require.NoError(t, c.all[i].Node.disk.Settle(0, len(leader.Node.disk.Memory())))
				assert.Equal(t, leader.Node.disk.Memory(), c.all[i].Node.disk.Memory())
			}
		})
	}
}
