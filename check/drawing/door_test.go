package drawing

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What stands on the library as a program does shows what a program can: it has no door of its own.
func TestWhatStandsOnTheLibraryHasNoDoor(t *testing.T) {
	for _, room := range []string{"runtime/stream", "runtime/rpc", "runtime/inspect", "examples/bytestream"} {
		files := sources(t, room, "*.go")
		assert.NotEmpty(t, files, room)
		for _, file := range files {
			assert.NotContains(t, importsOf(t, file), "godat/internal/door", file)
			assert.NotContains(t, importsOf(t, file), "godat/internal/delivery", file)
		}
	}
}

// What a Conn has of its own it gets when it is made, in one place.
func TestAConnGoesThroughDoorsWhenItIsMade(t *testing.T) {
	files := append(sources(t, "runtime", "conn*.go"), sources(t, "runtime", "drain.go")...)
	assert.Greater(t, len(files), 5)
	for _, file := range files {
		if filepath.Base(file) != "connconfig.go" {
			assert.NotContains(t, importsOf(t, file), "godat/internal/door", file)
		}
	}
}

// sources are the files of a room that are no tests.
func sources(t *testing.T, room, pattern string) []string {
	files, err := filepath.Glob(filepath.Join(root, room, pattern))
	require.NoError(t, err)
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}

func importsOf(t *testing.T, file string) (paths []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	require.NoError(t, err)
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		paths = append(paths, path)
	}
	return paths
}
