package drawing

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What stands on the library as a program does shows what a program can: it has no door of its own.
func TestWhatStandsOnTheLibraryHasNoDoor(t *testing.T) {
	for _, room := range []string{"runtime/stream", "runtime/rpc", "runtime/inspect", "examples/bytestream"} {
		files, err := filepath.Glob(filepath.Join(root, room, "*.go"))
		require.NoError(t, err)
		looked := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			looked++
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range parsed.Imports {
				assert.NotEqual(t, `"godat/internal/door"`, spec.Path.Value, file)
				assert.NotEqual(t, `"godat/internal/delivery"`, spec.Path.Value, file)
			}
		}
		assert.NotZero(t, looked, room)
	}
}
