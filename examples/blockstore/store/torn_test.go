package store

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// An empty file is as good as none: nothing was promised. Every other beginning of a store
// is damage, and says so in words.
func TestEachBeginningOfAFileIsDamageInWords(t *testing.T) {
	s := newStore(t)
	b := blockOf("promised")
	fresh := pages(t, s)
	require.NoError(t, s.Put([]Block{b}))
	require.NoError(t, s.Close())
	s, err := Open(s.Path(), ReadOnly)
	require.NoError(t, err)
	used := pages(t, s)
	require.NoError(t, s.Close())
	require.NoError(t, os.Rename(s.Path(), s.Path()+".used"))
	s, err = Open(s.Path(), ReadWrite)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	for _, x := range []struct {
		path       string
		have, step int // all beginnings of a fresh store, and some of the other
	}{{s.Path(), fresh, 1}, {s.Path() + ".used", used, 61}} {
		for n := x.have - 1; n > 0; n -= x.step {
			require.NoError(t, os.Truncate(x.path, int64(n)))
			for _, mode := range []Mode{ReadOnly, ReadWrite} {
				_, err := Open(x.path, mode)
				require.ErrorIs(t, err, ErrDamaged, "%d bytes", n)
				for _, riddle := range []string{"runtime error", "nil pointer", "EOF"} {
					require.NotContains(t, err.Error(), riddle, "%d bytes", n)
				}
			}
			info, err := os.Stat(x.path)
			require.NoError(t, err)
			require.EqualValues(t, n, info.Size(), "nothing was written")
		}
		require.NoError(t, os.Truncate(x.path, 0))
		_, err = Open(x.path, ReadOnly)
		require.ErrorIs(t, err, ErrDamaged)
		anew, err := Open(x.path, ReadWrite)
		require.NoError(t, err)
		require.NoError(t, anew.Put([]Block{b}))
		require.NoError(t, anew.Close())
	}
}

// pages are the bytes of a store's file that it uses.
func pages(t *testing.T, s *Store) (n int) {
	require.NoError(t, s.db.View(func(tx *bbolt.Tx) error {
		n = int(tx.Size())
		return nil
	}))
	return n
}

func TestAStoreIsMadeWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "blocks.db")
	const makers = 8
	var wg sync.WaitGroup
	for range makers {
		wg.Go(func() { assert.NoError(t, create(path)) })
	}
	wg.Wait()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing else is left")
	s, err := Open(path, ReadOnly)
	require.NoError(t, err)
	_, err = s.Root()
	require.ErrorIs(t, err, ErrNotFound, "the file has all that a store has, before it was ever opened to write")
	require.NoError(t, s.Close())
}

func TestAStoreThatExistsIsNotMadeAnew(t *testing.T) {
	s := newStore(t)
	b := blockOf("here")
	require.NoError(t, s.Put([]Block{b}))
	require.NoError(t, create(s.Path()))
	n, err := s.Get(b.ID, make([]byte, 8))
	require.NoError(t, err)
	assert.Equal(t, 4, n)
	require.Error(t, create(filepath.Join(t.TempDir(), "none", "blocks.db")))
}
