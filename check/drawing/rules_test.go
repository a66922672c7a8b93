package drawing

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goroutines says how a package starts goroutines, tests apart.
type goroutines struct {
	starts, hasTests, watched bool     // watched: its tests use goleak
	anonymous                 []string // where one begins whose body has no name
}

func readGoroutines(t *testing.T) map[string]*goroutines {
	all := map[string]*goroutines{}
	eachGo(t, func(file, pkg string) {
		if all[pkg] == nil {
			all[pkg] = &goroutines{}
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		all[pkg].read(files, parsed, strings.HasSuffix(file, "_test.go"))
	})
	return all
}

func (g *goroutines) read(files *token.FileSet, parsed *ast.File, isTest bool) {
	if isTest {
		g.hasTests = true
		for _, spec := range parsed.Imports {
			g.watched = g.watched || spec.Path.Value == `"go.uber.org/goleak"`
		}
		return
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if started, is := n.(*ast.GoStmt); is {
			g.starts = true
			if _, unnamed := started.Call.Fun.(*ast.FuncLit); unnamed {
				g.anonymous = append(g.anonymous, files.Position(started.Pos()).String())
			}
		}
		return true
	})
}

// The library's packages: all but the roof, the programs, and what is for tests alone.
func isLibrary(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return first != "check" && first != "bench" && first != "examples" && pkg != "hw/hwtest" && pkg != "hw/sim" && pkg != "hw/fault"
}

func TestAGoroutinesBodyHasAName(t *testing.T) {
	for pkg, g := range readGoroutines(t) {
		if isLibrary(pkg) {
			assert.Empty(t, g.anonymous, "goroutines of %s", pkg)
		}
	}
}

// Each package with tests, that is: a program which a test of another package runs has none.
func TestAPackageThatStartsGoroutinesLooksForThoseThatAreLeft(t *testing.T) {
	for pkg, g := range readGoroutines(t) {
		if g.starts && (isLibrary(pkg) || g.hasTests) {
			assert.True(t, g.watched, "%s starts goroutines, and its tests don't use goleak", pkg)
		}
	}
}
