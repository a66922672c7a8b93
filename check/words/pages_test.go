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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree is what pages and comments may name: the repository's files, and what its Go code
// declares, tests included.
type tree struct {
	files    map[string]bool // by path from the root; directories, too
	bases    map[string]bool // by name alone
	tests    []string        // functions that go test runs
	declared map[string]bool
	members  map[string]map[string]bool // of types and of packages, by name
	packages map[string]bool
	fields   map[string]bool      // names of members of types
	pages    map[string]string    // texts of .md files
	comments map[string][]comment // of .go files
	texts    map[string][]comment // strings of the library's .go files
	scripts  map[string]string    // and the Makefile
}

// comment is the text of a comment or of a string, and its line.
type comment struct {
	line int
	text string
}

// readTree reads the repository, without what git or an editor keeps in it.
func readTree(t *testing.T) *tree {
	all := &tree{
		files: map[string]bool{}, bases: map[string]bool{}, declared: map[string]bool{}, members: map[string]map[string]bool{},
		packages: map[string]bool{}, fields: map[string]bool{},
		pages: map[string]string{}, comments: map[string][]comment{}, texts: map[string][]comment{}, scripts: map[string]string{},
	}
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		require.NoError(t, err)
		rel = filepath.ToSlash(rel)
		if d.IsDir() && rel == ".git" {
			return filepath.SkipDir
		}
		all.files[rel], all.bases[path.Base(rel)] = true, true
		if !d.IsDir() {
			all.read(t, file, rel)
		}
		return nil
	}))
	return all
}

func (all *tree) read(t *testing.T, file, rel string) {
	switch ext := path.Ext(rel); {
	case strings.Contains(rel, "testdata/"):
	case ext == ".go":
		all.readGo(t, file, rel)
	case ext == ".md", ext == ".sh", rel == "Makefile", rel == ".ci/run":
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if ext == ".md" {
			all.pages[rel] = string(text)
		} else {
			all.scripts[rel] = string(text)
		}
	}
}

var run = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)(\p{Lu}|_|$)`)

func (all *tree) readGo(t *testing.T, file, rel string) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.ParseComments)
	require.NoError(t, err)
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			all.comments[rel] = append(all.comments[rel], comment{files.Position(c.Pos()).Line, c.Text})
		}
	}
	if isLibrary(rel) {
		ast.Inspect(parsed, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				all.texts[rel] = append(all.texts[rel], comment{files.Position(lit.Pos()).Line, lit.Value})
			}
			return true
		})
	}
	pkg := strings.TrimSuffix(parsed.Name.Name, "_test")
	all.packages[pkg] = true
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			of := pkg
			if d.Recv != nil {
				of = receiver(d.Recv.List[0].Type)
				all.fields[d.Name.Name] = true
			} else if strings.HasSuffix(rel, "_test.go") && run.MatchString(d.Name.Name) {
				all.tests = append(all.tests, d.Name.Name)
			}
			all.declare(of, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				all.declareSpec(pkg, spec)
			}
		}
	}
}

func (all *tree) declareSpec(pkg string, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, id := range spec.Names {
			all.declare(pkg, id.Name)
		}
	case *ast.TypeSpec:
		all.declare(pkg, spec.Name.Name)
		all.declare(spec.Name.Name, "")
		ast.Inspect(spec.Type, func(n ast.Node) bool {
			if f, isField := n.(*ast.Field); isField {
				for _, id := range f.Names {
					all.declare(spec.Name.Name, id.Name)
					all.fields[id.Name] = true
				}
				if f.Names == nil {
					all.declare(spec.Name.Name, embedded+receiver(f.Type))
				}
			}
			return true
		})
	}
}

// embedded stands before the name of an embedded type.
const embedded = "embeds "

func (all *tree) declare(of, name string) {
	if all.members[of] == nil {
		all.members[of] = map[string]bool{}
	}
	all.members[of][name] = true
	all.declared[name] = true
}

// receiver returns the name of a type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// has reports whether a type or package has a name, or one of the types that it embeds.
func (all *tree) has(of, name string) bool {
	if all.members[of][name] {
		return true
	}
	for other := range all.members[of] {
		if inner, isEmbedded := strings.CutPrefix(other, embedded); isEmbedded && inner != of && all.has(inner, name) {
			return true
		}
	}
	return false
}

var (
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	fileName = regexp.MustCompile(`(?:^|[\s(\x60"])((?:\.?[\w-]+/)*\.?[\w-]+\.(?:go|s|md|sh|yaml))(?:[\s),;:\x60"]|\.(?:\s|$)|$)`)
	testName = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)[A-Z]\w*`)
	goName   = regexp.MustCompile(`^\*?([A-Za-z]\w*)((?:\.[A-Za-z]\w*)+)(?:\(.*\))?$`)
	member   = regexp.MustCompile(`\b([A-Za-z]\w*)\.(\p{Lu}\w*)`)
	patched  = regexp.MustCompile(`^(\./|[ab]/)`) // before a file in a command or a patch
	runFlag  = regexp.MustCompile(`go\)? test .*-run[ =]('[^']+'|[A-Z^]\w*\$?)|-test\.run[ =]('[^']+'|[A-Z^]\w*\$?)`)
	folder   = regexp.MustCompile(`^[a-z]\w*(?:/[\w.-]+)+/?$`)
)

// namesFile reports whether a file of this name exists: from the root, from the text's own
// folder, or anywhere.
func (all *tree) namesFile(from, name string) bool {
	name = patched.ReplaceAllString(name, "")
	if name[0] == '_' { // an ending
		return true
	}
	if all.files[name] || all.files[path.Join(path.Dir(from), name)] || all.bases[name] {
		return true
	}
	for file := range all.files {
		if strings.HasSuffix(file, "/"+name) {
			return true
		}
	}
	return false
}

// wrongNames says which files and tests a text names that don't exist.
func (all *tree) wrongNames(from, text string) (found []string) {
	for _, m := range fileName.FindAllStringSubmatch(text, -1) {
		if !all.namesFile(from, m[1]) {
			found = append(found, "no file "+m[1])
		}
	}
	for _, name := range testName.FindAllString(text, -1) {
		if !all.declared[name] {
			found = append(found, "no test "+name)
		}
	}
	return found
}

// wrongCode says which of the Go names and folders that a page has in backquotes don't exist.
func (all *tree) wrongCode(from, text string) (found []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		first, _, _ := strings.Cut(m[1], "/")
		if folder.MatchString(m[1]) && all.files[first] && !all.namesFile(from, strings.TrimSuffix(m[1], "/")) {
			found = append(found, "no "+m[1])
		}
		parts := goName.FindStringSubmatch(m[1])
		if parts == nil || fileName.MatchString(m[1]) {
			continue
		}
		of := parts[1]
		for _, name := range strings.Split(parts[2], ".")[1:] {
			if !all.mayHave(of, name) {
				found = append(found, fmt.Sprintf("%s has no %s: %s", of, name, m[1]))
			}
			of = name
		}
	}
	return found
}

// mayHave reports whether a package, a type, or a field of unknown type may have a member. Of
// what is not of this repository it can't tell.
func (all *tree) mayHave(of, name string) bool {
	switch {
	case of == "dat":
		return all.has("runtime", name)
	case slices.Contains([]string{"errors", "net", "runtime"}, of): // Go has such a package, too
		return true
	case all.packages[of], ast.IsExported(of) && all.members[of] != nil && !all.fields[of]:
		return all.has(of, name)
	case all.fields[of]:
		return all.declared[name]
	}
	return true
}

// isLibrary reports whether a file is of the library, tests apart.
func isLibrary(rel string) bool {
	top, _, _ := strings.Cut(rel, "/")
	return slices.Contains([]string{"runtime", "ep", "evd", "mem", "hw", "internal"}, top) && !strings.HasSuffix(rel, "_test.go")
}

// wrongTexts says which types of a string, and which of their members, don't exist. A function's name stands behind that of
// its package, with or without the type's between.
func (all *tree) wrongTexts(text string) (found []string) {
	for _, m := range member.FindAllStringSubmatch(text, -1) {
		switch of, name := m[1], m[2]; {
		case !ast.IsExported(of) && (!all.packages[of] || all.declared[name]):
		case !all.declared[of] && !all.packages[of]:
			found = append(found, "no "+of+": "+m[0])
		case !all.mayHave(of, name):
			found = append(found, fmt.Sprintf("%s has no %s", of, name))
		}
	}
	return found
}

// wrongPatterns says which parts of a -run flag match no test.
func (all *tree) wrongPatterns(text string) (found []string) {
	for _, m := range runFlag.FindAllStringSubmatch(text, -1) {
		top, _, _ := strings.Cut(m[1]+m[2], "/")
		for _, part := range strings.FieldsFunc(top, func(r rune) bool { return strings.ContainsRune("|()'", r) }) {
			pattern, err := regexp.Compile(strings.ReplaceAll(part, "$$", "$"))
			if part != "^$" && part != "^$$" && (err != nil || !slices.ContainsFunc(all.tests, pattern.MatchString)) {
				found = append(found, "no test matches "+part)
			}
		}
	}
	return found
}

func TestPagesCommentsAndErrorsNameWhatExists(t *testing.T) {
	all := readTree(t)
	for from, text := range all.pages {
		if from == "CHANGELOG.md" { // tells of what was
			continue
		}
		for number, line := range strings.Split(text, "\n") {
			for _, wrong := range slices.Concat(all.wrongNames(from, line), all.wrongCode(from, line), all.wrongPatterns(line)) {
				t.Errorf("%s:%d: %s", from, number+1, wrong)
			}
		}
	}
	for from, comments := range all.comments {
		for _, c := range comments {
			for _, wrong := range append(all.wrongNames(from, c.text), all.wrongPatterns(c.text)...) {
				t.Errorf("%s:%d: %s", from, c.line, wrong)
			}
		}
	}
	for from, texts := range all.texts {
		for _, c := range texts {
			for _, wrong := range all.wrongTexts(c.text) {
				t.Errorf("%s:%d: %s", from, c.line, wrong)
			}
		}
	}
	for from, text := range all.scripts {
		for number, line := range strings.Split(text, "\n") {
			for _, wrong := range all.wrongPatterns(line) {
				t.Errorf("%s:%d: %s", from, number+1, wrong)
			}
		}
	}
	assert.Greater(t, len(all.tests), 1000)
}

func TestWhatIsNotThereIsFound(t *testing.T) {
	all := readTree(t)
	for text, want := range map[string]string{
		"see `ep/machine.go` and token.go.":                     "",
		"see `ep/machines.go`":                                  "no file ep/machines.go; no ep/machines.go",
		"(tokens.go)":                                           "no file tokens.go",
		"`ep` TestNoSuchThing shows it":                         "no test TestNoSuchThing",
		"`check/models` and `check/modell`":                     "no check/modell",
		"`ConnConfig.Conns`, `dat.WithParams`, `hw.WRSignaled`": "",
		"`ConnConfig.Con`":                                      "ConnConfig has no Con: ConnConfig.Con",
		"`dat.WithParam`":                                       "dat has no WithParam: dat.WithParam",
		"go test ./ep -run 'TestBadArguments|NoSuchThing'":      "no test matches NoSuchThing",
	} {
		found := slices.Concat(all.wrongNames("ARCHITECTURE.md", text), all.wrongCode("ARCHITECTURE.md", text), all.wrongPatterns(text))
		assert.Equal(t, want, strings.Join(found, "; "), text)
	}
	assert.Empty(t, all.wrongTexts(`IA.NewPZ makes one, for ep.Config.PZ: context.Background() is good`))
	assert.Equal(t, []string{"no NoSuchConfig: NoSuchConfig.PZ", "ep has no NoSuchThing"}, all.wrongTexts(`NoSuchConfig.PZ, ep.NoSuchThing`))
}
