package iwarp

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The link refers to the whole connection through its token. Only the token's run uses
// that reference: so a sender and a receiver share the link, and nothing else.
func TestOnlyTheTokenUsesTheLinksConnection(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	var users []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), e.Name(), nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "owner" {
					users = append(users, f.Name.Name)
				}
				return true
			})
		}
	}
	assert.ElementsMatch(t, []string{"newConnection", "run"}, users)
}
