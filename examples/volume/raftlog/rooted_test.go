package raftlog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/replica"
)

// names are those of a directory's files of records, and of their witnesses.
func names(t *testing.T, dir string) (all []string) {
	for _, of := range []string{"*.wal", "*.kept"} {
		some, err := filepath.Glob(filepath.Join(dir, of))
		require.NoError(t, err)
		for _, name := range some {
			all = append(all, filepath.Base(name))
		}
	}
	return all
}

func TestALogStaysInItsDirectoryWhereverThatIsMoved(t *testing.T) {
	const records = 100
	dir, other := filepath.Join(t.TempDir(), "log"), t.TempDir()
	require.NoError(t, os.Mkdir(dir, 0o700))
	l, err := Open(dir, Config{Segment: shortSegment})
	require.NoError(t, err)
	add := func(first, last uint64) {
		for index := first; index <= last; index++ {
			require.NoError(t, l.Append([]replica.Record{{Index: index, Term: 1, Data: make([]byte, 100)}}))
		}
	}
	add(1, 1)
	moved := dir + ".moved"
	require.NoError(t, os.Rename(dir, moved))
	require.NoError(t, os.Rename(other, dir))
	add(2, records)
	l.SetFloor(records - 10)
	require.NoError(t, l.Begin(records-10, 1)) // which removes files
	require.NoError(t, l.Close())
	assert.Empty(t, names(t, dir), "nothing comes to the directory that is in its place")
	assert.Greater(t, len(names(t, moved)), 2)

	l, err = Open(moved, Config{Segment: shortSegment, Made: true})
	require.NoError(t, err)
	first, last := l.Bounds()
	assert.Equal(t, [2]uint64{records - 9, records}, [2]uint64{first, last})
	require.NoError(t, l.Close())
}

func TestADirectoryThatIsNotTheOneThatIsOpenIsNamed(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	require.NoError(t, Same(root, dir))
	require.ErrorIs(t, Same(root, t.TempDir()), errExchanged)
	require.ErrorIs(t, Same(root, filepath.Join(dir, "gone")), errExchanged)
}

func TestALogWhoseFilesAndWitnessesAreGoneIsLost(t *testing.T) {
	for _, records := range []uint64{1, 100} { // in one file, and in several
		dir := t.TempDir()
		open := func(made bool) (*Log, error) { return Open(dir, Config{Segment: shortSegment, Made: made}) }
		l, err := open(false)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		for _, name := range names(t, dir) { // a power cut may do that before there are records
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
		l, err = open(true)
		require.NoError(t, err)
		for index := range records {
			require.NoError(t, l.Append([]replica.Record{{Index: index + 1, Term: 1, Data: make([]byte, 100)}}))
		}
		require.NoError(t, l.Close())
		l, err = open(true)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		for _, name := range names(t, dir) {
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
		_, err = open(true)
		require.ErrorIs(t, err, ErrLost)
	}
}
