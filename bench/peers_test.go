package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/report"
)

func TestTheRowsOfTheModuleAreShown(t *testing.T) {
	rows, err := json.Marshal(cannedReport(report.Peers, 1000, 1000, 1000, 1000, 1000, 1000).Rows)
	require.NoError(t, err)
	var out bytes.Buffer
	dir := moduleOf(t, fmt.Sprintf("fmt.Fprintln(os.Stderr, os.Args[1:])\nfmt.Println(%q)", rows))
	require.NoError(t, run([]string{"--repeats=6", "peers", "--module=" + dir, "--format=markdown"}, &out))
	assert.Contains(t, out.String(), "| channel | ")
	assert.Contains(t, out.String(), "round trips of 0 bytes, 0 outstanding")
	err = run([]string{"peers", "--module=" + moduleOf(t, `fmt.Println("hello")`)}, io.Discard)
	require.ErrorContains(t, err, "has printed no rows")
}

func TestPeersThatCannotBeMeasuredAreRefused(t *testing.T) {
	for args, why := range map[string]string{"--size=0": "from 1 to", "--size=2000000": "from 1 to", "--depth=0": "from 1 to", "--mode=telepathy": "no mode"} {
		err := run(append([]string{"peers", "--module=nowhere"}, strings.Fields(args)...), io.Discard)
		assert.ErrorContains(t, err, why, args)
	}
}

func TestAModuleThatCannotBeBuiltSaysWhy(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module broken\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { nothing() }\n"), 0o600))
	assert.ErrorContains(t, run([]string{"peers", "--module=" + dir}, io.Discard), "undefined: nothing")
}
