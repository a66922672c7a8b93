package mistakes

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// told is an error of the compiler.
var told = regexp.MustCompile(`refused\.go:(\d+):\d+: (.*)`)

func TestMistakesThatCannotBeMadeAreErrorsOfTheCompiler(t *testing.T) {
	source := must(os.ReadFile("testdata/refused.go"))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-o", filepath.Join(t.TempDir(), "refused"), "testdata/refused.go")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "the compiler lets all of them pass")
	said := map[int]string{}
	for _, m := range told.FindAllStringSubmatch(string(out), -1) {
		line := must(strconv.Atoi(m[1]))
		said[line] += m[2] + "\n"
	}
	for i, line := range strings.Split(string(source), "\n") {
		_, want, refused := strings.Cut(strings.TrimRight(line, "\r"), "// refused: ")
		if refused {
			assert.Contains(t, said[i+1], want, line)
		} else {
			assert.Empty(t, said[i+1], line)
		}
	}
	assert.GreaterOrEqual(t, len(said), 10, "%s", out)
}
