package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
)

// leaderDisk is the disk at the leader.
func (c *cluster) leaderDisk(h *multipath) *host.Disk {
	h.best = c.leader() - 1
	h.must(nvme.IORead, make([]byte, blockLen), 0)
	_, w, err := h.connect()
	require.NoError(h.t, err)
	return w.disk
}

func TestCommandsOfASingleTargetAreThoseOfAVolume(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.three()
	h := c.host()
	d := c.leaderDisk(h)
	ctx := t.Context()
	want := make([]byte, diskLen)
	write := func(off, n int, version uint64, write func([]byte, int64) (int, error)) {
		copy(want[off:], placed(off, n, version))
		_, err := write(want[off:][:n], int64(off))
		require.NoError(t, err)
	}
	zeroed := func(off, n int) { clear(want[off:][:n]) }
	write(0, 64<<10, 1, d.WriteAt)
	for off := 64 << 10; off < diskLen; off += 64 << 10 {
		write(off, 64<<10, 2, d.WriteAt)
	}
	write(blockLen, 2*blockLen, 3, d.WriteStable) // in its entry
	write(1<<20, 64<<10, 4, d.WriteStable)        // in a slot
	require.NoError(t, d.Flush(ctx))
	const blocks = 64 << 10
	require.NoError(t, d.Compare(want[:blocks], 0))
	differs := bytes.Clone(want[:blocks])
	differs[blocks-1] ^= 1
	require.ErrorIs(t, d.Compare(differs, 0), nvme.StatusError(nvme.CompareFailure|nvme.DoNotRetry))

	require.NoError(t, d.WriteZeroes(ctx, 2*blockLen, 2<<20, false)) // in more than one piece
	zeroed(2*blockLen, 2<<20)
	require.NoError(t, d.WriteZeroes(ctx, 3<<20, blockLen, true))
	zeroed(3<<20, blockLen)
	require.NoError(t, d.Deallocate(ctx, nvme.Range{LBA: 3<<20/blockLen + 2, Blocks: 3}, nvme.Range{LBA: 3<<20/blockLen + 9, Blocks: 1}))
	zeroed(3<<20+2*blockLen, 3*blockLen)
	zeroed(3<<20+9*blockLen, blockLen)
	leader := c.leader()
	require.NoError(t, d.Deallocate(ctx, nvme.Range{LBA: 1}, nvme.Range{LBA: 2}), "of no blocks")
	require.Equal(t, leader, c.leader())
	require.NoError(t, d.Compare(make([]byte, blockLen), 3<<20))
	read := func(d *host.Disk) {
		got := make([]byte, diskLen)
		for off := 0; off < diskLen; off += 64 << 10 {
			_, err := d.ReadAt(got[off:][:64<<10], int64(off))
			require.NoError(t, err)
		}
		require.True(t, bytes.Equal(want, got))
	}
	read(d)
	c.same()

	c.all()
	elsewhere, err := host.Connect(ctx, c.ia, host.Config{Addr: c.listens[c.leader()%3], Subsystem: c.token.Subsystem.Name(), Queues: 1})
	require.NoError(t, err)
	defer func() { assert.NoError(t, elsewhere.Close()) }()
	other, err := elsewhere.Disk(ctx, 1)
	require.NoError(t, err)
	read(other)
	write(0, blockLen, 5, other.WriteAt)
	write(1<<20, 64<<10, 6, other.WriteStable)
	require.NoError(t, other.Compare(want[:blocks], 0))
	require.ErrorIs(t, other.Compare(differs, 0), nvme.StatusError(nvme.CompareFailure|nvme.DoNotRetry))
	require.NoError(t, other.WriteZeroes(ctx, blockLen, 2<<20, false))
	zeroed(blockLen, 2<<20)
	require.NoError(t, other.Deallocate(ctx, nvme.Range{LBA: 3, Blocks: 4}, nvme.Range{LBA: 3<<20/blockLen + 1, Blocks: 1}))
	zeroed(3*blockLen, 4*blockLen)
	zeroed(3<<20+blockLen, blockLen)
	require.NoError(t, other.Flush(ctx))
	read(other)
	read(d)
	require.Equal(t, leader, c.leader())
	c.same()

	c.kill(c.leader())
	read(c.leaderDisk(h))
}
