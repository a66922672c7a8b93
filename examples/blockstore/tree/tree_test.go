package tree

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/blockstore/block"
)

func TestScanListsRegularFilesInOrder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "b", "deep"), 0o755))
	for name, size := range map[string]int{"b/deep/x": 3, "a": 0, "c": 70_000} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), make([]byte, size), 0o600))
	}
	links := 0
	if os.Symlink("a", filepath.Join(dir, "link")) == nil { // some systems refuse
		links = 1
	}
	files, passed, err := Scan(dir)
	require.NoError(t, err)
	assert.Equal(t, []Found{{"a", 0}, {"b/deep/x", 3}, {"c", 70_000}}, files)
	assert.Equal(t, links, passed)

	_, _, err = Scan(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func someFiles() []File {
	one, two := block.IDOf([]byte("one")), block.IDOf([]byte("two"))
	return []File{
		{Path: "empty", Sum: sha256.Sum256(nil)},
		{Path: "dir/a file", Size: 6, Sum: sha256.Sum256([]byte("onetwo")), Blocks: []block.ID{one, two}},
	}
}

func TestAnEncodedManifestIsParsedToItself(t *testing.T) {
	for name, files := range map[string][]File{"no files": {}, "an empty one and another": someFiles()} {
		t.Run(name, func(t *testing.T) {
			b, err := AppendManifest(nil, files)
			require.NoError(t, err)
			got, err := ParseManifest(b)
			require.NoError(t, err)
			assert.Equal(t, files, got)
		})
	}
	_, err := AppendManifest(nil, []File{{Path: strings.Repeat("x", 1<<16)}})
	require.Error(t, err, "the path does not fit")
}

func TestRootFillsABlockAndNoMore(t *testing.T) {
	r := Root{Sum: sha256.Sum256(nil), Blocks: make([]block.ID, MaxRootBlocks(4096))}
	b := r.Append(nil)
	assert.LessOrEqual(t, len(b), 4096)
	assert.Greater(t, len(b)+len(block.ID{}), 4096)
	got, err := ParseRoot(b)
	require.NoError(t, err)
	assert.Equal(t, r, got)
}

func TestAManifestThatIsCutOffIsRefused(t *testing.T) {
	manifest, err := AppendManifest(nil, someFiles())
	require.NoError(t, err)
	for n := range manifest {
		_, err := ParseManifest(manifest[:n])
		require.ErrorIs(t, err, ErrMalformed, "%d bytes", n)
	}
	root := Root{Blocks: make([]block.ID, 2)}.Append(nil)
	for n := range root {
		_, err := ParseRoot(root[:n])
		require.ErrorIs(t, err, ErrMalformed, "%d bytes", n)
	}
	_, err = ParseManifest(append(manifest, 0))
	require.ErrorIs(t, err, ErrMalformed)
	_, err = ParseRoot(append(root, 0))
	require.ErrorIs(t, err, ErrMalformed)
}

func TestImpossibleCountsAreRefusedBeforeAllocating(t *testing.T) {
	manifest := binary.BigEndian.AppendUint32([]byte(manifestMagic), 1<<31)
	_, err := ParseManifest(append(manifest, make([]byte, 64)...))
	require.ErrorIs(t, err, ErrMalformed)
	_, err = ParseRoot(Root{}.Append(nil))
	require.ErrorIs(t, err, ErrMalformed, "a root without blocks")
}

func FuzzParseManifest(f *testing.F) {
	seed, err := AppendManifest(nil, someFiles())
	require.NoError(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := ParseManifest(b)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		again, err := AppendManifest(nil, files)
		require.NoError(t, err)
		require.Equal(t, b, again, "one manifest has one encoding")
	})
}
