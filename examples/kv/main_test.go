package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	dat "godat/runtime"
)

// TestMain runs the program itself when a test starts the binary as a server.
func TestMain(m *testing.M) {
	if addr := os.Getenv("KV_TEST_SERVE"); addr != "" {
		serveParent(addr)
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// serveParent serves until standard input ends.
func serveParent(addr string) {
	ctx, stop := context.WithCancel(context.Background())
	ia, err := dat.Open(ctx, "iwarp")
	if err != nil {
		panic(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := errors.Join(serve(ctx, ia, addr, os.Stdout), ia.CloseGraceful()); err != nil {
		panic(err)
	}
}

// start serves on a provider until the test ends.
func start(t *testing.T, provider string) (ia *dat.IA, addr string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ia, err := dat.Open(ctx, provider)
	require.NoError(t, err)
	address := ""
	if provider != "loop" {
		address = "127.0.0.1:0"
	}
	stdout, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(ctx, ia, address, out) }()
	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan())
	addr = lines.Text()
	go func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
		require.NoError(t, out.Close())
		require.NoError(t, ia.CloseGraceful(), "the server or a client left something")
	})
	return ia, addr
}

// command returns what the program prints for a command line.
func command(t *testing.T, ia *dat.IA, addr string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	err := ask(ctx, ia, addr, args, &out)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func TestAClientGetsWhatAnotherHasPut(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			ia, addr := start(t, provider)
			for _, n := range []int{0, 1, short, short + 1, 100_000, longest} {
				key, value := fmt.Sprint("k", n), strings.Repeat("7 ", n/2+1)[:n]
				_, err := command(t, ia, addr, "put", key, value)
				require.NoError(t, err)
				got, err := command(t, ia, addr, "get", key)
				require.NoError(t, err)
				assert.True(t, value == got, "%d bytes", n)
			}
			_, err := command(t, ia, addr, "get", "never put")
			require.ErrorContains(t, err, "no such key")
			_, err = command(t, ia, addr, "put", "k", string(make([]byte, longest+1)))
			require.ErrorIs(t, err, dat.ErrProtection)
			_, err = command(t, ia, addr, "get", strings.Repeat("k", 4096))
			require.ErrorIs(t, err, dat.ErrLength)
			for _, args := range [][]string{nil, {"get"}, {"put", "k"}, {"delete", "k"}, {"get", "k", "v"}} {
				_, err = command(t, ia, addr, args...)
				require.ErrorContains(t, err, "usage", "%q", args)
			}
		})
	}
}

func TestManyClientsShareAStore(t *testing.T) {
	ia, addr := start(t, "loop")
	var wg sync.WaitGroup
	for c := range 5 {
		wg.Go(func() {
			for i := range 30 {
				key, value := fmt.Sprint(c, "/", i), strings.Repeat(fmt.Sprint(c), 40*i)
				_, err := command(t, ia, addr, "put", key, value)
				assert.NoError(t, err)
				got, err := command(t, ia, addr, "get", key)
				assert.NoError(t, err)
				assert.Equal(t, value, got)
			}
		})
	}
	wg.Wait()
}

func TestAClientThatBreaksTheProtocolHarmsNoOther(t *testing.T) {
	ia, addr := start(t, "loop")
	for _, request := range []string{
		"", "p", "delete\x00k", "put\x00k\x00", "put\x00k\x00value", "put\x00k\x00#", "put\x00k\x00#x", "put\x00k\x00#0",
		"put\x00k\x00#-1", "put\x00k\x00#1048577", "put\x00k\x00#99999999999999999999",
	} {
		c, err := ia.Dial(t.Context(), addr, dat.ConnConfig{})
		require.NoError(t, err)
		require.NoError(t, c.SendBytes([]byte(request)))
		b, err := c.Receive(t.Context())
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(b.Bytes()), "!"), "%q", request)
		c.Release(b)
		require.NoError(t, c.Close())
	}
	// A client that reads beyond its window loses its connection.
	c, err := ia.Dial(t.Context(), addr, dat.ConnConfig{})
	require.NoError(t, err)
	window, err := dat.ParseRemoteSegment(c.Private())
	require.NoError(t, err)
	memory, err := c.Alloc(2*longest, dat.LocalWrite)
	require.NoError(t, err)
	window.Len = 2 * longest
	require.Error(t, c.Do(t.Context(), dat.DTO{Op: dat.OpRead, Segment: memory.Segment(0, 2*longest), Remote: window}))
	require.NoError(t, c.Close())

	_, err = command(t, ia, addr, "put", "k", strings.Repeat("v", short+1))
	require.NoError(t, err)
}

// process starts a server in a process of its own. stop ends the server and waits for it.
func process(t *testing.T) (addr string, stop func() error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	server := exec.Command(self)
	server.Env = append(os.Environ(), "KV_TEST_SERVE=127.0.0.1:0")
	server.Stderr = os.Stderr
	stdin, err := server.StdinPipe()
	require.NoError(t, err)
	stdout, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	_, err = fmt.Fscanln(stdout, &addr)
	require.NoError(t, err)
	return addr, func() error { return errors.Join(stdin.Close(), server.Wait()) }
}

func TestTwoProcessesShareAStore(t *testing.T) {
	addr, stop := process(t)
	ia, err := dat.Open(t.Context(), "iwarp")
	require.NoError(t, err)
	long := strings.Repeat("long ", 1000)
	_, err = command(t, ia, addr, "put", "k", long)
	require.NoError(t, err)
	got, err := command(t, ia, addr, "get", "k")
	require.NoError(t, err)
	assert.Equal(t, long, got)
	_, err = command(t, ia, addr, "get", "another")
	require.ErrorContains(t, err, "no such key")
	require.NoError(t, ia.CloseGraceful())
	require.NoError(t, stop())
}

// The server shows its memory to every client, so any may write there with immediate data.
func TestAWriteWithImmediateDataIsNoRequest(t *testing.T) {
	addr, stop := process(t)
	ia, err := dat.Open(t.Context(), "iwarp")
	require.NoError(t, err)
	c, err := ia.Dial(t.Context(), addr, dat.ConnConfig{})
	require.NoError(t, err)
	window, err := dat.ParseRemoteSegment(c.Private())
	require.NoError(t, err)
	memory, err := c.Alloc(longest, dat.LocalRead)
	require.NoError(t, err)
	ask := func() string {
		require.NoError(t, c.SendBytes([]byte("get\x00k")))
		b, err := c.Receive(t.Context())
		require.NoError(t, err)
		defer c.Release(b)
		return string(b.Bytes())
	}
	for i := range 50 { // more than there are receives
		n := []int{0, 16, 8192, longest}[i%4]
		require.NoError(t, c.Do(t.Context(), dat.DTO{
			Op: dat.OpWriteImm, Immediate: 1, Segment: memory.Segment(0, n), Remote: window.Slice(0, n),
		}))
		require.Equal(t, "!no such key", ask(), "the write is no message, and takes no place of one")
	}
	require.NoError(t, c.Close())
	require.NoError(t, ia.CloseGraceful())
	require.NoError(t, stop())
}
