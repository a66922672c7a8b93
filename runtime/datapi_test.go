package runtime

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	numbersFile = "testdata/dat2.txt"
	tableFile   = "datapi.md"
)

// tablePackages are the packages whose names the table may use.
var tablePackages = []string{"hw", "event", "mem", "evd", "ep", "runtime"}

// folderOf is the folder of a package.
func folderOf(name string) string {
	switch name {
	case "event":
		return "hw/event"
	case "door":
		return "internal/door"
	}
	return name
}

// datName is a line of the file of numbers.
type datName struct {
	kind  string // call, macro, const, string or type
	value int64  // of a const
	text  string // of a string
}

func readNumbers(t *testing.T) map[string]datName {
	t.Helper()
	text, err := os.ReadFile(numbersFile)
	require.NoError(t, err)
	names := make(map[string]datName)
	for _, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		n := datName{kind: fields[0]}
		if n.kind == "const" {
			n.value, err = strconv.ParseInt(fields[2], 0, 64)
			require.NoError(t, err, line)
		}
		if n.kind == "string" {
			n.text, err = strconv.Unquote(fields[2])
			require.NoError(t, err, line)
		}
		assert.False(t, has(names, fields[1]), "%s: twice", fields[1])
		names[fields[1]] = n
	}
	return names
}

// tableRow is a row of the table: what answers to C names, or why nothing does.
type tableRow struct {
	line    int
	c       []string // names, or patterns with *
	goNames []string
	words   string // the text of the second column
}

// none reports whether the row says why Go needs nothing.
func (r tableRow) none() bool { return strings.HasPrefix(r.words, "none: ") }

var code = regexp.MustCompile("`([^`]+)`")

func readTable(t *testing.T) (rows []tableRow) {
	t.Helper()
	text, err := os.ReadFile(tableFile)
	require.NoError(t, err)
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		require.Len(t, cells, 2, "line %d", i+1)
		row := tableRow{line: i + 1, words: strings.TrimSpace(cells[1])}
		for _, m := range code.FindAllStringSubmatch(cells[0], -1) {
			row.c = append(row.c, m[1])
		}
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			row.goNames = append(row.goNames, m[1])
		}
		rows = append(rows, row)
	}
	return rows
}

// rowsOf finds the row of each C name: a row with the exact name, or else one with a
// pattern.
func rowsOf(t *testing.T, rows []tableRow, names map[string]datName) map[string]tableRow {
	t.Helper()
	found := make(map[string]tableRow)
	for _, row := range rows {
		for _, c := range row.c {
			if strings.Contains(c, "*") {
				continue
			}
			assert.True(t, has(names, c), "%s:%d: no name of DAT", tableFile, row.line)
			assert.False(t, has(found, c), "%s:%d: twice", tableFile, row.line)
			found[c] = row
		}
	}
	for _, row := range rows {
		for _, c := range row.c {
			if !strings.Contains(c, "*") {
				continue
			}
			used := false
			for name := range names {
				if _, taken := found[name]; taken {
					continue
				}
				if ok, _ := path.Match(c, name); ok {
					found[name], used = row, true
				}
			}
			assert.True(t, used, "%s:%d: %s matches nothing that is left", tableFile, row.line, c)
		}
	}
	return found
}

// has reports whether m has an element at key. assert.Contains copies all keys of m, which
// takes a third of a second for DAT's names.
func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

func TestEveryNameOfDATIsInTheTable(t *testing.T) {
	names, rows := readNumbers(t), readTable(t)
	found := rowsOf(t, rows, names)
	for name := range names {
		assert.True(t, has(found, name), "%s has no row for it", tableFile)
	}
	for _, row := range rows {
		assert.True(t, len(row.goNames) > 0 || row.none(),
			"%s:%d: neither a Go name in backquotes, nor \"none: \" and why", tableFile, row.line)
	}
}

func TestEveryGoNameOfTheTableExists(t *testing.T) {
	s := loadSources(t)
	for _, row := range readTable(t) {
		for _, name := range row.goNames {
			assert.NotNil(t, s.find(name), "%s:%d: there is no %s", tableFile, row.line, name)
		}
	}
}

func TestNumbersAreDATs(t *testing.T) {
	s, names := loadSources(t), readNumbers(t)
	compared := 0
	for name, row := range rowsOf(t, readTable(t), names) {
		if row.none() {
			continue
		}
		for _, goName := range row.goNames {
			c, ok := s.find(goName).(*types.Const)
			if !ok || names[name].kind != "const" {
				continue
			}
			got, exact := constant.Int64Val(constant.ToInt(c.Val()))
			if !exact { // one above the largest int64
				u, _ := constant.Uint64Val(c.Val())
				got = int64(u)
			}
			if strings.HasSuffix(c.Type().String(), "hw.Type") {
				got <<= 16 // DAT_RETURN_TYPE has its place in a DAT_RETURN
			}
			assert.Equal(t, names[name].value, got, "%s is %s", name, goName)
			compared++
		}
	}
	assert.Greater(t, compared, 240)
}

// sameType are types whose every constant has a C name in the table, except for these
// words of the library's own.
var sameType = map[string][]string{
	"hw.Type":        nil,
	"hw.Subtype":     nil,
	"hw.Status":      nil,
	"hw.Flags":       nil,
	"hw.Privileges":  nil,
	"hw.Op":          {"hw.OpSendInvalidate", "hw.OpReadToRMR", "hw.OpMark", "hw.OpEnd"},
	"event.Number":   {"event.Closed"},
	"event.Streams":  nil,
	"evd.State":      nil,
	"event.Reason":   nil,
	"ep.State":       nil,
	"ep.CloseFlags":  nil,
	"ep.PSPFlags":    nil,
	"ep.SRQState":    nil,
	"mem.RMRScope":   nil,
	"ep.QoS":         nil,
	"ep.ServiceType": nil,
}

func TestEveryConstantThatIsDATsIsInTheTable(t *testing.T) {
	s := loadSources(t)
	named := make(map[string]bool)
	for _, row := range readTable(t) {
		for _, name := range row.goNames {
			named[name] = true
		}
	}
	for _, own := range sameType {
		for _, name := range own {
			named[name] = true
		}
	}
	for _, pkg := range s.packages {
		for _, name := range pkg.Scope().Names() {
			c, ok := pkg.Scope().Lookup(name).(*types.Const)
			if !ok || !c.Exported() {
				continue
			}
			of, ok := c.Type().(*types.Named)
			if !ok || of.Obj().Pkg() != pkg { // another name of the type
				continue
			}
			if _, ok := sameType[pkg.Name()+"."+of.Obj().Name()]; ok {
				assert.True(t, named[pkg.Name()+"."+name], "%s has no C name for %s.%s", tableFile, pkg.Name(), name)
			}
		}
	}
}

func TestCommentsAnswerToCallsThatThereAre(t *testing.T) {
	names := readNumbers(t)
	claims := 0
	for where, text := range loadSources(t).comments {
		for _, call := range regexp.MustCompile(`\bdat_[a-z0-9_]+\b`).FindAllString(text, -1) {
			if _, ok := names[call]; !ok {
				assert.Failf(t, "no call of DAT", "%s: %s", where, call)
				continue
			}
			claims++
		}
	}
	assert.Greater(t, claims, 30)
}

// sources are the packages, type-checked as far as names and numbers need, without the
// packages that they import from elsewhere.
type sources struct {
	fset     *token.FileSet
	packages map[string]*types.Package
	comments map[string]string // of exported things, by position
}

func loadSources(t *testing.T) *sources {
	t.Helper()
	s := &sources{fset: token.NewFileSet(), packages: map[string]*types.Package{}, comments: map[string]string{}}
	for _, name := range append([]string{"door"}, tablePackages...) {
		var files []*ast.File
		matches, err := filepath.Glob(filepath.Join("..", folderOf(name), "*.go"))
		require.NoError(t, err)
		for _, file := range matches {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(s.fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
			require.NoError(t, err)
			if build := parsed.Comments; len(build) > 0 && strings.HasPrefix(build[0].List[0].Text, "//go:build") {
				continue // a file of one operating system
			}
			files = append(files, parsed)
			s.collect(parsed)
		}
		config := types.Config{IgnoreFuncBodies: true, Importer: s, Error: func(error) {}}
		path := "godat/" + folderOf(name)
		s.packages[path], _ = config.Check(path, s.fset, files, nil)
	}
	return s
}

// Import returns packages of this module, and empty packages for all others.
func (s *sources) Import(importPath string) (*types.Package, error) {
	if pkg := s.packages[importPath]; pkg != nil {
		return pkg, nil
	}
	pkg := types.NewPackage(importPath, path.Base(importPath))
	pkg.MarkComplete()
	return pkg, nil
}

// behindDoor reports whether a function takes a door.Key, so that only this module can
// call it.
func behindDoor(f types.Type) bool {
	sig, ok := f.(*types.Signature)
	if !ok {
		return false
	}
	for p := range sig.Params().Variables() {
		if p.Type().String() == "godat/internal/door.Key" {
			return true
		}
	}
	return false
}

// collect keeps the comments over exported declarations.
func (s *sources) collect(file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				s.comments[fmt.Sprint(s.fset.Position(d.Pos()))] = d.Doc.Text()
			}
		case *ast.GenDecl:
			s.comments[fmt.Sprint(s.fset.Position(d.Pos()))] = d.Doc.Text()
		}
	}
}

// find finds the object that a name in the table stands for: package.Name, or a field
// or method of it.
func (s *sources) find(name string) types.Object {
	parts := strings.Split(name, ".")
	if len(parts) < 2 || s.packages["godat/"+folderOf(parts[0])] == nil {
		return nil
	}
	pkg := s.packages["godat/"+folderOf(parts[0])]
	obj := pkg.Scope().Lookup(parts[1])
	for _, part := range parts[2:] {
		if obj == nil {
			return nil
		}
		obj, _, _ = types.LookupFieldOrMethod(obj.Type(), true, pkg, part)
	}
	if obj == nil || !obj.Exported() {
		return nil
	}
	return obj
}
