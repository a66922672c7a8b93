// Package trees makes copies of the repository's files, of a commit before or as they are, and builds programs of
// them: so that tests can let programs of two versions meet.
package trees

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// library is what a program that uses the library alone needs.
var library = []string{"go.mod", "go.sum", "runtime", "ep", "evd", "mem", "hw", "internal"}

// Before returns a copy of the repository before the last commit that git log finds with the arguments, such as
// "--" and a path of the directory in which the test runs. It skips the test where that commit is not known.
func Before(t *testing.T, args ...string) (dir string) {
	t.Helper()
	last, err := git(t, append([]string{"log", "-1", "--format=%H"}, args...)...)
	if err != nil || last == "" {
		t.Skip("capability: git-history")
	}
	return at(t, last+"~1")
}

// released matches the commit of a release in CHANGELOG.md, of which the newest comes first.
var released = regexp.MustCompile(`(?m)^## v\S+, \S+\n\nCommit ([0-9a-f]+)\.$`)

// Release returns a copy of the repository at the newest release. It skips the test where that commit is not known.
func Release(t *testing.T) (dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Top(t), "CHANGELOG.md"))
	require.NoError(t, err)
	newest := released.FindSubmatch(text)
	require.NotNil(t, newest, "no release in CHANGELOG.md says its commit")
	return at(t, string(newest[1]))
}

// at returns a copy of the repository at a commit, and skips the test where that is not known.
func at(t *testing.T, commit string) (dir string) {
	t.Helper()
	if _, err := git(t, "rev-parse", "-q", "--verify", commit+"^{tree}"); err != nil {
		t.Skip("capability: git-history")
	}
	top := Top(t)
	dir = t.TempDir()
	packed := filepath.Join(dir, "all.tar")
	run(t, top, nil, "git", "archive", "--output="+packed, commit)
	run(t, dir, nil, "tar", "-xf", packed)
	return dir
}

// Here returns a copy of the library's files as they are.
func Here(t *testing.T) (dir string) {
	t.Helper()
	top, dir := Top(t), t.TempDir()
	for _, name := range library {
		from, to := filepath.Join(top, name), filepath.Join(dir, name)
		info, err := os.Stat(from)
		require.NoError(t, err)
		if info.IsDir() {
			require.NoError(t, os.CopyFS(to, os.DirFS(from)))
			continue
		}
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, text, 0o644))
	}
	return dir
}

// Build builds the program of a copy's directory, and returns its file.
func Build(t *testing.T, dir string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "program")
	run(t, dir, append(os.Environ(), "GOWORK=off"), "go", "build", "-trimpath", "-o", program, ".")
	return program
}

// Top is the repository's directory: the first one above the test's that has a go.work.
func Top(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
	}
	require.FailNow(t, "no directory above has a go.work")
	return ""
}

func git(t *testing.T, args ...string) (string, error) {
	out, err := exec.CommandContext(t.Context(), "git", args...).Output()
	return strings.TrimSpace(string(out)), err
}

func run(t *testing.T, dir string, environ []string, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Env = dir, environ
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
