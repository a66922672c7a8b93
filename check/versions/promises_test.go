package versions

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/check/trees"
)

// The contract gets no method that a provider has to have: the provider of the newest release, and that of before
// the contract last changed, are put beside the library of now, whose tests try them.
func TestAProviderOfBeforeFillsTheContract(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a provider of before")
	}
	t.Run("of the newest release", func(t *testing.T) { fills(t, trees.Release(t)) })
	t.Run("of before the last change", func(t *testing.T) {
		fills(t, trees.Before(t, "--", "../../hw/provider.go", "../../hw/optional.go", "../../hw/wr.go"))
	})
}

// fills demands that a copy of a tree's provider, with the tests of now, fills the contract of now.
func fills(t *testing.T, before string) {
	t.Helper()
	dir := filepath.Join(trees.Here(t), "copied")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	now := filepath.Join(trees.Top(t), "examples", "provider")
	for tree, tests := range map[string]bool{filepath.Join(before, "examples", "provider"): false, now: true} {
		files, err := filepath.Glob(filepath.Join(tree, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") == tests {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o644))
			}
		}
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-count=1", ".")
	test.Dir, test.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := test.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestAllModulesNeedTheSameGo(t *testing.T) {
	line := regexp.MustCompile(`(?m)^go (\d+\.\d+)(\.0)?$`)
	var files, versions []string
	require.NoError(t, filepath.WalkDir(trees.Top(t), func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if err == nil && (d.Name() == "go.mod" || d.Name() == "go.work") {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			found := line.FindSubmatch(text)
			require.NotNil(t, found, "%s: no go line that names a release", file)
			files, versions = append(files, file), append(versions, string(found[1]))
		}
		return err
	}))
	for i := range versions {
		assert.Equal(t, versions[0], versions[i], files[i])
	}
}
