package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// cache is the directory that holds one tree per version of the kernel. Beside each
// tree lies a lock file. A guest that uses the tree shares the lock; a caller that
// makes or removes the tree holds it alone. So no tree goes away under a guest, and
// several callers that want the same tree make it once.
type cache struct {
	root     string
	progress io.Writer // is told of a wait for another process; nil discards that
}

const (
	lockSuffix = ".lock"
	newSuffix  = ".new"
	lockRetry  = 100 * time.Millisecond
)

var errLocked = errors.New("guest: locked by another process")

func userCache() (cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return cache{}, fmt.Errorf("guest: no cache directory: %w", err)
	}
	return cache{root: filepath.Join(dir, "godat-guest")}, nil
}

// acquire returns the tree named key, and a function that ends its use. If there is
// no such tree, build fills a directory, which becomes the tree when build has
// succeeded; then acquire removes the unused trees of other names.
func (c cache) acquire(ctx context.Context, key string, build func(dir string) error) (string, func(), error) {
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		return "", nil, fmt.Errorf("guest: cache: %w", err)
	}
	tree := filepath.Join(c.root, key)
	for {
		use, err := c.lock(ctx, key, false)
		if err != nil {
			return "", nil, err
		}
		if _, err := os.Stat(tree); err == nil {
			return tree, func() { _ = use.Close() }, nil
		}
		_ = use.Close()
		if err := c.make(ctx, key, tree, build); err != nil {
			return "", nil, err
		}
	}
}

func (c cache) make(ctx context.Context, key, tree string, build func(dir string) error) error {
	alone, err := c.lock(ctx, key, true)
	if err != nil {
		return err
	}
	defer alone.Close()
	if _, err := os.Stat(tree); err == nil {
		return nil // another caller made the tree while this one waited
	}
	work := tree + newSuffix
	if err := os.RemoveAll(work); err != nil { // the rest of an attempt that was killed
		return fmt.Errorf("guest: cache: %w", err)
	}
	if err := os.Mkdir(work, 0o755); err != nil {
		return fmt.Errorf("guest: cache: %w", err)
	}
	defer os.RemoveAll(work)
	if err := build(work); err != nil {
		return err
	}
	if err := os.Rename(work, tree); err != nil {
		return fmt.Errorf("guest: cache: %w", err)
	}
	c.prune(key)
	return nil
}

// lock waits for the lock of a tree until ctx ends.
func (c cache) lock(ctx context.Context, key string, alone bool) (*os.File, error) {
	for said := c.progress == nil; ; said = true {
		f, err := tryLock(filepath.Join(c.root, key+lockSuffix), alone)
		if !errors.Is(err, errLocked) {
			return f, err
		}
		if !said {
			fmt.Fprintf(c.progress, "guest: another process makes or uses %s in %s: waiting for it\n", key, c.root)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("guest: another process holds the lock of %s in %s: %w", key, c.root, context.Cause(ctx))
		case <-time.After(lockRetry):
		}
	}
}

// prune removes all unused trees but keep. A tree that it can't remove stays until the
// next call.
func (c cache) prune(keep string) {
	entries, err := os.ReadDir(c.root)
	if err != nil {
		return
	}
	for _, e := range entries {
		key, isLock := strings.CutSuffix(e.Name(), lockSuffix)
		if !isLock || key == keep {
			continue
		}
		alone, err := tryLock(filepath.Join(c.root, e.Name()), true)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(filepath.Join(c.root, key))
		_ = os.RemoveAll(filepath.Join(c.root, key+newSuffix))
		_ = alone.Close()
	}
}
