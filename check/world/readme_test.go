package world

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A package that has not a flag fails, whatever its tests are.
func TestThePackagesOfTheReadmeHaveTheFlagsThatItGivesThem(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	lines := given.FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, lines)
	for _, m := range lines {
		for _, name := range dashed.FindAllStringSubmatch(m[2], -1) {
			for _, dir := range tested(t, strings.Fields(m[1])) {
				assert.Contains(t, flagsOf(t, dir), name[1], m[0])
			}
		}
	}
}

var (
	given    = regexp.MustCompile(`(?m)^    go test (.*) -args(( -[a-z.]+[= ]?[\w.]*)+)`)
	dashed   = regexp.MustCompile(` -([a-z.]+)`)
	declared = regexp.MustCompile(`flag\.\w+\("([a-z.]+)"`)
)

// tested are the directories with tests that packages of a command line are in.
func tested(t *testing.T, words []string) (dirs []string) {
	for _, word := range words {
		dir, all := strings.CutSuffix(word, "/...")
		if dir != "." && !strings.HasPrefix(dir, "./") {
			continue // a flag, or its value
		}
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			at := filepath.Dir(path)
			if strings.HasSuffix(path, "_test.go") && (all || at == filepath.Clean(dir)) && !slices.Contains(dirs, at) {
				dirs = append(dirs, at)
			}
			return err
		}))
	}
	require.NotEmpty(t, dirs, words)
	return dirs
}

// flagsOf are the flags that the tests of a directory declare.
func flagsOf(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	return names
}
