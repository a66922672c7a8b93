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

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
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
			require.ErrorContains(t, err, "neither a put nor a get")
			_, err = command(t, ia, addr, "get", strings.Repeat("k", 4097))
			require.ErrorIs(t, err, hw.ErrLength)
			for _, args := range [][]string{nil, {"get"}, {"put", "k"}, {"delete", "k"}, {"get", "k", "v"}} {
				_, err = command(t, ia, addr, args...)
				require.ErrorIs(t, err, errUsage, "%q", args)
			}
			_, err = command(t, ia, "", "get", "k")
			require.ErrorIs(t, err, errUsage, "no address")
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
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			ia, addr := start(t, provider)
			value := strings.Repeat("v", longest)
			_, err := command(t, ia, addr, "put", "k", value)
			require.NoError(t, err)
			c, err := rpc.Dial(t.Context(), ia, addr, rpc.Config{})
			require.NoError(t, err)
			for _, call := range []rpc.Call{
				{},
				{Method: 3},
				{Method: put, Source: mem.RemoteSegment{Len: longest + 1}},
				{Method: get, Payload: []byte("k")}, // without a sink
			} {
				_, err = c.Call(t.Context(), call, nil)
				var refused *rpc.Error
				require.ErrorAs(t, err, &refused, "%+v", call)
			}
			// Memory that is not there breaks the connection, and leaves the key as it is.
			for _, call := range []rpc.Call{
				{Method: put, Payload: []byte("k"), Source: mem.RemoteSegment{Addr: 1, Len: 1000, Context: 1}},
				{Method: get, Payload: []byte("k"), Sink: mem.RemoteSegment{Addr: 1, Len: longest, Context: 1}},
			} {
				_, err = c.Call(t.Context(), call, nil)
				require.ErrorIs(t, err, rpc.ErrEnded)
				require.NoError(t, c.Close())
				c, err = rpc.Dial(t.Context(), ia, addr, rpc.Config{})
				require.NoError(t, err)
			}
			require.NoError(t, c.Close())
			got, err := command(t, ia, addr, "get", "k")
			require.NoError(t, err)
			assert.True(t, value == got)
		})
	}
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
