package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/examples/blockstore/block"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "blocks.db"), ReadWrite)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func blockOf(text string) Block {
	return Block{ID: block.IDOf([]byte(text)), Data: []byte(text)}
}

func TestAReopenedStoreHasItsBlocksAndRoot(t *testing.T) {
	s := newStore(t)
	one, two := blockOf("one"), blockOf("two")
	require.NoError(t, s.Put([]Block{one, two, one}), "twice in one call is once")
	require.NoError(t, s.Put([]Block{two}))
	require.NoError(t, s.SetRoot(two.ID))
	require.NoError(t, s.Close())

	s, err := Open(s.Path(), ReadOnly)
	require.NoError(t, err)
	buf := make([]byte, 16)
	for _, b := range []Block{one, two} {
		n, err := s.Get(b.ID, buf)
		require.NoError(t, err)
		assert.Equal(t, b.Data, buf[:n])
	}
	root, err := s.Root()
	require.NoError(t, err)
	assert.Equal(t, two.ID, root)
	assert.Error(t, s.SetRoot(one.ID), "it is open for reading only")
	require.NoError(t, s.Close())
	require.NoError(t, s.Remove())
	require.NoFileExists(t, s.Path())
}

func TestAnEmptyStoreFindsNothing(t *testing.T) {
	s := newStore(t)
	_, err := s.Get(blockOf("x").ID, make([]byte, 8))
	require.ErrorIs(t, err, ErrNotFound)
	_, err = s.Root()
	require.ErrorIs(t, err, ErrNotFound)
}

func TestABlockLongerThanItsBufferIsDamage(t *testing.T) {
	s := newStore(t)
	b := blockOf("0123456789")
	require.NoError(t, s.Put([]Block{b}))
	_, err := s.Get(b.ID, make([]byte, 9))
	require.ErrorIs(t, err, ErrDamaged)
}

func TestAStoreIsOpenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // Open waits for the lock
		s := newStore(t)
		_, err := Open(s.Path(), ReadWrite)
		require.ErrorContains(t, err, "in use by another process")
	})
}

func TestOpeningForReadingMakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.db")
	_, err := Open(path, ReadOnly)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoFileExists(t, path)
}

func TestAFileThatIsNoStoreIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text.db")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("text "), 4096), 0o600))
	_, err := Open(path, ReadOnly)
	require.ErrorIs(t, err, ErrDamaged)
}

// A flipped byte anywhere in the file leads to an error, or to a wrong block, which its
// ID reveals; it never crashes the program.
func TestADamagedStoreReturnsErrors(t *testing.T) {
	s := newStore(t)
	var blocks []Block
	for i := range 64 {
		blocks = append(blocks, blockOf(string(bytes.Repeat([]byte{byte(i)}, 300+i))))
	}
	require.NoError(t, s.Put(blocks))
	require.NoError(t, s.Close())
	whole, err := os.ReadFile(s.Path())
	require.NoError(t, err)
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	noticed := 0
	for at := 0; at < len(whole); at += 397 {
		bad := bytes.Clone(whole)
		bad[at] ^= 0xff
		require.NoError(t, os.WriteFile(damaged, bad, 0o600))
		if !readsBack(damaged, blocks) {
			noticed++
		}
	}
	assert.NotZero(t, noticed)
}

// readsBack reports whether all blocks come back unchanged.
func readsBack(path string, blocks []Block) bool {
	s, err := Open(path, ReadOnly)
	if err != nil {
		return false
	}
	defer s.Close()
	buf := make([]byte, 4096)
	for _, b := range blocks {
		n, err := s.Get(b.ID, buf)
		if err != nil || block.IDOf(buf[:n]) != b.ID {
			return false
		}
	}
	return true
}
