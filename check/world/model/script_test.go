package model_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/check/world/model"
)

func TestTheModelImportsOnlyTheStandardLibrary(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		seen++
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range f.Imports {
			assert.NotContains(t, i.Path.Value, ".", "%s imports more than the standard library", name)
			assert.NotContains(t, i.Path.Value, "godat/", "%s", name)
		}
	}
	assert.Greater(t, seen, 5)
}

func TestAParsedScriptPrintsTheSame(t *testing.T) {
	const line = "send p0 cookie=3 flags=SUPPRESS|FENCE local=m0:0+16,m1:-1+4"
	cmds, err := model.Parse("# nothing\n\n  " + line + "  # SUCCESS\n")
	require.NoError(t, err)
	require.Len(t, cmds, 1)
	assert.Equal(t, line, cmds[0].String())
	assert.Equal(t, 3, cmds[0].Int("cookie"))
	assert.Zero(t, cmds[0].Int("imm"))
	assert.Equal(t, 0x01|0x08, cmds[0].Bits("flags", model.Flags))
	segs := cmds[0].Segments("local")
	assert.Equal(t, []model.Segment{{Region: 0, Off: 0, Len: 16}, {Region: 1, Off: -1, Len: 4}}, segs)
	assert.Equal(t, cmds[0].Text("local"), model.JoinSegments(segs))
	for _, bad := range []string{"send", "send p0 now"} {
		_, err := model.Parse(bad)
		assert.Error(t, err, bad)
	}
}
