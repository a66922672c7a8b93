package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/examples/blockstore/archive"
)

// With the variable asProgram, the test binary runs the program. The goroutine pool
// that runtime uses starts two goroutines when it is imported.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// content are the files that the tests store: empty ones, one of exactly a block, one
// of a block and a byte, one that is in two places.
var content = map[string][]byte{
	"empty":           nil,
	"a/empty too":     nil,
	"a/one":           []byte("small, and unlike the others"),
	"a/b/block":       random(4096),
	"a/b/block and 1": random(4097),
	"large":           random(300_000),
	"same 1":          []byte("the same in both"),
	"same 2":          []byte("the same in both"),
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

func newTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range content {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	return dir
}

func newOptions(t *testing.T, args ...string) *options {
	t.Helper()
	o := parse(append([]string{"-block", "4096", "-depth", "4", "-clients", "2", "-stall", "10s"}, args...))
	require.NoError(t, o.Validate())
	return o
}

// stored returns a store that has the tree.
func stored(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "blocks.db")
	require.NoError(t, run(t.Context(), newOptions(t, "-dir", newTree(t), "-store", path), io.Discard))
	return path
}

func TestATreeComesBackFromAReopenedStore(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), newOptions(t, "-dir", newTree(t)), &out))
	assert.Contains(t, out.String(), "8 files, 308253 bytes\n")
	assert.Contains(t, out.String(), "verified 8 files, 308253 bytes")
	for _, column := range []string{"store", "read back", "MB/s", "ops/s", "p50", "p99.9"} {
		assert.Contains(t, out.String(), column)
	}
}

func TestAKeptStoreCanBeVerifiedAgain(t *testing.T) {
	path := stored(t)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), newOptions(t, "-verify", "-store", path), &out))
	assert.Contains(t, out.String(), "verified 8 files")
}

func TestStoringAgainMakesTheNewTreeTheRoot(t *testing.T) {
	path := stored(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "only"), []byte("one"), 0o600))
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), newOptions(t, "-dir", dir, "-store", path), &out))
	assert.Contains(t, out.String(), "verified 1 files, 3 bytes")
}

func TestAnEmptyTreeIsStoredAndReadBack(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), newOptions(t, "-dir", t.TempDir()), &out))
	assert.Contains(t, out.String(), "verified 0 files, 0 bytes")
}

func TestOneFlippedByteIsFoundAndItsFileNamed(t *testing.T) {
	path := stored(t)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		text []byte
		want []string
	}{
		"in a small file":            {content["a/one"], []string{"a/one"}},
		"in the last of many blocks": {content["large"][299_990:], []string{"large"}},
		"in a block of two files":    {content["same 1"], []string{"same 1", "same 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			// bbolt may have left copies of it on free pages: flip all of them.
			bad := bytes.Clone(whole)
			for from := 0; ; {
				i := bytes.Index(bad[from:], tc.text)
				if i < 0 {
					break
				}
				from += i
				bad[from] ^= 0x01
			}
			require.NotEqual(t, whole, bad)
			damaged := filepath.Join(t.TempDir(), "damaged.db")
			require.NoError(t, os.WriteFile(damaged, bad, 0o600))

			err := run(t.Context(), newOptions(t, "-verify", "-store", damaged), io.Discard)
			var damage *archive.DamageError
			require.ErrorAs(t, err, &damage)
			var names []string
			for _, f := range damage.Files {
				names = append(names, f.File)
				assert.ErrorContains(t, err, f.File)
			}
			assert.Equal(t, tc.want, names)
			assert.Equal(t, len(content), damage.Checked, "it goes on after damage")
		})
	}
}

func TestADamagedManifestIsFound(t *testing.T) {
	path := stored(t)
	bad, err := os.ReadFile(path)
	require.NoError(t, err)
	bad = bytes.ReplaceAll(bad, []byte("a/empty too"), []byte("a/empty two"))
	require.NoError(t, os.WriteFile(path, bad, 0o600))
	err = run(t.Context(), newOptions(t, "-verify", "-store", path), io.Discard)
	require.ErrorIs(t, err, archive.ErrDamaged)
	assert.ErrorContains(t, err, "manifest")
}

func TestAFailedRunSaysWhatWasWrong(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such tree":              {[]string{"-dir", missing}, missing},
		"no such store":             {[]string{"-verify", "-store", missing}, missing},
		"no such provider":          {[]string{"-provider", "nothing", "-dir", t.TempDir()}, "nothing"},
		"no server":                 {[]string{"-connect", ":9", "-dir", t.TempDir()}, "connect to :9"},
		"an address without a port": {[]string{"-connect", "somewhere"}, "somewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), newOptions(t, tc.args...), io.Discard)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestTheAdapterOfAServerIsShownInABrowser(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, newOptions(t, "-listen", ":0", "-store", filepath.Join(t.TempDir(), "blocks.db"), "-inspect", "127.0.0.1:0"), in)
	}()
	var at, url string
	_, err := fmt.Fscanf(out, "serving %s on %s\nshown at %s\n", new(string), &at, &url)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url + "?show=listeners")
	require.NoError(t, err)
	page, err := io.ReadAll(answer.Body)
	require.NoError(t, errors.Join(err, answer.Body.Close()))
	assert.Contains(t, string(page), at)
	taken := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	require.Error(t, run(ctx, newOptions(t, "-connect", at, "-inspect", taken), io.Discard), "the address of the page is taken")
	require.Error(t, run(ctx, newOptions(t, "-connect", at, "-traces", t.TempDir()), io.Discard), "there is no page on which traces begin")
	stop()
	require.NoError(t, <-done)
}

func TestContradictoryFlagsAreRefused(t *testing.T) {
	good := options{Clients: 1, Depth: 1, Block: 4096}
	require.NoError(t, good.Validate())
	for name, change := range map[string]func(o *options){
		"no clients":                   func(o *options) { o.Clients = 0 },
		"no depth":                     func(o *options) { o.Depth = 0 },
		"a block of nothing":           func(o *options) { o.Block = 0 },
		"a block too large":            func(o *options) { o.Block = 1 << 30 },
		"verify without a store":       func(o *options) { o.Verify = true },
		"a server that verifies":       func(o *options) { o.Verify, o.Listen, o.Store = true, ":1", "x" },
		"a server without a store":     func(o *options) { o.Listen = ":1" },
		"a page of both ends":          func(o *options) { o.Inspect = ":1" },
		"traces of both ends":          func(o *options) { o.Traces = "x" },
		"a client's store far from it": func(o *options) { o.Connect, o.Store = ":1", "x" },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			change(&o)
			assert.Error(t, o.Validate())
		})
	}
}

func TestFlagsMayHaveOneDash(t *testing.T) {
	assert.Equal(t, []string{"--dir", "x", "--clients=3", "-v", "-", "--", "-1"},
		doubleDashes([]string{"-dir", "x", "--clients=3", "-v", "-", "--", "-1"}))
}

// interrupter is a writer that cancels the context of the program that writes to it.
type interrupter context.CancelFunc

func (i interrupter) Write(b []byte) (int, error) {
	i()
	return len(b), nil
}

func TestAnInterruptEndsTheRunSoonAndCleanly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	// The program's first output names what it is about to store.
	err := run(ctx, newOptions(t, "-dir", newTree(t)), interrupter(cancel))
	require.ErrorIs(t, err, context.Canceled)
}

// lines is a writer that signals when a line with a given word has been written.
type lines struct {
	word string
	seen chan string
}

func (l *lines) Write(b []byte) (int, error) {
	if strings.Contains(string(b), l.word) {
		l.seen <- string(b)
	}
	return len(b), nil
}

func TestServerAndClientCanBeTwoPrograms(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store := filepath.Join(t.TempDir(), "blocks.db")
	serving := &lines{"serving", make(chan string, 1)}
	server := make(chan error, 1)
	go func() { server <- run(ctx, newOptions(t, "-listen", ":4791", "-store", store), serving) }()
	select {
	case <-serving.seen:
	case err := <-server:
		require.NoError(t, err, "the server ended at once")
	case <-time.After(time.Minute):
		require.Fail(t, "the server does not begin")
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), newOptions(t, "-connect", ":4791", "-dir", newTree(t)), &out))
	require.NoError(t, run(t.Context(), newOptions(t, "-connect", ":4791", "-verify"), &out))
	assert.Equal(t, 2, strings.Count(out.String(), "verified 8 files"))
	cancel()
	select {
	case err := <-server:
		require.NoError(t, err, "an interrupt is how a server ends")
	case <-time.After(time.Minute):
		require.Fail(t, "the server does not end")
	}
}
