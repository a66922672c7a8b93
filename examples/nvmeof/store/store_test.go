package store

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const size = 64 << 10

// stores makes one store of each kind.
func stores(t *testing.T) map[string]Store {
	memory, err := NewMemory(size)
	require.NoError(t, err)
	forgetful, err := NewForgetful(size)
	require.NoError(t, err)
	all := map[string]Store{"memory": memory, "forgetful": forgetful}
	if runtime.GOOS == "linux" {
		all["file"], err = OpenFile(filepath.Join(t.TempDir(), "disk"), size)
		require.NoError(t, err)
	}
	return all
}

func TestARangeThatIsZeroedReadsAsZerosAndItsNeighborsStay(t *testing.T) {
	for name, s := range stores(t) {
		for _, r := range [][2]int{{512, 512}, {4096, 8192}, {0, size}, {size - 512, 512}} {
			m := s.Memory()
			require.Len(t, m, size)
			copy(m, bytes.Repeat([]byte{7}, size))
			require.NoError(t, s.Zero(r[0], r[1]), name)
			want := bytes.Repeat([]byte{7}, size)
			clear(want[r[0] : r[0]+r[1]])
			assert.True(t, bytes.Equal(want, m), "%s, range %v", name, r)
			require.NoError(t, s.Flush(r[0], r[1]), name)
		}
		require.NoError(t, s.Close())
		require.NoError(t, s.Close(), "again")
		require.ErrorIs(t, s.Flush(0, size), ErrClosed)
		require.ErrorIs(t, s.Zero(0, size), ErrClosed)
	}
}

func TestAProbeFindsThePagesThatAreGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	s, err := OpenFile(path, size)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("capability: mapped files")
	}
	require.NoError(t, err)
	p := s.(Prober)
	copy(s.Memory(), "here")
	require.NoError(t, os.Truncate(path, size/2))
	for _, write := range []bool{false, true} {
		require.NoError(t, p.Probe(512, size/2-512, write))
		require.ErrorIs(t, p.Probe(size/2+512, 512, write), ErrUnreadable)
		require.ErrorIs(t, p.Probe(0, size, write), ErrUnreadable)
	}
	assert.Equal(t, "here", string(s.Memory()[:4]), "a probe changes nothing")
	require.ErrorIs(t, s.Zero(size-512, 512), ErrUnreadable)
	require.NoError(t, s.Close())
}

func TestAPowerFailureKeepsWhatWasFlushed(t *testing.T) {
	s, err := NewForgetful(size)
	require.NoError(t, err)
	m := s.Memory()
	copy(m, bytes.Repeat([]byte{1}, size))
	require.NoError(t, s.Flush(0, size/2))
	copy(m[sector:], bytes.Repeat([]byte{2}, sector))
	lost := s.Fail(rand.New(rand.NewPCG(1, 2)))
	assert.True(t, bytes.Equal(bytes.Repeat([]byte{1}, sector), m[:sector]))
	assert.Contains(t, []byte{1, 2}, m[sector], "a sector is the old or the new one")
	assert.True(t, bytes.Equal(bytes.Repeat([]byte{1}, size/2-2*sector), m[2*sector:size/2]))
	assert.Greater(t, lost, size/2/sector/4, "about half of what was not flushed")
	assert.Contains(t, m[size/2:], byte(0))
	assert.Contains(t, m[size/2:], byte(1))
	assert.Zero(t, s.Fail(rand.New(rand.NewPCG(1, 2))), "what is there after a failure is stable")
	require.NoError(t, s.Close())
}

func TestAFileHasWhatWasWrittenWhenItIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	s, err := OpenFile(path, size)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("capability: mapped files")
	}
	require.NoError(t, err)
	_, err = OpenFile(path, size)
	require.ErrorContains(t, err, "another process has it")
	copy(s.Memory()[1000:], "written")
	require.NoError(t, s.Flush(1000, 7))
	onDisk, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "written", string(onDisk[1000:1007]))
	require.NoError(t, s.Close())

	s, err = OpenFile(path, 0)
	require.NoError(t, err)
	assert.Equal(t, "written", string(s.Memory()[1000:1007]))
	assert.Len(t, s.Memory(), size)
	require.NoError(t, s.Close())
	s, err = OpenFile(path, 2*size)
	require.NoError(t, err)
	assert.Len(t, s.Memory(), 2*size)
	require.NoError(t, s.Close())
}

func TestAStoreThatCanNotBeMadeIsAnError(t *testing.T) {
	_, err := NewMemory(0)
	require.Error(t, err)
	_, err = NewForgetful(0)
	require.Error(t, err)
	_, err = OpenFile(filepath.Join(t.TempDir(), "none", "disk"), size)
	require.Error(t, err)
	_, err = OpenFile(filepath.Join(t.TempDir(), "empty"), 0)
	require.Error(t, err)
	if runtime.GOOS == "linux" && math.MaxInt > math.MaxInt32 {
		path := filepath.Join(t.TempDir(), "too long")
		_, err = OpenFile(path, min(1<<60, math.MaxInt))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "bytes more are needed, and its file system has")
		assert.NoFileExists(t, path, "nothing stays of a disk that does not fit")
		require.NoError(t, os.WriteFile(path, []byte("a disk"), 0o600))
		_, err = OpenFile(path, min(1<<60, math.MaxInt))
		require.ErrorIs(t, err, syscall.ENOSPC)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "a disk", string(text), "the file is as it was")
	}
}

func TestAFileThatHasGrownIsServedWithItsLockAndItsContents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	s, err := OpenFile(path, size)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("capability: mapped files")
	}
	require.NoError(t, err)
	copy(s.Memory()[100:], "before")
	same, err := s.(Grower).Grown()
	require.NoError(t, err)
	require.Nil(t, same)
	require.NoError(t, os.Truncate(path, 2*size))
	large, err := s.(Grower).Grown()
	require.NoError(t, err)
	assert.Len(t, large.Memory(), 2*size)
	assert.Equal(t, "before", string(large.Memory()[100:106]))
	copy(s.Memory()[100:], "after ")
	require.NoError(t, s.Close())
	assert.Equal(t, "after ", string(large.Memory()[100:106]))
	require.NoError(t, large.Zero(size, size))
	_, err = OpenFile(path, size)
	require.ErrorContains(t, err, "another process has it")
	require.NoError(t, large.Close())
	_, err = large.(Grower).Grown()
	require.ErrorIs(t, err, ErrClosed)
}
