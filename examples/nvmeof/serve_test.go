package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/target"
	dat "godat/runtime"
)

func TestADiskWhoseFileHasGrownIsServedAtItsNewSize(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("capability: mapped files")
	}
	path := filepath.Join(t.TempDir(), "disk")
	d, err := openDisks(&serveOptions{Disk: []string{"mem:1M", path + ":1M"}}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	tgt, err := target.New(t.Context(), ia, target.Config{Subsystem: d.subsystem, Namespaces: d.all})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- tgt.Run(ctx) }()
	op := newOperator(tgt, d.all, "", io.Discard, slog.New(slog.DiscardHandler))
	go op.run()
	c, err := host.Connect(t.Context(), ia, host.Config{Addr: tgt.Addr(), Subsystem: d.subsystem})
	require.NoError(t, err)

	require.NoError(t, os.Truncate(path, 2<<20))
	op.signals <- operatorSignals[0]
	changed, err := c.Changed(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []uint32{2}, changed)
	grown, err := c.Disk(t.Context(), 2)
	require.NoError(t, err)
	assert.EqualValues(t, 2<<20, grown.Size())
	_, err = grown.WriteAt(make([]byte, 4096), 2<<20-4096)
	require.NoError(t, err)

	// A queue counts its commands when it has posted their completions.
	require.Eventually(t, func() bool { return tgt.Stats().Writes == 1 }, time.Minute, time.Millisecond)
	var stats bytes.Buffer
	printStats(&stats, tgt.Stats())
	assert.Regexp(t, `(?m)^nqn\.\S+ \S+ queue 1 +writes +1 `, stats.String())
	assert.Regexp(t, `(?m)^all +writes +1 `, stats.String())
	rows := queueRows(tgt.Stats())
	require.Len(t, rows, 2, "the admin queue and an I/O queue")
	assert.Contains(t, []uint64{rows[0].(queueRow).Writes, rows[1].(queueRow).Writes}, uint64(1))
	assert.Contains(t, stats.String(), "writes 1 of 4096 bytes")
	require.NoError(t, list(ia, tgt))
	listed, err := ia.Snapshot()
	require.NoError(t, err)
	assert.Len(t, listed.Reports["queues"], 2)
	require.Len(t, listed.Reports["disks"], 2)
	second := listed.Reports["disks"][1].(diskRow)
	assert.Equal(t, diskRow{"disk 2", second.UUID, 2 << 20, 4096, nvme.ANAOptimized, 1}, second)
	require.Len(t, listed.Reports["hosts"], 1)
	h := listed.Reports["hosts"][0].(hostRow)
	assert.Equal(t, [4]int{1, 2, 1, 4096}, [4]int{h.Controllers, h.Queues, int(h.Writes), int(h.BytesWritten)})

	op.stop()
	require.NoError(t, c.Close())
	stop()
	require.NoError(t, <-ran)
	require.NoError(t, ia.CloseGraceful())
}

func TestTwoTargetsOfOneFileAreTwoPathsToOneDiskWithStatesOfTheirOwn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("capability: mapped files")
	}
	dir := t.TempDir()
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	var about []nvme.Namespace
	var disks []*host.Disk
	var operators []*operator
	var ends []func() error
	for i, state := range []string{"optimized\n", "inaccessible\n"} {
		file := filepath.Join(dir, fmt.Sprint("ana", i))
		require.NoError(t, os.WriteFile(file, []byte(state), 0o600))
		o := &serveOptions{Disk: []string{filepath.Join(dir, "disk") + ":1M"}, Shared: true, ANA: file, Listen: []string{""}}
		d, err := openDisks(o, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		tgt, err := target.New(t.Context(), ia, target.Config{Subsystem: d.subsystem, Namespaces: d.all})
		require.NoError(t, err)
		_, err = prepare(t.Context(), tgt, ia, o)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- tgt.Run(ctx) }()
		op := newOperator(tgt, d.all, file, io.Discard, slog.New(slog.DiscardHandler))
		go op.run()
		c, err := host.Connect(t.Context(), ia, host.Config{Addr: tgt.Addr(), Subsystem: d.subsystem})
		require.NoError(t, err)
		disk, err := c.Disk(t.Context(), 1)
		require.NoError(t, err)
		about, disks, operators = append(about, disk.About()), append(disks, disk), append(operators, op)
		ends = append(ends, func() error {
			op.stop()
			err := c.Close()
			stop()
			return errors.Join(err, <-ran)
		})
	}
	_, err = openDisks(&serveOptions{Disk: []string{filepath.Join(dir, "disk")}}, slog.New(slog.DiscardHandler))
	require.Error(t, err, "a target that does not share the file")
	assert.Equal(t, about[0], about[1], "one disk")
	b := bytes.Repeat([]byte{7}, 4096)
	_, err = disks[0].WriteAt(b, 8192)
	require.NoError(t, err)
	require.ErrorIs(t, disks[1].Compare(b, 8192), nvme.StatusError(nvme.ANAInaccessibleStatus))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ana1"), []byte("optimized"), 0o600))
	operators[1].signals <- operatorSignals[0]
	require.Eventually(t, func() bool { return disks[1].Compare(b, 8192) == nil }, time.Minute, time.Millisecond)
	for _, end := range ends {
		require.NoError(t, end())
	}
	require.NoError(t, ia.CloseGraceful())
}
