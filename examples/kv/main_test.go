package main

import (
	"bytes"
	"context"
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

// TestMain is the program itself when a test starts it as a server.
func TestMain(m *testing.M) {
	if addr := os.Getenv("KV_TEST_SERVE"); addr != "" {
		serveParent(addr)
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// serveParent serves, printing where, until standard input ends.
func serveParent(addr string) {
	ctx, stop := context.WithCancel(context.Background())
	ready, done := make(chan string), make(chan error, 1)
	ia, err := dat.Open(ctx, "iwarp")
	if err != nil {
		panic(err)
	}
	go serveTo(ctx, ia, addr, ready, done)
	fmt.Println(<-ready)
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	if err := <-done; err != nil {
		panic(err)
	}
}

// start serves on a provider until the test ends.
func start(t *testing.T, provider string) (ia *dat.IA, addr string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ia, err := dat.Open(ctx, provider)
	require.NoError(t, err)
	ready, done := make(chan string), make(chan error, 1)
	address := ""
	if provider != "loop" {
		address = "127.0.0.1:0"
	}
	go serveTo(ctx, ia, address, ready, done)
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
		require.NoError(t, ia.CloseGraceful(), "the server left something")
	})
	return ia, <-ready
}

func dial(t *testing.T, ia *dat.IA, addr string) *client {
	t.Helper()
	k, err := connect(t.Context(), ia, addr)
	require.NoError(t, err)
	return k
}

func TestWhatWasPutIsGot(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			ia, addr := start(t, provider)
			k := dial(t, ia, addr)
			for _, n := range []int{0, 1, short, short + 1, 100_000, longest} {
				key, value := fmt.Sprint("k", n), bytes.Repeat([]byte{byte(n), 7}, n/2+1)[:n]
				require.NoError(t, k.put(t.Context(), key, value))
				got, err := k.get(t.Context(), key)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(value, got), "%d bytes", n)
			}
			_, err := k.get(t.Context(), "never put")
			require.ErrorIs(t, err, errMissing)
			require.Error(t, k.put(t.Context(), "k", make([]byte, longest+1)))
			require.Error(t, k.put(t.Context(), strings.Repeat("k", 256), nil))
			require.NoError(t, k.close(t.Context()))
		})
	}
}

func TestManyClientsShareAStore(t *testing.T) {
	ia, addr := start(t, "loop")
	var wg sync.WaitGroup
	for c := range 5 {
		wg.Go(func() {
			k, err := connect(t.Context(), ia, addr)
			if !assert.NoError(t, err) {
				return
			}
			for i := range 30 {
				value := bytes.Repeat([]byte{byte(c)}, 40*i)
				key := fmt.Sprint(c, "/", i)
				assert.NoError(t, k.put(t.Context(), key, value))
				got, err := k.get(t.Context(), key)
				assert.NoError(t, err)
				assert.True(t, bytes.Equal(value, got))
			}
			assert.NoError(t, k.close(t.Context()))
		})
	}
	wg.Wait()
}

func TestAClientThatMakesNoSenseHurtsNobody(t *testing.T) {
	ia, addr := start(t, "loop")
	good := dial(t, ia, addr)
	for _, request := range []string{"", "p", "p\x05abc", "x\x00", "g\x01k", "P\x01k" + strings.Repeat("\xff", 16)} {
		k := dial(t, ia, addr)
		b := k.conn.Buffer()
		_, _ = io.WriteString(b, request)
		require.NoError(t, k.conn.Send(b))
		a, err := k.conn.Receive(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, statusBad, a.Bytes()[0], "%q", request)
		k.conn.Release(a)
		require.NoError(t, k.close(t.Context()))
	}
	// Memory that is not there ends the connection, and gives the server's back.
	for range 100 {
		k := dial(t, ia, addr)
		b := k.conn.Buffer()
		_, _ = io.WriteString(b, "P\x01k\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x10\x00\x00\x00\x00\x07")
		require.NoError(t, k.conn.Send(b))
		_, err := k.conn.Receive(t.Context())
		require.Error(t, err)
		require.NoError(t, k.close(t.Context()))
	}
	require.NoError(t, good.put(t.Context(), "k", make([]byte, short+1)))
	require.NoError(t, good.close(t.Context()))
}

func TestTwoProcessesShareAStore(t *testing.T) {
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
	var addr string
	_, err = fmt.Fscanln(stdout, &addr)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	long := strings.Repeat("long ", 1000)
	var out bytes.Buffer
	require.NoError(t, run(ctx, "iwarp", "", addr, []string{"put", "k", long}, &out))
	require.NoError(t, run(ctx, "iwarp", "", addr, []string{"get", "k"}, &out))
	assert.Equal(t, long+"\n", out.String())
	require.ErrorIs(t, run(ctx, "iwarp", "", addr, []string{"get", "another"}, &out), errMissing)
	require.ErrorContains(t, run(ctx, "iwarp", "", addr, []string{"delete", "k"}, &out), "usage")
	require.NoError(t, stdin.Close())
	require.NoError(t, server.Wait())
}

func TestWithoutArgumentsItShowsBothEnds(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "loop", "", "", nil, &out))
	assert.Equal(t, "hello\n", out.String())
}
