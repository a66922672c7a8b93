package main

import (
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/check/trees"
)

// before is the program of the commit before the last one that changed the volume.
func before(t *testing.T) string {
	return trees.Build(t, filepath.Join(trees.Before(t, "--", "."), "examples", "volume"))
}

func TestAVolumeIsUpgradedNodeByNodeUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.program = before(t)
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(19, 20))}
	d.write(30)
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
	whole := func() {
		c.eventually("not three copies", func() bool {
			s, err := c.ask(c.leader(), askStatus)
			have, asked, _ := copies(&s)
			return err == nil && s.Serves() && have == 3 && asked == 3
		})
	}
	whole()
	c.program = "" // this one
	for id := 1; id <= 3; id++ {
		p := c.running[id]
		c.signal(id, syscall.SIGTERM)
		<-p.ended
		delete(c.running, id)
		c.start(id)
		whole()
	}
	close(stop)
	<-loaded
	d.read()
	c.same()
	for id := 1; id <= 3; id++ {
		s, err := c.ask(id, askStatus)
		require.NoError(t, err)
		require.Empty(t, s.Refusals)
	}
}
