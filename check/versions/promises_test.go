package versions

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/check/trees"
)

// The contract gets no method that a provider has to have: the provider of before the contract last changed is put
// beside the library of now, whose tests try it.
func TestAProviderOfBeforeFillsTheContract(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a provider of before")
	}
	before := trees.Before(t, "--", "../../hw/provider.go", "../../hw/optional.go", "../../hw/wr.go")
	now := trees.Here(t)
	dir := filepath.Join(now, "examples", "provider")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(before, "examples", "provider"))))
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, file := range tests {
		require.NoError(t, os.Remove(file))
	}
	tests, err = filepath.Glob(filepath.Join(trees.Top(t), "examples", "provider", "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, tests)
	for _, file := range tests {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o644))
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
