package runtime

import (
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The package documentation is an index of everything that a program can call.

// handles are the types whose methods are all in the index.
var handles = []string{
	"runtime.IA", "runtime.Conn", "runtime.Listener", "mem.PZ", "mem.LMR", "mem.RMR", "mem.Binding", "mem.Buffer", "mem.BufferPool",
	"ep.Endpoint", "ep.SRQ", "ep.PSP", "ep.RSP", "ep.CSP", "ep.CR", "ep.Outbox",
	"evd.Dispatcher", "evd.Route", "evd.OneShot", "evd.Batch", "evd.CNO", "event.Event",
}

// unlisted are methods that are not in the index: what every type has, and what only
// packages ep and runtime need.
var unlisted = map[string][]string{
	"": {"String", "LogValue"},
}

// indexed returns the names that the index links to.
func indexed(t *testing.T) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`\[([\w.]+)\]`).FindAllStringSubmatch(parsed.Doc.Text(), -1) {
		names = append(names, m[1])
	}
	return names
}

func TestEveryNameOfTheIndexExists(t *testing.T) {
	s := loadSources(t)
	names := indexed(t)
	for _, name := range names {
		of, _, _ := strings.Cut(name, ".")
		if !slices.Contains(tablePackages, of) {
			name = "runtime." + name
		}
		assert.NotNil(t, s.find(name), "doc.go names %s", name)
	}
	assert.Greater(t, len(names), 200)
}

func TestEveryMethodOfAHandleIsInTheIndex(t *testing.T) {
	s, names := loadSources(t), indexed(t)
	for _, handle := range handles {
		obj := s.find(handle)
		require.NotNil(t, obj, handle)
		named, ok := types.Unalias(obj.Type()).(*types.Named)
		require.True(t, ok, handle)
		of := named.Obj()
		for m := range named.Methods() {
			name := of.Pkg().Name() + "." + of.Name() + "." + m.Name()
			if !m.Exported() || behindDoor(m.Type()) || slices.Contains(unlisted[""], m.Name()) || slices.Contains(unlisted[handle], m.Name()) {
				continue
			}
			assert.Contains(t, names, strings.TrimPrefix(name, "runtime."), "doc.go has no line with %s", name)
		}
	}
}
