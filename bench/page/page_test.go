package page

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made is a file in a folder of its own.
func made(t *testing.T, text string) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "PAGE.md")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o640))
	return name
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// alone asserts that nothing lies beside the file.
func alone(t *testing.T, name string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestAFileIsWrittenWhole(t *testing.T) {
	name := made(t, "a longer text")
	require.NoError(t, WriteText(name, "new"))
	assert.Equal(t, "new", read(t, name))
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	alone(t, name)
	other := filepath.Join(t.TempDir(), "new.md")
	require.NoError(t, WriteText(other, "new"))
	assert.Equal(t, "new", read(t, other))
}

// As a disk that is full does.
func TestAFileWhoseWritingFailsStaysAsItWas(t *testing.T) {
	name, full := made(t, "good"), errors.New("no space")
	err := Write(name, func(w io.Writer) error {
		_, err := io.WriteString(w, "ha")
		return errors.Join(err, full)
	})
	require.ErrorIs(t, err, full)
	assert.ErrorContains(t, err, "stays as it was")
	assert.Equal(t, "good", read(t, name))
	alone(t, name)
}

func TestALinkStaysALink(t *testing.T) {
	name := made(t, "good")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(name, link))
	require.NoError(t, WriteText(link, "new"))
	assert.Equal(t, "new", read(t, name))
	alone(t, name)
	alone(t, link)
}

func TestAFolderAndAMissingFolderAreRefused(t *testing.T) {
	require.Error(t, WriteText(t.TempDir(), "new"))
	require.ErrorIs(t, WriteText(filepath.Join(t.TempDir(), "no", "such"), "new"), os.ErrNotExist)
}

func TestAPartIsReplaced(t *testing.T) {
	m := Marks{"<!-- a -->\n", "<!-- to here -->\n"}
	name := made(t, "1\n<!-- a -->\nold\n<!-- to here -->\n2\n<!-- b -->\nother\n<!-- to here -->\n")
	require.NoError(t, m.Check(name))
	require.NoError(t, m.Replace(name, "new\n"))
	assert.Equal(t, "1\n<!-- a -->\nnew\n<!-- to here -->\n2\n<!-- b -->\nother\n<!-- to here -->\n", read(t, name))
}

func TestAPageWhoseMarksAreDamagedStaysAsItIs(t *testing.T) {
	m := Marks{"<!-- a -->\n", "<!-- to here -->\n"}
	for text, want := range map[string]string{
		"text\n": "no lines",
		"<!-- to here -->\n<!-- b -->\n<!-- to here -->\n": "no lines",
		"<!-- a -->\nold\n":                                                 "has no line",
		"<!-- to here -->\n<!-- a -->\nold\n":                               "has no line",
		"<!-- a -->\nold\n<!-- b -->\nother\n<!-- to here -->\n":            "has no line", // that one is another part's
		"<!-- a -->\n<!-- to here -->\n<!-- a -->\n<!-- to here -->\n":      "twice",
		"<!-- a -->\n<!-- a -->\nold\n<!-- to here -->\n<!-- to here -->\n": "twice",
	} {
		name := made(t, text)
		require.ErrorContains(t, m.Check(name), want, text)
		require.ErrorContains(t, m.Replace(name, "new\n"), want, text)
		assert.Equal(t, text, read(t, name))
	}
	assert.ErrorIs(t, m.Check(made(t, "text\n")), ErrNoMarks)
	assert.ErrorIs(t, m.Check("no such file"), os.ErrNotExist)
}

func TestAPageWithoutTheMarksQuotesNothing(t *testing.T) {
	m := Marks{"<!-- a -->\n", "<!-- to here -->\n"}
	name := made(t, "text\n")
	require.NoError(t, m.Quotable(name))
	require.NoError(t, m.Quote(name, "new\n"))
	assert.Equal(t, "text\n", read(t, name))
	require.NoError(t, m.Quote(filepath.Join(t.TempDir(), "none"), "new\n"))
	damaged := made(t, "<!-- a -->\nold\n")
	require.ErrorContains(t, m.Quotable(damaged), "has no line")
	require.ErrorContains(t, m.Quote(damaged, "new\n"), "has no line")
}
