package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/identity"
	"godat/examples/volume/journal"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/replica"
	"godat/examples/volume/state"
)

// small are the options of a small volume's first node.
func small() *volumeOptions {
	return &volumeOptions{ID: 1, Peers: "1=127.0.0.1:7001,2=127.0.0.1:7002", Size: "1M", Slots: 1, SlotSize: "64K"}
}

// made is a node's directory.
func made(t *testing.T, o *volumeOptions) (dir string, tok token) {
	dir = filepath.Join(t.TempDir(), "node")
	tok, err := create(t.Context(), o, dir)
	require.NoError(t, err)
	return dir, tok
}

func TestEachVolumeHasAnIdentityOfItsOwnThatItsNodesShare(t *testing.T) {
	dir, first := made(t, small())
	_, other := made(t, small())
	require.NotEqual(t, first.Volume, other.Volume)
	text, err := os.ReadFile(filepath.Join(dir, "token"))
	require.NoError(t, err)
	again, err := parseToken(string(text))
	require.NoError(t, err)
	require.Equal(t, first, again)

	second := small()
	second.ID, second.Token, second.Size, second.Slots, second.SlotSize = 2, first.String(), "", 0, ""
	dir2, same := made(t, second)
	require.Equal(t, first, same)
	a, err := readAbout(dir)
	require.NoError(t, err)
	b, err := readAbout(dir2)
	require.NoError(t, err)
	assert.Equal(t, a.disk(), b.disk())
	assert.Equal(t, a.subsystem(), b.subsystem())
	assert.Equal(t, a.terms(), b.terms())

	beside := small()
	beside.Beside, beside.Namespace = first.String(), 2
	dir3, apart := made(t, beside)
	require.NotEqual(t, first.Volume, apart.Volume)
	c, err := readAbout(dir3)
	require.NoError(t, err)
	assert.Equal(t, a.subsystem(), c.subsystem())
	assert.NotEqual(t, a.disk(), c.disk())
}

func TestATokenWithASlipIsNone(t *testing.T) {
	_, tok := made(t, small())
	text := tok.String()
	for i := range text {
		b := []byte(text)
		b[i] = 'a' + (b[i]-'a'+1)%26
		if got, err := parseToken(string(b)); err == nil {
			assert.Equal(t, tok, got, "bits behind the last byte")
		}
		_, err := parseToken(text[:i])
		require.Error(t, err)
	}
}

func TestCreateTakesNothingThatServeRefuses(t *testing.T) {
	_, tok := made(t, small())
	for why, change := range map[string]func(o *volumeOptions){
		"node 9; there may be":       func(o *volumeOptions) { o.ID, o.Peers = 9, "9=127.0.0.1:1" },
		"not HOST:PORT":              func(o *volumeOptions) { o.Peers = "1=127.0.0.1:1,2=127.0.0.1" },
		"--size is 1000 bytes":       func(o *volumeOptions) { o.Size = "1000" },
		"--slot-size is 4096":        func(o *volumeOptions) { o.SlotSize = "4K" },
		"layout":                     func(o *volumeOptions) { o.SlotSize = "9000" },
		"namespace 129":              func(o *volumeOptions) { o.Namespace = 129 },
		"no node 3":                  func(o *volumeOptions) { o.ID = 3 },
		"--slots: 2 here, 1 in the":  func(o *volumeOptions) { o.Slots, o.Token = 2, tok.String() },
		"--size: 2097152 here, 104":  func(o *volumeOptions) { o.Size, o.Token = "2M", tok.String() },
		"--peers are not those":      func(o *volumeOptions) { o.Peers, o.Token = "1=127.0.0.1:7001,2=127.0.0.1:7003", tok.String() },
		"no token":                   func(o *volumeOptions) { o.Token = "abc" },
		"or another --size":          func(o *volumeOptions) { o.Size = "900T" },
		"--beside is for the first ": func(o *volumeOptions) { o.Token, o.Beside = tok.String(), tok.String() },
	} {
		o := small()
		change(o)
		dir := filepath.Join(t.TempDir(), "node")
		_, err := create(t.Context(), o, dir)
		require.ErrorContains(t, err, why)
		require.NoDirExists(t, dir, "a create that fails leaves nothing")
	}
}

func TestOfSeveralCreatesOneMakesTheDirectory(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "node")
		made := make(chan error)
		const all = 4
		for range all {
			go func() {
				_, err := create(t.Context(), small(), dir)
				made <- err
			}()
		}
		var failed []error
		for range all {
			if err := <-made; err != nil {
				failed = append(failed, err)
			}
		}
		require.Len(t, failed, all-1, failed)
		require.NoError(t, served(t, dir))
	}
}

func TestACreateThatIsInterruptedLeavesNothing(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	dir := filepath.Join(t.TempDir(), "node")
	_, err := create(ctx, small(), dir)
	require.ErrorIs(t, err, context.Canceled)
	require.NoDirExists(t, dir)
}

func TestADirectoryThatLostSomethingIsRefusedInWords(t *testing.T) {
	for name, x := range map[string]struct {
		lose func(dir string) error
		why  string
	}{
		"half a disk":      {func(dir string) error { return os.Truncate(filepath.Join(dir, "disk"), 1<<19) }, "volume.json says"},
		"a longer disk":    {func(dir string) error { return os.Truncate(filepath.Join(dir, "disk"), 1<<23) }, "volume.json says"},
		"half a journal":   {func(dir string) error { return os.Truncate(filepath.Join(dir, "journal"), 4096) }, "volume.json says"},
		"no disk":          {func(dir string) error { return os.Remove(filepath.Join(dir, "disk")) }, "no such file"},
		"a disk of zeros":  {func(dir string) error { return zeros(filepath.Join(dir, "disk"), state.Size(1<<20)) }, "lost its marks"},
		"no log":           {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "log")) }, "log"},
		"no file of a log": {func(dir string) error { return removeAll(filepath.Join(dir, "log", "*.wal")) }, raftlog.ErrLost.Error()},
		"nor its witness": {func(dir string) error {
			return errors.Join(removeAll(filepath.Join(dir, "log", "*.wal")), removeAll(filepath.Join(dir, "log", "*.kept")))
		}, raftlog.ErrLost.Error()},
		"an emptied index":   {func(dir string) error { return os.Truncate(filepath.Join(dir, "log", "wal-meta.db"), 0) }, raftlog.ErrLost.Error()},
		"an index cut":       {func(dir string) error { return os.Truncate(filepath.Join(dir, "log", "wal-meta.db"), 8192) }, "wal-meta.db is damaged"},
		"a page of an index": {func(dir string) error { return os.Truncate(filepath.Join(dir, "log", "wal-meta.db"), 4096) }, "wal-meta.db: file size too small"},
		"an index of noise":  {func(dir string) error { return noise(filepath.Join(dir, "log", "wal-meta.db")) }, "wal-meta.db is damaged"},
		"no index":           {func(dir string) error { return os.Remove(filepath.Join(dir, "log", "wal-meta.db")) }, raftlog.ErrLost.Error()},
		"no identity": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "volume.json"), []byte(`{"ID":1}`), 0o600)
		}, "Make the volume anew"},
		"another's disk":    {func(dir string) error { return anothers(t, dir, "disk") }, "of volume"},
		"another's journal": {func(dir string) error { return anothers(t, dir, "journal") }, "of volume"},
		"another's log":     {func(dir string) error { return anothers(t, dir, "log/wal-meta.db") }, "of volume"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := made(t, small())
			keepOne(t, dir)
			require.NoError(t, x.lose(dir))
			require.ErrorContains(t, served(t, dir), x.why)
		})
	}
}

// noise changes all of a file behind its first two pages.
func noise(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i := 8192; i < len(b); i++ {
		b[i] ^= 0xa5
	}
	return os.WriteFile(path, b, 0o600)
}

// keepOne gives the log a record.
func keepOne(t *testing.T, dir string) {
	f, err := openFiles(dir)
	require.NoError(t, err)
	require.NoError(t, f.log.Append(oneRecord))
	require.NoError(t, f.close())
}

// served opens a directory as serve does.
func served(t *testing.T, dir string) error {
	f, err := openFiles(dir)
	if err != nil {
		return err
	}
	err = openReplica(f)
	require.NoError(t, f.close())
	return err
}

func zeros(path string, n int) error { return os.WriteFile(path, make([]byte, n), 0o600) }

func removeAll(pattern string) error {
	names, err := filepath.Glob(pattern)
	for _, name := range names {
		if err == nil {
			err = os.Remove(name)
		}
	}
	return err
}

// anothers puts a file of another volume in the place of a directory's.
func anothers(t *testing.T, dir, name string) error {
	from, _ := made(t, small())
	b, err := os.ReadFile(filepath.Join(from, name))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
	}
	return err
}

func TestADirectoryOfBeforeGetsABirthThatStays(t *testing.T) {
	dir, _ := made(t, small())
	a, err := readAbout(dir)
	require.NoError(t, err)
	require.NotZero(t, a.Birth)
	a.Birth = 0
	require.NoError(t, writeWhole(filepath.Join(dir, "volume.json"), &a))
	var births []uint64
	for range 2 {
		f, err := openFiles(dir)
		require.NoError(t, err)
		births = append(births, f.about.Birth)
		require.NoError(t, f.close())
	}
	assert.NotZero(t, births[0])
	assert.Equal(t, births[0], births[1])
}

func TestAnIdentityIsWrittenAsText(t *testing.T) {
	dir, tok := made(t, small())
	b, err := os.ReadFile(filepath.Join(dir, "volume.json"))
	require.NoError(t, err)
	assert.True(t, strings.Contains(string(b), identity.ID(tok.Volume).String()))
}

var oneRecord = []replica.Record{{Index: 1, Term: 1}}

// openReplica opens the replica of a directory, as a node does.
func openReplica(f *files) error {
	j, err := journal.Open(f.journal, f.about.Layout)
	if err == nil {
		_, err = replica.Open(j, f.disk, f.log)
	}
	return err
}
