// Package versions lets ends of two versions of the library meet: the one before, this one, and one that is yet to come.
package versions

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/check/trees"
)

//go:embed testdata/end.go
var end []byte

// wires are the files that say which versions an end speaks, and how they say it.
var (
	wires = map[string]string{"rpc": "runtime/rpc/wire.go", "stream": "runtime/stream/wire.go"}
	speak = regexp.MustCompile(`oldest, newest = (\d+), (\d+)`)
)

// build builds the end of a tree.
func build(t *testing.T, tree string) string {
	dir := filepath.Join(tree, "runtime", "end")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), end, 0o644))
	return trees.Build(t, dir)
}

// long skips a test that builds programs, where tests are to be short.
func long(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs of other versions")
	}
}

// here builds the end of this tree, which speaks so many more versions at either side.
func here(t *testing.T, older, newer int) string {
	long(t)
	tree := trees.Here(t)
	for _, wire := range wires {
		file := filepath.Join(tree, wire)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := speak.FindSubmatch(text)
		require.NotNil(t, found, wire)
		least, _ := strconv.Atoi(string(found[1]))
		most, _ := strconv.Atoi(string(found[2]))
		text = speak.ReplaceAll(text, fmt.Appendf(nil, "oldest, newest = %d, %d", least-older, most+newer))
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	return build(t, tree)
}

// before builds the end before the version of a wire last changed.
func before(t *testing.T, wire string) string {
	long(t)
	tree := trees.Before(t, "-G", `oldest, newest = `, "--", filepath.Join("..", "..", wires[wire]))
	return build(t, tree)
}

// meet lets a client of one program call a server of another, and returns what the client said.
func meet(t *testing.T, wire, client, server string) (string, error) {
	s := exec.CommandContext(t.Context(), server, "serve")
	until, err := s.StdinPipe()
	require.NoError(t, err)
	said, err := s.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.Start())
	defer func() {
		assert.NoError(t, until.Close())
		_, _ = io.Copy(io.Discard, said)
		assert.NoError(t, s.Wait())
	}()
	var at [2]string
	_, err = fmt.Fscanln(said, &at[0], &at[1])
	require.NoError(t, err)
	address := at[0]
	if wire == "stream" {
		address = at[1]
	}
	out, err := exec.CommandContext(t.Context(), client, wire, address).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// work demands that each program works with each.
func work(t *testing.T, wire string, programs map[string]string) {
	for a, client := range programs {
		for b, server := range programs {
			out, err := meet(t, wire, client, server)
			assert.NoError(t, err, "a client of %s, a server of %s: %s", a, b, out)
		}
	}
}

func TestEndsWorkWithThoseOfTheVersionBefore(t *testing.T) {
	before := map[string]string{"rpc": before(t, "rpc"), "stream": before(t, "stream")} // first, since that may be unknown
	now := here(t, 0, 0)
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			work(t, wire, map[string]string{"this version": now, "the one before": before[wire]})
		})
	}
}

// The test above compares with the commit before a version's number last changed. So it does not see messages that
// have changed since under the same number, which the newest release does not understand.
func TestEndsWorkWithThoseOfTheNewestRelease(t *testing.T) {
	long(t)
	programs := map[string]string{"the newest release": build(t, trees.Release(t)), "this version": here(t, 0, 0)}
	for wire := range wires {
		t.Run(wire, func(t *testing.T) { work(t, wire, programs) })
	}
}

// The next version speaks this one, too. To be sure of that before there is one, this one's numbers are changed.
func TestEndsWorkWithThoseOfTheNextVersion(t *testing.T) {
	programs := map[string]string{"this version": here(t, 0, 0), "the next": here(t, 0, 1)}
	for wire := range wires {
		t.Run(wire, func(t *testing.T) { work(t, wire, programs) })
	}
}

func TestEndsWithoutACommonVersionSayWhichTheySpeak(t *testing.T) {
	now, later := here(t, 0, 0), here(t, -7, 8)
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			for client, server := range map[string]string{now: later, later: now} {
				out, err := meet(t, wire, client, server)
				assert.Error(t, err)
				assert.Regexp(t, `speaks versions? [\d to]+.*, and this end versions? [\d to]+`, out)
			}
		})
	}
}
