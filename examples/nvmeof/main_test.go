package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// serving runs the program as a target until the test ends, and returns its address.
func serving(t *testing.T, serve *serveOptions) (address string) {
	t.Helper()
	serve.Listen, serve.Block, serve.Queues, serve.Depth = []string{"127.0.0.1:0"}, 4096, 2, 64
	o := &options{Provider: "iwarp:127.0.0.1", Serve: *serve}
	ctx, stop := context.WithCancel(context.Background())
	said, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, "serve", o, out, io.Discard) }()
	line := make([]byte, 200)
	n, err := said.Read(line)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, said) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
		require.NoError(t, out.Close())
	})
	_, address, found := strings.Cut(strings.TrimSpace(string(line[:n])), " on ")
	require.True(t, found)
	return address
}

func TestTheProgramFindsAndLoadsItsOwnDisks(t *testing.T) {
	disks := []string{"mem:4M"}
	if runtime.GOOS == "linux" {
		disks = append(disks, filepath.Join(t.TempDir(), "disk")+":4M")
	}
	address := serving(t, &serveOptions{Disk: disks})
	var out bytes.Buffer
	o := &options{Provider: "iwarp:127.0.0.1", Param: []string{"stall=30s"}, Discover: discoverOptions{Addr: address}}
	require.NoError(t, run(t.Context(), "discover <addr>", o, &out, io.Discard))
	assert.Contains(t, out.String(), " at 127.0.0.1 port ")
	for i := range disks {
		out.Reset()
		o.Bench = benchOptions{
			Addr: address, Namespace: uint32(i + 1),
			Queues: 2, Depth: 4, Size: 8192, Time: 10 * time.Millisecond,
		}
		require.NoError(t, run(t.Context(), "bench <addr>", o, &out, io.Discard))
		assert.Regexp(t, `^writes: [1-9]\d* of 8192 bytes, .*\nreads: [1-9]\d* of 8192 bytes, .*\n$`, out.String())
	}
}

func TestACommandLineThatIsWrongIsRefused(t *testing.T) {
	for _, disk := range []string{"mem", "mem:", "mem:x", "mem:0", "mem:1KM", "mem:99999999999T", "/none/disk:4K"} {
		o := &options{Provider: "loop", Serve: serveOptions{Listen: []string{""}, Disk: []string{"mem:1M", disk}}}
		require.Error(t, run(t.Context(), "serve", o, io.Discard, io.Discard), disk)
	}
	require.Error(t, run(t.Context(), "serve", &options{Provider: "loop", Param: []string{"crc"}}, io.Discard, io.Discard))
	require.Error(t, (&benchOptions{}).Validate())
	require.Error(t, (&serveOptions{Processors: -1, Listen: []string{""}}).Validate())
	require.Error(t, (&serveOptions{}).Validate(), "no address")
	for _, wrong := range []serveOptions{{Elsewhere: []string{"here"}}, {ANA: "none"}, {Listen: []string{"", "x:y:z"}}} {
		wrong.Disk, wrong.Listen = []string{"mem:1M"}, append([]string{""}, wrong.Listen...)
		require.Error(t, run(t.Context(), "serve", &options{Provider: "loop", Serve: wrong}, io.Discard, io.Discard), "%+v", wrong)
	}
	n, err := parseSize("3G")
	if uint64(maxSize) > 1<<32 {
		require.NoError(t, err)
		assert.Equal(t, 3<<20, n>>10)
	}
}

func TestATargetOnIWARPLeavesHalfOfTheProcessorsToTheSystem(t *testing.T) {
	if had, set := os.LookupEnv("GOMAXPROCS"); set {
		require.NoError(t, os.Unsetenv("GOMAXPROCS"))
		defer os.Setenv("GOMAXPROCS", had)
	}
	for _, c := range []struct {
		provider         string
		asked, have, got int
	}{
		{"iwarp:127.0.0.1", 0, 1, 1},
		{"iwarp:127.0.0.1", 0, 2, 1},
		{"iwarp", 0, 9, 4},
		{"iwarp", 3, 2, 3},
		{"ibv:rxe0", 0, 2, 2},
		{"loop", 0, 8, 8},
	} {
		o := serveOptions{Processors: c.asked}
		assert.Equal(t, c.got, o.processors(c.provider, c.have), "%+v", c)
	}
	t.Setenv("GOMAXPROCS", "2")
	assert.Equal(t, 2, (&serveOptions{}).processors("iwarp", 2), "the environment has said")
}
