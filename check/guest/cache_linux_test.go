package guest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func fill(text string) func(string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644) }
}

func TestConcurrentCallersOfTheCacheMakeATreeOnce(t *testing.T) {
	c := cache{root: filepath.Join(t.TempDir(), "cache")}
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			tree, release, err := c.acquire(t.Context(), "v1", func(dir string) error {
				made.Add(1)
				return fill("x")(dir)
			})
			if assert.NoError(t, err) {
				assert.FileExists(t, filepath.Join(tree, "file"))
				release()
			}
		}()
	}
	wg.Wait()
	assert.EqualValues(t, 1, made.Load())
}

func TestCacheKeepsNothingOfAFailedAttempt(t *testing.T) {
	c := cache{root: t.TempDir()}
	bad := errors.New("no network")
	_, _, err := c.acquire(t.Context(), "v1", func(dir string) error { return errors.Join(fill("half")(dir), bad) })
	require.ErrorIs(t, err, bad)

	require.NoError(t, os.Mkdir(filepath.Join(c.root, "v1.new"), 0o755)) // as one that was killed leaves it
	tree, release, err := c.acquire(t.Context(), "v1", func(dir string) error {
		assert.NoFileExists(t, filepath.Join(dir, "file"))
		return fill("whole")(dir)
	})
	require.NoError(t, err)
	defer release()
	text, err := os.ReadFile(filepath.Join(tree, "file"))
	require.NoError(t, err)
	assert.Equal(t, "whole", string(text))
}

func TestCacheRemovesStaleTreesThatAreUnused(t *testing.T) {
	c := cache{root: t.TempDir()}
	unused, release, err := c.acquire(t.Context(), "v1", fill("1"))
	require.NoError(t, err)
	release()
	used, release, err := c.acquire(t.Context(), "v2", fill("2"))
	require.NoError(t, err)
	defer release()
	assert.NoDirExists(t, unused)

	_, release3, err := c.acquire(t.Context(), "v3", fill("3"))
	require.NoError(t, err)
	defer release3()
	assert.FileExists(t, filepath.Join(used, "file"))
}

func TestCacheDoesNotWaitForAnotherLongerThanItsContext(t *testing.T) {
	c := cache{root: t.TempDir()}
	alone, err := tryLock(filepath.Join(c.root, "v1.lock"), true)
	require.NoError(t, err)
	defer alone.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, _, err = c.acquire(ctx, "v1", fill("x"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestACallerThatWaitsForAnotherProcessSaysSoOnce(t *testing.T) {
	var said bytes.Buffer
	c := cache{root: t.TempDir(), progress: &said}
	other, err := tryLock(filepath.Join(c.root, "v1"+lockSuffix), true)
	require.NoError(t, err)
	defer other.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockRetry)
	defer cancel()
	_, _, err = c.acquire(ctx, "v1", fill("1"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, "guest: another process makes or uses v1 in "+c.root+": waiting for it\n", said.String())
}
