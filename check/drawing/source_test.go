package drawing

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"strings"
)

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
