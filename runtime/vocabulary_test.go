package runtime

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program needs one import. So this package has a name for every type that a program
// can come to from it by a call, a field or a result, and for every constant of such a
// type. It has no other aliases. What follows are the exceptions.

// others are types that a program may meet, and that have no name here: those of the
// contract with providers, which WithProvider takes.
var others = []string{
	"hw.Provider",
	// Package ep needs these of other packages, and no program uses them.
	"hw.QP", "hw.SGE", "hw.Bind", "hw.Zone",
}

// neverSeen are constants of DAT that no event or object of this library carries, and
// limits, which errors tell.
var neverSeen = []string{
	"event.AsyncDownTo1", "event.AsyncUpToMultiPath", "event.ExtensionEvent", "event.IBUDConnectionRequest", "event.IBUDEstablished",
	"event.IBUDReject", "event.IBUDError", "event.IBCollective", "event.IWExtensionEvent",
	"ep.UnconfiguredUnconnected", "ep.UnconfiguredReserved", "ep.UnconfiguredPassive", "ep.UnconfiguredTentative",
	"ep.ConnectedSinglePath", "ep.ConnectedMultiPath", "ep.SRQShutdown",
	"hw.OpFastRegister", "hw.OpInvalidate", "hw.OpMark", "hw.OpEnd", "hw.StatusLocalMM",
}

func TestEveryTypeThatAProgramMeetsHasANameHere(t *testing.T) {
	s := loadSources(t)
	named, _ := secondNames(s)
	met := meet(s)
	for of := range met {
		if of.Pkg().Name() == "runtime" || slices.Contains(others, typeName(of)) {
			continue
		}
		assert.NotEmpty(t, named[of], "%s, which a program meets by %s", typeName(of), met[of])
	}
	for of, name := range named {
		assert.NotEmpty(t, met[of], "no call, field or result of a program has the type of %s", name)
	}
}

func TestEveryConstantThatAProgramMeetsHasANameHere(t *testing.T) {
	s := loadSources(t)
	named, constants := secondNames(s)
	for path, pkg := range s.packages {
		if path == "godat/runtime" {
			continue
		}
		for _, name := range pkg.Scope().Names() {
			c, ok := pkg.Scope().Lookup(name).(*types.Const)
			if !ok || !c.Exported() || slices.Contains(neverSeen, pkg.Name()+"."+name) {
				continue
			}
			of, ok := c.Type().(*types.Named)
			if !ok || named[of.Obj()] == "" {
				continue
			}
			assert.True(t, constants[c.Type().String()+c.Val().ExactString()], "%s.%s, a %s", pkg.Name(), name, named[of.Obj()])
		}
	}
}

// What go doc shows of this package uses the package's own names. The names of other
// packages occur only in the line that declares an alias.
func TestThisPackageSpeaksItsOwnWords(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			for name, expr := range shown(decl) {
				ast.Inspect(expr, func(n ast.Node) bool {
					sel, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					of, _ := sel.X.(*ast.Ident)
					if of != nil && slices.Contains(tablePackages, of.Name) {
						word := of.Name + "." + sel.Sel.Name
						assert.Contains(t, others, word, "%s: %s says %s", file, name, word)
					}
					return true
				})
			}
		}
	}
}

// shown returns the types that go doc prints for a declaration, by the names that they
// are printed under.
func shown(decl ast.Decl) map[string]ast.Node {
	found := map[string]ast.Node{}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
			found[d.Name.Name] = d.Type
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			of, ok := spec.(*ast.TypeSpec)
			if !ok || !of.Name.IsExported() || of.Assign.IsValid() {
				continue
			}
			st, ok := of.Type.(*ast.StructType)
			if !ok {
				found[of.Name.Name] = of.Type
				continue
			}
			for _, f := range st.Fields.List {
				for _, name := range f.Names {
					if name.IsExported() {
						found[of.Name.Name+"."+name.Name] = f.Type
					}
				}
			}
		}
	}
	return found
}

func exportedReceiver(recv *ast.FieldList) bool {
	of := recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, ok := of.(*ast.Ident)
	return ok && name.IsExported()
}

// typeName is a type's name in the words of the table: package.Name.
func typeName(of *types.TypeName) string { return of.Pkg().Name() + "." + of.Name() }

// secondNames are the names that this package gives to types of other packages, by the
// type, and to constants, by type and value.
func secondNames(s *sources) (named map[*types.TypeName]string, constants map[string]bool) {
	named, constants = make(map[*types.TypeName]string), make(map[string]bool)
	scope := s.packages["godat/runtime"].Scope()
	for _, name := range scope.Names() {
		switch o := scope.Lookup(name).(type) {
		case *types.TypeName:
			if of, ok := types.Unalias(o.Type()).(*types.Named); ok && o.IsAlias() && o.Exported() {
				named[of.Origin().Obj()] = name
			}
		case *types.Const:
			if o.Exported() {
				constants[types.Unalias(o.Type()).String()+o.Val().ExactString()] = true
			}
		}
	}
	return named, constants
}

// meet finds the types that a program can come to from this package without naming
// another package, and by what. Of the aliases it begins with those of errors, which
// errors.As finds.
func meet(s *sources) map[*types.TypeName]string {
	w := walk{met: make(map[*types.TypeName]string)}
	scope := s.packages["godat/runtime"].Scope()
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		_, constant := o.(*types.Const)
		of, ok := o.(*types.TypeName)
		second := ok && of.IsAlias() && !strings.HasSuffix(name, "Error")
		if o.Exported() && !constant && !second {
			w.visit(o.Type(), name)
		}
	}
	return w.met
}

type walk struct {
	met map[*types.TypeName]string
}

// visit walks a type that a program comes to by what via names.
func (w *walk) visit(t types.Type, via string) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		w.named(t, via)
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				w.visit(f.Type(), via+"."+f.Name())
			}
		}
	case *types.Signature:
		for v := range t.Params().Variables() {
			w.visit(v.Type(), via)
		}
		for v := range t.Results().Variables() {
			w.visit(v.Type(), via)
		}
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels, maps
		w.visit(t.Elem(), via)
	}
}

func (w *walk) named(t *types.Named, via string) {
	of := t.Origin().Obj()
	if of.Pkg() == nil || !strings.HasPrefix(of.Pkg().Path(), "godat/") || !of.Exported() || w.met[of] != "" {
		return
	}
	w.met[of] = via
	if slices.Contains(others, typeName(of)) {
		return
	}
	for m := range t.Methods() {
		if m.Exported() && !behindDoor(m.Type()) {
			w.visit(m.Type(), of.Name()+"."+m.Name())
		}
	}
	w.visit(t.Underlying(), of.Name())
}
