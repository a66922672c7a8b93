package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// asProgram is the environment variable that makes the test binary run the program.
const asProgram = "OBJECTS_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// serving serves on an adapter until stop is called.
func serving(t *testing.T, ia *dat.IA, address, dir string) (addr string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(ctx, ia, address, dir, out) }()
	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan())
	addr = lines.Text()
	var said sync.WaitGroup
	said.Go(func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	})
	return addr, func() {
		cancel()
		assert.NoError(t, <-done)
		assert.NoError(t, out.Close())
		said.Wait()
	}
}

// onEach runs a test against a server on each provider that needs no device.
func onEach(t *testing.T, test func(t *testing.T, ia *dat.IA, addr, dir string)) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		t.Run(provider, func(t *testing.T) {
			ia, err := dat.Open(t.Context(), provider)
			require.NoError(t, err)
			dir := filepath.Join(t.TempDir(), "store")
			addr, stop := serving(t, ia, "127.0.0.1:0", dir)
			test(t, ia, addr, dir)
			stop()
			require.NoError(t, ia.CloseGraceful(), "the server or a client left something")
		})
	}
}

// command runs a command line of a client, and returns what it prints.
func command(t *testing.T, ia *dat.IA, addr string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	err := ask(ctx, ia, addr, args, &out)
	return out.String(), err
}

// newFile makes a file of n bytes that depend on the seed.
func newFile(t *testing.T, seed byte, n int) (path string, body []byte) {
	t.Helper()
	body = make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(body)
	path = filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(path, body, 0o600))
	return path, body
}

func TestAnObjectComesBackAsItWasPut(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA, addr, dir string) {
		got := filepath.Join(t.TempDir(), "got")
		for i, n := range []int{0, 1, 4096, 5000, 3<<20 + 1} {
			path, body := newFile(t, byte(i), n)
			_, err := command(t, ia, addr, "put", "an object", path)
			require.NoError(t, err)
			for _, part := range [][2]int{{0, n}, {0, 1}, {1, 4096}, {4097, 1 << 20}, {n, 1}, {n + 1, 1}, {0, 0}, {0, math.MaxInt32}} {
				_, err = command(t, ia, addr, "get", "an object", got, fmt.Sprint(part[0]), fmt.Sprint(part[1]))
				require.NoError(t, err)
				have, err := os.ReadFile(got)
				require.NoError(t, err)
				from := min(part[0], n)
				require.True(t, bytes.Equal(body[from:min(from+part[1], n)], have), "%v of %d bytes", part, n)
			}
		}
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 1, "one object, and nothing else")
	})
}

// fullDisk makes a write of this process fail behind n bytes of a file, until stop is called.
func fullDisk(t *testing.T, n uint64) (stop func()) {
	t.Helper()
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	signal.Ignore(syscall.SIGXFSZ)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: before.Max}))
	return func() {
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
		signal.Reset(syscall.SIGXFSZ)
	}
}

func TestAGetThatFindsNoRoomLeavesTheFileAsItWas(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA, addr, _ string) {
		path, body := newFile(t, 1, 1<<20)
		_, err := command(t, ia, addr, "put", "k", path)
		require.NoError(t, err)
		dir := t.TempDir()
		for _, before := range []string{"the old text", ""} {
			got := filepath.Join(dir, "got")
			if before != "" {
				require.NoError(t, os.WriteFile(got, []byte(before), 0o640))
			}
			stop := fullDisk(t, 1<<16)
			_, err = command(t, ia, addr, "get", "k", got)
			stop()
			require.ErrorIs(t, err, syscall.EFBIG)
			have, err := os.ReadFile(got)
			if before == "" {
				require.ErrorIs(t, err, fs.ErrNotExist)
			} else {
				require.NoError(t, err)
				assert.Len(t, have, len(before))
				assert.True(t, before == string(have))
				_, err = command(t, ia, addr, "get", "k", got)
				require.NoError(t, err)
				have, err = os.ReadFile(got)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(body, have))
				info, err := os.Stat(got)
				require.NoError(t, err)
				assert.Equal(t, fs.FileMode(0o640), info.Mode().Perm(), "the file's permissions stay")
			}
			require.NoError(t, os.RemoveAll(got))
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, left)
		}
	})
}

func TestAGetWritesThroughALinkAndIntoAPipe(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA, addr, _ string) {
		path, body := newFile(t, 1, 100)
		_, err := command(t, ia, addr, "put", "k", path)
		require.NoError(t, err)
		dir := t.TempDir()
		link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "behind"), nil, 0o600))
		require.NoError(t, os.Symlink("behind", link))
		_, err = command(t, ia, addr, "get", "k", link)
		require.NoError(t, err)
		have, err := os.ReadFile(filepath.Join(dir, "behind"))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(body, have))
		info, err := os.Lstat(link)
		require.NoError(t, err)
		assert.Equal(t, fs.ModeSymlink, info.Mode().Type())
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		end, err := os.OpenFile(pipe, os.O_RDWR, 0)
		require.NoError(t, err)
		defer end.Close()
		_, err = command(t, ia, addr, "get", "k", pipe)
		require.NoError(t, err)
		have = make([]byte, len(body))
		_, err = io.ReadFull(end, have)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(body, have))
	})
}

func TestAListHasEachNameOnce(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA, addr, _ string) {
		path, _ := newFile(t, 1, 1)
		want := map[string]int{"..": 1, "../../up": 1, "/": 1, "a b": 1, "%2F": 1, "ü": 1}
		for i := range 60 { // more than an answer has
			want[strings.Repeat("n", 100)+fmt.Sprint(i)] = 1
		}
		for name := range want {
			_, err := command(t, ia, addr, "put", name, path)
			require.NoError(t, err, name)
		}
		out, err := command(t, ia, addr, "list")
		require.NoError(t, err)
		got := map[string]int{}
		for name := range strings.Lines(out) {
			got[strings.TrimSuffix(name, "\n")]++
		}
		assert.Equal(t, want, got)
	})
}

func TestWhatIsRefusedSaysWhy(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA, addr, dir string) {
		path, _ := newFile(t, 1, 1)
		for want, args := range map[string][]string{
			"no such object":     {"get", "never put", filepath.Join(t.TempDir(), "got")},
			"no name":            {"put", "", path},
			"name too long":      {"put", strings.Repeat("n", 300), path},
			"numbers of bytes":   {"get", "k", path, "0", "-1"},
			"usage: objects":     {"delete", "k"},
			"no such file or di": {"put", "k", "nowhere"},
		} {
			_, err := command(t, ia, addr, args...)
			assert.ErrorContains(t, err, want, args)
		}
		c, err := rpc.Dial(t.Context(), ia, addr, rpc.Config{})
		require.NoError(t, err)
		assert.ErrorContains(t, c.CallJSON(t.Context(), rpc.Call{Method: 9}, question{}, nil), "no such method")
		_, err = c.Call(t.Context(), rpc.Call{Method: methodGet, Payload: []byte("short")}, nil)
		assert.ErrorContains(t, err, "the question")
		require.NoError(t, c.Close())
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, files, "nothing is left of them")
	})
}

// busy puts objects and gets them until stop is closed: each that was put must be there,
// whole, whatever happens to the server. It returns how often that went well.
func busy(ctx context.Context, t *testing.T, ia *dat.IA, addr, name string, stop <-chan struct{}) (times int) {
	dir := t.TempDir()
	body, got := filepath.Join(dir, "body"), filepath.Join(dir, "got")
	for ; ; times++ {
		select {
		case <-stop:
			return times
		default:
		}
		want := bytes.Repeat(fmt.Appendf(nil, "%s %d\n", name, times), 1+rand.IntN(5000))
		if !assert.NoError(t, os.WriteFile(body, want, 0o600)) ||
			!assert.NoError(t, ask(ctx, ia, addr, []string{"put", name, body}, io.Discard)) ||
			!assert.NoError(t, ask(ctx, ia, addr, []string{"get", name, got}, io.Discard)) {
			return times
		}
		have, err := os.ReadFile(got)
		if !assert.NoError(t, err) || !assert.True(t, bytes.Equal(want, have), "%s, round %d", name, times) {
			return times
		}
	}
}

// underClients lets clients work while rounds are played.
func underClients(t *testing.T, ia *dat.IA, addr string, rounds func(progress func())) {
	const clients = 6
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stop, done := make(chan struct{}), make(chan int, clients)
	for i := range clients {
		go func() { done <- busy(ctx, t, ia, addr, fmt.Sprint("object ", i), stop) }()
	}
	rounds(func() { // waits until the store has taken something
		_, body := newFile(t, 1, 100_000)
		path := filepath.Join(t.TempDir(), "progress")
		require.NoError(t, os.WriteFile(path, body, 0o600))
		for range 3 {
			require.NoError(t, ask(ctx, ia, addr, []string{"put", "progress", path}, io.Discard))
		}
	})
	close(stop)
	for range clients {
		assert.Positive(t, <-done)
	}
}

func TestAServerThatStartsAgainHasLostNothing(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA, _, _ string) {
		dir := filepath.Join(t.TempDir(), "other")
		addr, stop := serving(t, ia, "127.0.0.1:0", dir)
		underClients(t, ia, addr, func(progress func()) {
			for range 8 {
				progress()
				stop()
				_, stop = serving(t, ia, addr, dir)
			}
			progress()
		})
		stop()
	})
}

// The next server starts while the one before still serves.
func TestAServerAwaitsTheEndOfTheOneBefore(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA, _, _ string) {
		dir := filepath.Join(t.TempDir(), "other")
		addr, stop := serving(t, ia, "127.0.0.1:0", dir)
		path, body := newFile(t, 1, 5000)
		_, err := command(t, ia, addr, "put", "k", path)
		require.NoError(t, err)
		stdout, out := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- errors.Join(serve(ctx, ia, addr, dir, out), out.Close()) }()
		lines := bufio.NewScanner(stdout)
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "waiting for the address")
		stop()
		require.True(t, lines.Scan())
		require.Equal(t, addr, lines.Text())
		got := filepath.Join(t.TempDir(), "got")
		_, err = command(t, ia, addr, "get", "k", got)
		require.NoError(t, err)
		have, err := os.ReadFile(got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, have))
		cancel()
		require.False(t, lines.Scan(), lines.Text())
		require.NoError(t, <-done)
	})
}

// program starts a server in a process of its own.
func program(t *testing.T, address, dir string) (server *exec.Cmd, addr string) {
	t.Helper()
	server = exec.Command(os.Args[0], "-provider", "iwarp:127.0.0.1", "-listen", address, "-dir", dir)
	server.Env = append(os.Environ(), asProgram+"=1")
	server.Stderr = os.Stderr
	stdout, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan(), "the server serves")
	go func() { // ends with the process
		for lines.Scan() {
		}
	}()
	return server, lines.Text()
}

func TestAServerThatIsEndedOrKilledHasLostNothing(t *testing.T) {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	foreign := filepath.Join(dir, "notes.put")
	require.NoError(t, os.WriteFile(foreign, nil, 0o600))
	server, addr := program(t, "127.0.0.1:0", dir)
	underClients(t, ia, addr, func(progress func()) {
		for i := range 8 {
			progress()
			signal := []os.Signal{syscall.SIGTERM, syscall.SIGKILL}[i%2]
			require.NoError(t, server.Process.Signal(signal))
			err := server.Wait()
			if signal == syscall.SIGTERM {
				require.NoError(t, err, "a signal is how a server ends")
			}
			server, _ = program(t, addr, dir)
		}
		progress()
	})
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait())
	left, err := filepath.Glob(filepath.Join(dir, unfinished))
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.FileExists(t, foreign, "which no server has made")
	require.NoError(t, ia.CloseGraceful())
}
