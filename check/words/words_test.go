// Package words holds the code to the glossary at the end of ARCHITECTURE.md: one word for
// one idea.
//
// A line of the glossary is
//
//   - **word** (`room`, `room/`): what it means. A **second word** of this kind. Not: other, another.
//
// Both the rooms and the other words of the first may be missing. A type or a file has the word in its
// name in the rooms alone, a room with a slash at its end being a package and all below it: so
// the word means one thing. No declared name has one of the other words in it, wherever it
// is: so the thing has one word. The code judged is what a program imports, without tests,
// simulated devices and what is generated.
package words

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	root = "../.."
	most = 60 // words of a glossary
)

// entry is a line of the glossary.
type entry struct {
	word       string
	rooms, not []string
}

var (
	bold   = regexp.MustCompile("\\*\\*([^*]+)\\*\\*(?: \\((`[^)]+`)\\))?")
	inCode = regexp.MustCompile("`([^`]+)`")
	other  = regexp.MustCompile(` Not: ([a-z, ]+)\.$`)
)

// readGlossary returns the entries behind the heading "Glossary".
func readGlossary(t *testing.T, text string) (all []entry) {
	_, text, found := strings.Cut(text, "\n## Glossary\n")
	require.True(t, found, "no glossary")
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		first := len(all)
		for _, m := range bold.FindAllStringSubmatch(line, -1) {
			e := entry{word: strings.ToLower(m[1])}
			for _, room := range inCode.FindAllStringSubmatch(m[2], -1) {
				e.rooms = append(e.rooms, room[1])
			}
			all = append(all, e)
		}
		require.Greater(t, len(all), first, "no word: %s", line)
		if m := other.FindStringSubmatch(line); m != nil {
			all[first].not = strings.Split(m[1], ", ")
		}
	}
	return all
}

// name is a name that is declared in a package.
type name struct {
	text, pkg string
	isIdea    bool // of a type or a file
}

// complaints says what is wrong with the names.
func complaints(glossary []entry, names []name) (list []string) {
	for _, n := range names {
		parts := split(n.text)
		for _, e := range glossary {
			for _, not := range e.not {
				if slices.Contains(parts, not) {
					list = append(list, fmt.Sprintf("%s of %s: the glossary's word for %s is %s", n.text, n.pkg, not, e.word))
				}
			}
			if n.isIdea && e.rooms != nil && slices.Contains(parts, e.word) && !e.isIn(n.pkg) {
				list = append(list, fmt.Sprintf("%s of %s: %s means something in %s", n.text, n.pkg, e.word, strings.Join(e.rooms, " and ")))
			}
		}
	}
	return list
}

func (e *entry) isIn(pkg string) bool {
	return slices.ContainsFunc(e.rooms, func(room string) bool {
		return pkg == strings.TrimSuffix(room, "/") || strings.HasSuffix(room, "/") && strings.HasPrefix(pkg, room)
	})
}

// split returns the words of a name, in small letters.
func split(text string) (words []string) {
	runes := []rune(text)
	begin := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !begins(runes, i) {
			continue
		}
		if word := strings.Trim(string(runes[begin:i]), "_"); word != "" {
			words = append(words, strings.ToLower(word))
		}
		begin = i
	}
	return words
}

// begins reports whether a word of a name begins at i.
func begins(runes []rune, i int) bool {
	was, is := runes[i-1], runes[i]
	if is == '_' || !unicode.IsUpper(is) {
		return is == '_'
	}
	return !unicode.IsUpper(was) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

// isJudged reports whether a directory has code that programs import.
func isJudged(dir string) bool {
	switch dir {
	case "check", "bench", "examples", "hw/hwtest", "hw/sim", "hw/fault":
		return false
	}
	base := path.Base(dir)
	return base != "testdata" && (dir == "." || base[0] != '.')
}

// readNames returns the names that the code declares.
func readNames(t *testing.T) (all []name) {
	files := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if !isJudged(rel) {
				return filepath.SkipDir
			}
			return err
		}
		base, isGo := strings.CutSuffix(path.Base(rel), ".go")
		if !isGo || strings.HasSuffix(base, "_test") {
			return err
		}
		tree, err := parser.ParseFile(files, file, nil, parser.ParseComments)
		if err == nil && !ast.IsGenerated(tree) {
			all = append(all, name{base, path.Dir(rel), true})
			all = append(all, declared(tree, path.Dir(rel))...)
		}
		return err
	}))
	return all
}

// declared returns the names that a file declares.
func declared(tree *ast.File, pkg string) (all []name) {
	add := func(isIdea bool, ids ...*ast.Ident) {
		for _, id := range ids {
			all = append(all, name{id.Name, pkg, isIdea})
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			add(true, n.Name)
		case *ast.FuncDecl:
			add(true, n.Name)
		case *ast.Field:
			add(false, n.Names...)
		case *ast.ValueSpec:
			add(false, n.Names...)
		}
		return true
	})
	return all
}

func glossary(t *testing.T) []entry {
	text, err := os.ReadFile(path.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	return readGlossary(t, string(text))
}

func TestAThingHasOneWordAndAWordOneThing(t *testing.T) {
	for _, complaint := range complaints(glossary(t), readNames(t)) {
		t.Error(complaint)
	}
}

func TestTheGlossaryIsShortAndOfThisCode(t *testing.T) {
	entries := glossary(t)
	assert.LessOrEqual(t, len(entries), most)
	used := map[string]bool{}
	for _, n := range readNames(t) {
		for _, word := range split(n.text) {
			used[word] = true
		}
	}
	seen := map[string]bool{}
	for _, e := range entries {
		assert.False(t, seen[e.word], "%s stands there twice", e.word)
		seen[e.word] = true
		for _, part := range strings.FieldsFunc(e.word, func(r rune) bool { return r == ' ' || r == '-' }) {
			assert.True(t, used[part] || used[part+"s"], "no name has the word %s", part)
		}
		for _, room := range e.rooms {
			assert.DirExists(t, path.Join(root, room))
		}
	}
}

func TestWhatIsFound(t *testing.T) {
	entries := readGlossary(t, "\n## Glossary\n\n- **token**: a right. Not: baton, stick.\n- **pipe** (`hw/loop`, `hw/iwarp/`): one direction, of a **slot** (once). Not: tube.\n")
	require.Equal(t, []entry{
		{word: "token", not: []string{"baton", "stick"}},
		{word: "pipe", rooms: []string{"hw/loop", "hw/iwarp/"}, not: []string{"tube"}},
		{word: "slot"},
	}, entries)
	for _, test := range []struct {
		name name
		want string
	}{
		{name{"takeBaton", "ep", false}, "takeBaton of ep: the glossary's word for baton is token"},
		{name{"tokenBatonA", "ep", true}, "tokenBatonA of ep: the glossary's word for baton is token"},
		{name{"pipe", "ep", true}, "pipe of ep: pipe means something in hw/loop and hw/iwarp/"},
		{name{"pipe_linux", "hw/loop/sub", true}, "pipe_linux of hw/loop/sub: pipe means something in hw/loop and hw/iwarp/"},
		{name{"HTTPPipe", "hw/iwarp/wire", true}, ""},
		{name{"pipe", "hw/loop", true}, ""},
		{name{"pipe", "ep", false}, ""},
		{name{"batons", "ep", true}, ""},
	} {
		got := complaints(entries, []name{test.name})
		if test.want == "" {
			assert.Empty(t, got, test.name)
		} else {
			assert.Equal(t, []string{test.want}, got)
		}
	}
}

func TestANameIsSplitIntoWords(t *testing.T) {
	for text, want := range map[string][]string{
		"NewEVDQueue": {"new", "evd", "queue"}, "poller_linux": {"poller", "linux"}, "_": nil, "qp": {"qp"}, "A": {"a"}, "aB": {"a", "b"},
	} {
		assert.Equal(t, want, split(text), text)
	}
}
