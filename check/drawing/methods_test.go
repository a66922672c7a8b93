package drawing

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mostMethods is how many methods a type may have, with those that embedded fields of this
// module's types give it: a reader finds them all at the type. One that has more is several
// types.
const mostMethods = 40

// source type-checks this module's packages from their files, without tests. It is an
// importer.
type source struct {
	files  *token.FileSet
	others types.Importer // of packages that are not this module's
	loaded map[string]*types.Package
}

func newSource() *source {
	files := token.NewFileSet()
	return &source{files, importer.ForCompiler(files, "gc", nil), map[string]*types.Package{}}
}

// Import returns a package. One of another module that this machine does not have is empty.
func (s *source) Import(pkg string) (*types.Package, error) {
	if s.loaded[pkg] == nil {
		var err error
		if dir, ours := strings.CutPrefix(pkg, module); ours {
			s.loaded[pkg], err = s.check(pkg, filepath.Join(root, dir))
		} else if s.loaded[pkg], err = s.others.Import(pkg); err != nil {
			s.loaded[pkg], err = types.NewPackage(pkg, path.Base(pkg)), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return s.loaded[pkg], nil
}

// check checks the package of a directory, but for the bodies of its functions.
func (s *source) check(pkg, dir string) (*types.Package, error) {
	found, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	for _, file := range append(found.GoFiles, found.CgoFiles...) {
		f, err := parser.ParseFile(s.files, filepath.Join(dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	config := types.Config{Importer: s, FakeImportC: true, IgnoreFuncBodies: true, Error: func(error) {}}
	checked, _ := config.Check(pkg, s.files, parsed, nil)
	return checked, nil
}

// tooWide says which types of a package have too many methods.
func tooWide(pkg *types.Package) (found []string) {
	for _, name := range pkg.Scope().Names() {
		of, isType := pkg.Scope().Lookup(name).(*types.TypeName)
		if !isType || of.IsAlias() {
			continue
		}
		t := of.Type()
		if !types.IsInterface(t) {
			t = types.NewPointer(t)
		}
		n := 0
		for m := range types.NewMethodSet(t).Methods() {
			if p := m.Obj().Pkg(); p != nil && strings.HasPrefix(p.Path()+"/", module) {
				n++
			}
		}
		if n > mostMethods {
			found = append(found, fmt.Sprintf("%s.%s has %d methods, with those of its embedded fields; %d at most", pkg.Path(), name, n, mostMethods))
		}
	}
	return found
}

func TestNoTypeHasMoreMethodsThanAReaderKeeps(t *testing.T) {
	s := newSource()
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); file != root && (name == "testdata" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		in, err := filepath.Rel(root, file)
		require.NoError(t, err)
		pkg, err := s.Import(module + filepath.ToSlash(in))
		var none *build.NoGoError
		if errors.As(err, &none) {
			return nil
		}
		require.NoError(t, err)
		for _, complaint := range tooWide(pkg) {
			t.Error(complaint)
		}
		return nil
	}))
	assert.Greater(t, len(s.loaded), 100, "packages")
	assert.NotNil(t, s.loaded[module+"ep"].Scope().Lookup("queue"))
}

func TestAnEmbeddedTypesMethodsCount(t *testing.T) {
	var b strings.Builder
	b.WriteString("package p\ntype inner struct{}\ntype Outer struct { *inner }\ntype Apart struct { inner *inner }\ntype Full interface { m0() }\n")
	for i := range mostMethods {
		fmt.Fprintf(&b, "func (*inner) m%d() {}\n", i)
	}
	b.WriteString("func (Outer) more() {}\nfunc (Apart) more() {}\n")
	s := newSource()
	f, err := parser.ParseFile(s.files, "p.go", b.String(), 0)
	require.NoError(t, err)
	config := types.Config{Importer: s}
	pkg, err := config.Check(module+"p", s.files, []*ast.File{f}, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"godat/p.Outer has 41 methods, with those of its embedded fields; 40 at most"}, tooWide(pkg))
}
