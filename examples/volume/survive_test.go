package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	"godat/examples/volume/fault"
)

// blockLen is the length of a block, and diskLen of a test's disk.
const (
	blockLen = 4096
	diskLen  = 4 << 20
)

// content is what a disk has, as a test knows.
type content struct {
	h        *multipath
	r        *rand.Rand
	versions [diskLen / blockLen]uint64
	number   uint64
}

// write writes some blocks, of both kinds.
func (d *content) write(writes int) {
	for range writes {
		n := (1 + d.r.IntN(16)) * blockLen
		off := d.r.IntN((diskLen-n)/blockLen+1) * blockLen
		d.number++
		d.h.must(nvme.IOWrite, placed(off, n, d.number), off)
		for at := off; at < off+n; at += blockLen {
			d.versions[at/blockLen] = d.number
		}
	}
}

// read reads all back.
func (d *content) read() {
	got := make([]byte, blockLen)
	for i, version := range d.versions {
		off := i * blockLen
		d.h.must(nvme.IORead, got, off)
		want := make([]byte, blockLen)
		if version != 0 {
			want = placed(off, blockLen, version)
		}
		require.Equal(d.h.t, want, got, "block %d", i)
	}
}

func TestADiskSurvivesItsLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(1, 2))}
	d.write(100)
	d.read()
	for range 2 {
		dead := c.leader()
		c.kill(dead)
		d.write(100)
		d.read()
		c.start(dead)
		d.write(20)
	}
	d.read()
	c.same()
}

func TestANodeWhoseDiskFailsSaysSoAndComesBack(t *testing.T) {
	for _, x := range []struct {
		trouble fault.Trouble
		why     error
	}{{fault.Trouble{Full: true}, syscall.ENOSPC}, {fault.Trouble{Broken: true}, fault.ErrDisk}} {
		t.Run(x.why.Error(), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.newProxy()
			c.three()
			d := &content{h: c.host(), r: rand.New(rand.NewPCG(5, 6))}
			d.write(20)
			id := 1 + c.leader()%3
			p := c.running[id]
			require.NoError(t, c.disk(id).Say(x.trouble))
			c.eventually("the node goes on", func() bool {
				d.write(20)
				select {
				case <-p.ended:
					return true
				default:
					return false
				}
			})
			require.Contains(t, p.log.String(), "level=ERROR")
			require.Contains(t, p.log.String(), x.why.Error())
			require.Equal(t, x.trouble.Full, strings.Contains(p.log.String(), string(c.disk(id))+": the file system is full: make room there"))
			c.eventually("the leader does not miss the node", func() bool {
				var out bytes.Buffer
				return errors.Is(newOperator(c.ia, c.peers[c.leader()-1], &out).status(t.Context()), errFewer) && strings.Count(out.String(), "  silent: ") == 1
			})
			c.kill(id)
			require.NoError(t, c.disk(id).Say(fault.Trouble{}))
			c.start(id)
			d.write(20)
			c.same()
		})
	}
}

// A page of the file that can't be read is a signal to whoever touches it: the file is made shorter than its mapping.
func TestALeaderWhoseDiskCanNotBeReadSaysSoAndAnotherNodeGoesOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(7, 8))}
	d.write(20)
	p := c.running[c.leader()]
	require.NoError(t, os.Truncate(filepath.Join(string(c.disk(p.id)), "disk"), 8192))
	d.read()
	d.write(20)
	d.read()
	<-p.ended
	require.Equal(t, exitFailed, p.ProcessState.ExitCode())
	require.Contains(t, p.log.String(), store.ErrUnreadable.Error())
	require.NotContains(t, p.log.String(), "SIGBUS")
}
