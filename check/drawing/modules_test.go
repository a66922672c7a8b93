package drawing

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requiredFor returns the modules that the block of go.mod below a comment requires.
func requiredFor(t *testing.T, comment string) (modules []string) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	_, block, found := strings.Cut(string(text), "// "+comment+"\nrequire (\n")
	require.True(t, found, "go.mod has no block for: %s", comment)
	block, _, _ = strings.Cut(block, "\n)")
	for line := range strings.Lines(block) {
		modules = append(modules, strings.Fields(line)[0])
	}
	return modules
}

// A module that requires godat requires what is in go.mod: the first block is what the library links,
// and a program of this repository that needs more belongs to a module beside it.
func TestTheLibraryRequiresWhatItLinks(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Indirect}}{{.Path}}{{end}}{{end}}", "./...")
	list.Dir = root
	list.Env = append(os.Environ(), "GOWORK=off")
	out, err := list.Output()
	require.NoError(t, err)
	linked := strings.Fields(string(out))
	slices.Sort(linked)
	linked = slices.DeleteFunc(slices.Compact(linked), func(module string) bool { return module == "godat" })

	ofTests := requiredFor(t, "What tests import.")
	ofHelpers := func(module string) bool { return slices.Contains(ofTests, module) } // hwtest and the like
	assert.Equal(t, requiredFor(t, "What programs link."), slices.DeleteFunc(linked, ofHelpers))
}
