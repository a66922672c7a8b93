package runtime

import (
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// api.txt lists the public API, in the style of the Go project's own api files: one
// line for each thing that a program can name. So a change to the API shows there in
// review. What only the author of a provider names of hw, and what a provider fills errors with, is in a
// list of its own.

const (
	apiFile      = "api.txt"
	providerFile = "../hw/api.txt"
)

// programTypes are the types of hw that a program meets, with their constants.
var programTypes = []string{
	"Attr", "Cause", "Error", "Flags", "Flow", "Info", "Layer", "ListenerCounts", "Op", "OpSet", "PairAddr", "PollCounts", "Privileges",
	"Side", "Status", "StatusError", "Subtype", "Type", "Watcher",
}

// programFuncs are the functions of hw for programs.
var programFuncs = []string{"Strerror"}

// providerOps are the operations that no program posts, and that no event tells.
var providerOps = []string{"OpEnd", "OpFastRegister", "OpInvalidate", "OpMark"}

// providerMethods fill what a provider gives: no program calls them.
var providerMethods = []string{"Cause.Between", "PairAddr.Check"}

// forProviders reports whether a line of the API is for authors of providers alone.
func forProviders(line string) bool {
	m := regexp.MustCompile(`^pkg godat/hw, (const|var|func|type|method) \(?\*?(\w+)\)?(?: (\w+))?`).FindStringSubmatch(line)
	switch {
	case m == nil || m[1] == "var":
		return false
	case m[1] == "func":
		return !slices.Contains(programFuncs, m[2])
	case m[1] == "method" && slices.Contains(providerMethods, m[2]+"."+m[3]):
		return true
	case m[1] == "const" && m[3] == "Op":
		return slices.Contains(providerOps, m[2])
	case m[1] == "const": // the numbers of errors are what a provider says; a program tests errors with the Err values
		return m[3] == "Type" || m[3] == "Subtype" || !slices.Contains(programTypes, m[3])
	}
	return !slices.Contains(programTypes, m[2])
}

var update = flag.Bool("update", false, "write the file that a test compares with anew")

// apiPackages are the packages that a program may import.
var apiPackages = []string{"runtime", "runtime/rpc", "runtime/stream", "runtime/inspect", "ep", "evd", "mem", "hw", "hw/event", "hw/loop", "hw/iwarp", "hw/ibv"}

// unreachable are types that no program can get: the functions that make them take a
// door.Key.
var unreachable = []string{"ep.Adapter", "ep.AdapterConfig", "ep.Snapshot", "mem.Domain", "mem.Regions", "ep.Own", "mem.Own"}

func TestTheAPIIsTheOneRecorded(t *testing.T) {
	lists := map[string][]string{}
	for _, line := range publicAPI(t) {
		file := apiFile
		if forProviders(line) {
			file = providerFile
		}
		lists[file] = append(lists[file], line)
	}
	for file, now := range lists {
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(strings.Join(now, "\n")+"\n"), 0o644))
		}
		compareAPI(t, file, now)
	}
}

// compareAPI compares the API with the one that a file records.
func compareAPI(t *testing.T, file string, now []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	recorded := strings.Split(strings.TrimSpace(string(text)), "\n")
	var diff []string
	for _, line := range recorded {
		if _, found := slices.BinarySearch(now, line); !found {
			diff = append(diff, "- "+line)
		}
	}
	for _, line := range now {
		if !slices.Contains(recorded, line) {
			diff = append(diff, "+ "+line)
		}
	}
	if len(diff) > 0 {
		t.Errorf("the API is not that of %s:\n%s\nIf that is meant: go test ./runtime -run TestTheAPIIsTheOneRecorded -update",
			file, strings.Join(diff, "\n"))
	}
}

// A call that no program, example or check makes, and that answers to no C call, has no
// place in the API.
func TestEveryCallHasAUser(t *testing.T) {
	// The first is a method of runtime.Describer, and package inspect looks for the second.
	users := map[string]bool{"DescribeEndpoint": true, "RegisteredMemory": true}
	words := regexp.MustCompile(`\w+`)
	count := func(file string) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, word := range words.FindAllString(string(text), -1) {
			users[word] = true
		}
	}
	count(tableFile)
	for _, pattern := range []string{"../*/example*_test.go", "*/example*_test.go"} {
		examples, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range examples {
			count(file)
		}
	}
	for _, dir := range []string{"examples", "bench", "check", "runtime/inspect/prometheus"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", dir), func(file string, _ os.DirEntry, err error) error {
			if strings.HasSuffix(file, ".go") {
				count(file)
			}
			return err
		}))
	}
	call := regexp.MustCompile(`^pkg godat/\S+, (?:func|method \(\S+\)) (\w+)`)
	var none []string
	for _, line := range publicAPI(t) {
		if m := call.FindStringSubmatch(line); m != nil && !users[m[1]] {
			none = append(none, m[1])
		}
	}
	require.Empty(t, none)
}

// publicAPI lists the API, sorted.
func publicAPI(t *testing.T) (lines []string) {
	t.Helper()
	l := &apiLoader{fset: token.NewFileSet(), loaded: map[string]*types.Package{}}
	for _, name := range apiPackages {
		pkg, err := l.Import("godat/" + name)
		require.NoError(t, err)
		p := apiPrinter{pkg: pkg}
		for _, name := range pkg.Scope().Names() {
			o := pkg.Scope().Lookup(name)
			if o.Exported() && !slices.Contains(unreachable, pkg.Name()+"."+name) {
				p.object(o)
			}
		}
		lines = append(lines, p.lines...)
	}
	slices.Sort(lines)
	for _, line := range lines {
		require.NotContains(t, line, "invalid type")
	}
	return lines
}

// apiPrinter writes the lines of one package.
type apiPrinter struct {
	pkg   *types.Package
	lines []string
}

func (p *apiPrinter) add(format string, args ...any) {
	p.lines = append(p.lines, "pkg "+p.pkg.Path()+", "+fmt.Sprintf(format, args...))
}

func (p *apiPrinter) text(t types.Type) string {
	return types.TypeString(t, func(of *types.Package) string {
		if of == p.pkg {
			return ""
		}
		return of.Name()
	})
}

func (p *apiPrinter) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		p.add("const %s %s = %s", o.Name(), p.text(o.Type()), o.Val())
	case *types.Var:
		p.add("var %s %s", o.Name(), p.text(o.Type()))
	case *types.Func:
		if !behindDoor(o.Type()) {
			p.add("func %s%s", o.Name(), p.signature(o.Signature()))
		}
	case *types.TypeName:
		p.typeName(o)
	}
}

func (p *apiPrinter) typeName(o *types.TypeName) {
	if o.IsAlias() {
		p.add("type %s = %s", o.Name(), p.text(types.Unalias(o.Type())))
		return
	}
	named := o.Type().(*types.Named)
	name := o.Name()
	if params := named.TypeParams(); params.Len() > 0 {
		name = p.text(named)
	}
	switch u := named.Underlying().(type) {
	case *types.Struct:
		p.add("type %s struct", name)
		for f := range u.Fields() {
			if f.Exported() {
				p.add("type %s struct, %s %s", name, f.Name(), p.text(f.Type()))
			}
		}
	case *types.Interface:
		p.add("type %s interface", name)
		for m := range u.Methods() {
			p.add("type %s interface, %s%s", name, m.Name(), p.signature(m.Signature()))
		}
		return
	default:
		p.add("type %s %s", name, p.text(u))
	}
	for m := range named.Methods() {
		if m.Exported() && !behindDoor(m.Type()) {
			p.add("method (%s) %s%s", p.text(m.Signature().Recv().Type()), m.Name(), p.signature(m.Signature()))
		}
	}
}

// signature writes a signature without the names of its parameters, because they may
// change.
func (p *apiPrinter) signature(s *types.Signature) string {
	bare := func(t *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range t.Variables() {
			vars = append(vars, types.NewParam(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	text := p.text(types.NewSignatureType(nil, nil, nil, bare(s.Params()), bare(s.Results()), s.Variadic()))
	if params := s.TypeParams(); params.Len() > 0 {
		var names []string
		for v := range params.TypeParams() {
			names = append(names, v.Obj().Name()+" "+p.text(v.Constraint()))
		}
		return "[" + strings.Join(names, ", ") + "]" + strings.TrimPrefix(text, "func")
	}
	return strings.TrimPrefix(text, "func")
}

// apiLoader type-checks this module's packages as they are on Linux without cgo. It
// invents packages from elsewhere, with an empty type for each name that our files use.
// So it needs no compiler and no network, and is quick.
type apiLoader struct {
	fset   *token.FileSet
	loaded map[string]*types.Package
}

var apiPlatform = func() build.Context {
	c := build.Default
	c.GOOS, c.GOARCH, c.CgoEnabled = "linux", "amd64", false
	return c
}()

func (l *apiLoader) Import(importPath string) (*types.Package, error) {
	if pkg := l.loaded[importPath]; pkg != nil || importPath == "unsafe" {
		return pkg, nil
	}
	of, ours := strings.CutPrefix(importPath, "godat/")
	if !ours {
		pkg := types.NewPackage(importPath, importName(importPath))
		furnish(pkg)
		pkg.MarkComplete()
		l.loaded[importPath] = pkg
		return pkg, nil
	}
	dir := filepath.Join("..", of)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, entry := range entries {
		name := entry.Name()
		if match, err := apiPlatform.MatchFile(dir, name); err != nil || !match || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(l.fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		l.invent(file)
		files = append(files, file)
	}
	config := types.Config{IgnoreFuncBodies: true, Importer: l, Error: func(error) {}}
	pkg, _ := config.Check(importPath, l.fset, files, nil)
	l.loaded[importPath] = pkg
	return pkg, nil
}

// furnish puts into a package from elsewhere what gives public variables and constants of ours their types.
func furnish(pkg *types.Package) {
	switch pkg.Path() {
	case "errors":
		text, err := types.NewParam(token.NoPos, pkg, "", types.Typ[types.String]), types.NewParam(token.NoPos, pkg, "", types.Universe.Lookup("error").Type())
		of := types.NewSignatureType(nil, nil, nil, types.NewTuple(text), types.NewTuple(err), false)
		pkg.Scope().Insert(types.NewFunc(token.NoPos, pkg, "New", of))
	case "time":
		name := types.NewTypeName(token.NoPos, pkg, "Duration", nil)
		duration := types.NewNamed(name, types.Typ[types.Int64], nil)
		pkg.Scope().Insert(name)
		for unit, value := range map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour} {
			pkg.Scope().Insert(types.NewConst(token.NoPos, pkg, unit, duration, constant.MakeInt64(int64(value))))
		}
	}
}

// invent makes the types that a file names in packages from elsewhere.
func (l *apiLoader) invent(file *ast.File) {
	imports := map[string]*types.Package{}
	for _, spec := range file.Imports {
		from := strings.Trim(spec.Path.Value, `"`)
		if strings.HasPrefix(from, "godat/") || from == "unsafe" {
			continue
		}
		name := importName(from)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name], _ = l.Import(from)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr:
			inventType(imports, n.X, 1)
		case *ast.IndexListExpr:
			inventType(imports, n.X, len(n.Indices))
		case *ast.SelectorExpr:
			inventType(imports, n, 0)
		}
		return true
	})
}

func inventType(imports map[string]*types.Package, expr ast.Expr, params int) {
	sel, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return
	}
	of, ok := sel.X.(*ast.Ident)
	if !ok || imports[of.Name] == nil || imports[of.Name].Scope().Lookup(sel.Sel.Name) != nil {
		return
	}
	pkg := imports[of.Name]
	name := types.NewTypeName(token.NoPos, pkg, sel.Sel.Name, nil)
	named := types.NewNamed(name, types.NewStruct(nil, nil), nil)
	var all []*types.TypeParam
	for i := range params {
		all = append(all, types.NewTypeParam(types.NewTypeName(token.NoPos, pkg, fmt.Sprintf("T%d", i), nil), types.Universe.Lookup("any").Type()))
	}
	named.SetTypeParams(all)
	pkg.Scope().Insert(name)
}

// importName is the name under which a file knows a package that it imports without a
// name.
func importName(importPath string) string {
	base := path.Base(importPath)
	if len(base) > 1 && base[0] == 'v' && base[1] >= '0' && base[1] <= '9' {
		base = path.Base(path.Dir(importPath))
	}
	return base
}
