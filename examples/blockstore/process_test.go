package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asProgram is the environment variable that makes the test binary run the program.
const asProgram = "BLOCKSTORE_AS_PROGRAM"

// program runs the program in a process of its own, with the tests' small blocks.
func program(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"-block", "4096", "-clients", "2", "-stall", "10s"}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.WaitDelay = time.Second
	return cmd
}

// serving starts a server process, and returns the address that it listens on.
func serving(ctx context.Context, t *testing.T, args ...string) (cmd *exec.Cmd, addr string) {
	t.Helper()
	cmd = program(ctx, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n') // ends when the process does, too
	require.NoError(t, err, line)
	return cmd, strings.TrimSpace(line[strings.LastIndexByte(line, ' '):])
}

func TestTwoProcessesTalkOverTCP(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kept := filepath.Join(t.TempDir(), "blocks.db")
	server, addr := serving(ctx, t, "-provider", "iwarp", "-listen", "127.0.0.1:0", "-store", kept)
	for _, args := range [][]string{{"-dir", newTree(t)}, {"-verify"}} {
		out, err := program(ctx, append(args, "-provider", "iwarp", "-connect", addr)...).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), "verified 8 files, 308253 bytes")
	}
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait(), "a signal is how a server ends")
}

func TestAClientNoticesAKilledServerAtOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, addr := serving(ctx, t, "-provider", "iwarp", "-listen", "127.0.0.1:0", "-store", filepath.Join(t.TempDir(), "blocks.db"))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "much"), random(64<<20), 0o600))
	client := program(ctx, "-provider", "iwarp", "-connect", addr, "-dir", dir)
	var stderr bytes.Buffer
	client.Stderr = &stderr
	out, err := client.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, client.Start())
	_, err = bufio.NewReader(out).ReadString('\n') // the client has begun
	require.NoError(t, err)
	require.NoError(t, server.Process.Kill())
	_ = server.Wait()
	began := time.Now()
	require.Error(t, client.Wait())
	assert.Less(t, time.Since(began), 10*time.Second, "before the stall would have")
	assert.Contains(t, stderr.String(), "blockstore: ")
}
