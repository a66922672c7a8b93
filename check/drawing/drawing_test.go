// Package drawing holds the imports of all packages to the drawing of the rooms in
// ARCHITECTURE.md. Tests may import more; that is the linter's business.
//
// The drawing is read line by line. A room is a package, or with a slash at its end a
// package and all below it that no other room has. A room imports rooms of lower lines,
// down to the arrow "▲". What is below the arrow imports hw, and is imported by those
// alone to whom an arrow "◂──" points it out. The rooms of the cellar stand in lines of
// their own and import lower ones of them, and what the arrow "──▸" points out.
//
// The package also compares numbers on pages with constants (numbers_test.go), and holds the
// code to what CONTRIBUTING.md says of goroutines (rules_test.go).
package drawing

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	root   = "../.."
	module = "godat/"
	cellar = "internal/"
)

// room is a room of the drawing.
type room struct {
	name      string
	line      int
	below     bool     // below the arrow ▲
	importers []string // of a room below the arrow
	imports   []string // beyond the lower lines
}

var (
	gap      = regexp.MustCompile(` {2,}`)
	strokes  = regexp.MustCompile(`└─|[│┘╱╲]`)
	roomName = regexp.MustCompile(`^[a-z]+(/[a-z]+)*/?$`)
)

// readDrawing returns the rooms of a drawing.
func readDrawing(text string) (rooms []room) {
	var next room // what the rooms of the line have in common
	inCellar := false
	for number, line := range strings.Split(text, "\n") {
		next.line = number
		for _, field := range gap.Split(strings.TrimSpace(strokes.ReplaceAllString(line, "  ")), -1) {
			name, to, _ := strings.Cut(field, "◂──")
			name = strings.TrimSpace(name)
			if from, outward := strings.CutPrefix(field, "──▸"); outward {
				next.imports = strings.Fields(from)
			} else if strings.HasPrefix(field, "▲") {
				next.below = true
			} else if name == cellar {
				inCellar, next.importers = true, strings.Fields(to)
			} else if roomName.MatchString(name) {
				next.name = name
				if inCellar {
					next.name = cellar + name
				} else {
					next.importers = strings.Fields(to)
				}
				rooms = append(rooms, next)
				if !inCellar {
					continue // with the next room of the line
				}
			}
			break // the rest of the line explains
		}
	}
	return rooms
}

// roomOf returns the room of a package: of several the one with the longest name.
func roomOf(rooms []room, pkg string) *room {
	var of *room
	for i := range rooms {
		r := &rooms[i]
		inside := r.name == pkg || strings.HasSuffix(r.name, "/") && strings.HasPrefix(pkg+"/", r.name)
		if inside && (of == nil || len(r.name) > len(of.name)) {
			of = r
		}
	}
	return of
}

// allows reports whether the drawing lets a room import another.
func (r *room) allows(to *room) bool {
	switch {
	case r.name == to.name || slices.Contains(r.imports, to.name):
		return true
	case strings.HasPrefix(to.name, cellar) && strings.HasPrefix(r.name, cellar):
		return to.line > r.line
	case to.below:
		return slices.Contains(to.importers, r.name)
	case r.below:
		return to.name == "hw" && !strings.HasPrefix(r.name, cellar)
	}
	return to.line > r.line
}

// imports are the module's packages, and what each imports of them outside its tests.
type imports map[string][]string

func readImports(t *testing.T) imports {
	all := imports{}
	eachGo(t, func(file, pkg string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		all[pkg] = append(all[pkg], "")
		for _, other := range importsOf(t, file) {
			if of, ours := strings.CutPrefix(other, module); ours {
				all[pkg] = append(all[pkg], of)
			}
		}
	})
	return all
}

// eachGo calls f with each Go file of the repository, and the directory that it is in, from the root.
func eachGo(t *testing.T, f func(file, pkg string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch name := path.Base(filepath.ToSlash(file)); {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (name == "testdata" || name[0] == '.' || name[0] == '_'):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		pkg, err := filepath.Rel(root, filepath.Dir(file))
		f(file, filepath.ToSlash(pkg))
		return err
	}))
}

// complaints says where the packages and the drawing differ.
func complaints(rooms []room, all imports) (found []string) {
	lived := map[string]bool{}
	for pkg, imported := range all {
		from := roomOf(rooms, pkg)
		if from == nil {
			found = append(found, pkg+" is in no room of the drawing")
			continue
		}
		lived[from.name] = true
		for _, other := range imported {
			if to := roomOf(rooms, other); other != "" && to != nil && !from.allows(to) {
				found = append(found, fmt.Sprintf("%s imports %s, and the drawing has no arrow from %s to %s", pkg, other, from.name, to.name))
			}
		}
	}
	for _, r := range rooms {
		if !lived[r.name] {
			found = append(found, r.name+" is drawn, and there is no such package")
		}
		for _, name := range append(r.importers, r.imports...) {
			if !slices.ContainsFunc(rooms, func(other room) bool { return other.name == name }) {
				found = append(found, "an arrow at "+r.name+" names "+name+", which is no room")
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// theDrawing returns the first drawing of ARCHITECTURE.md.
func theDrawing(t *testing.T) string {
	text, err := os.ReadFile(path.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "```\n")
	drawing, _, found := strings.Cut(rest, "```\n")
	require.True(t, found, "ARCHITECTURE.md has no drawing")
	return drawing
}

func TestPackagesImportWhatTheDrawingAllows(t *testing.T) {
	for _, c := range complaints(readDrawing(theDrawing(t)), readImports(t)) {
		t.Error(c)
	}
}

// Each room and each arrow of the drawing matters, and each kind of import that it does
// not show is noted.
func TestAWrongDrawingIsNoted(t *testing.T) {
	all := readImports(t)
	drawing := theDrawing(t)
	rooms := readDrawing(drawing)
	for line := range strings.Lines(drawing) {
		if without := readDrawing(strings.Replace(drawing, line, "", 1)); len(without) < len(rooms) {
			assert.NotEmpty(t, complaints(without, all), "without %q", line)
		}
		if pointed, _, arrow := strings.Cut(line, "◂──"); arrow {
			blunt := readDrawing(strings.Replace(drawing, line, pointed+"\n", 1))
			assert.NotEmpty(t, complaints(blunt, all), "no arrow at %q", line)
		}
	}
	for name, wrong := range map[string][2]string{
		"up":                   {"evd", "ep"},
		"across":               {"mem", "evd"},
		"a provider, from ep":  {"ep", "hw/loop"},
		"up, from a provider":  {"hw/iwarp/wire", "evd"},
		"from the contract":    {"hw", "internal/keys"},
		"up, from the cellar":  {"internal/memory", "mem"},
		"up, in the cellar":    {"internal/owner", "internal/yield"},
		"the roof":             {"runtime", "check/conformance"},
		"the cellar, programs": {"examples/kv", "internal/door"},
	} {
		more := imports{wrong[0]: append(slices.Clone(all[wrong[0]]), wrong[1])}
		assert.Len(t, complaintsAbout(rooms, more), 1, name)
	}
	assert.NotEmpty(t, complaints(rooms, imports{"evd": nil, "internal/other": nil}), "a room that is not drawn")
}

// complaintsAbout leaves out what is said of rooms without packages.
func complaintsAbout(rooms []room, some imports) []string {
	return slices.DeleteFunc(complaints(rooms, some), func(c string) bool { return strings.HasSuffix(c, "no such package") })
}
