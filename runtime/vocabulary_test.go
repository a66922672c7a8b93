package runtime

import (
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A thing has one name, in the package that declares it: there go doc shows it with its methods.
func TestNothingIsNamedTwice(t *testing.T) {
	for path, pkg := range loadSources(t).packages {
		for _, name := range pkg.Scope().Names() {
			switch o := pkg.Scope().Lookup(name).(type) {
			case *types.TypeName:
				assert.False(t, o.Exported() && o.IsAlias(), "%s.%s is another name of %s", path, name, o.Type())
			case *types.Const:
				of, ok := types.Unalias(o.Type()).(*types.Named)
				assert.False(t, o.Exported() && ok && of.Obj().Pkg() != pkg, "%s.%s is a %s of another package", path, name, o.Type())
			}
		}
	}
}

// contract are types of hw that the way of a program from runtime ends at: those of the contract with
// providers, which WithProvider takes, and those that package ep needs of other packages.
var contract = []string{"hw.Provider", "hw.QP", "hw.SGE", "hw.Bind", "hw.Zone"}

// What a program comes to of hw is in the list for programs; all else of hw is for the authors of providers.
func TestWhatAProgramMeetsOfTheContractIsInItsList(t *testing.T) {
	met := meet(loadSources(t))
	var found []string
	for of := range met {
		if of.Pkg().Path() == "godat/hw" && !slices.Contains(contract, typeName(of)) {
			found = append(found, of.Name())
		}
	}
	assert.ElementsMatch(t, programTypes, found)
}

// typeName is a type's name in the words of the table: package.Name.
func typeName(of *types.TypeName) string { return of.Pkg().Name() + "." + of.Name() }

// meet finds the types that a program can come to from the packages above hw, and by what, and those of
// errors, which errors.As finds.
func meet(s *sources) map[*types.TypeName]string {
	w := walk{met: make(map[*types.TypeName]string)}
	for path, pkg := range s.packages {
		for _, name := range pkg.Scope().Names() {
			o := pkg.Scope().Lookup(name)
			if _, constant := o.(*types.Const); constant || !o.Exported() || slices.Contains(unreachable, pkg.Name()+"."+name) || behindDoor(o.Type()) {
				continue
			}
			if path != "godat/hw" && path != "godat/internal/door" || strings.HasSuffix(name, "Error") {
				w.visit(o.Type(), name)
			}
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
	if slices.Contains(contract, typeName(of)) {
		return
	}
	for m := range t.Methods() {
		if m.Exported() && !behindDoor(m.Type()) {
			w.visit(m.Type(), of.Name()+"."+m.Name())
		}
	}
	w.visit(t.Underlying(), of.Name())
}
