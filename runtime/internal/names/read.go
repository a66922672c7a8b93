package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// pkg has the exported declarations of a package.
type pkg struct {
	name      string
	types     map[string]*ast.TypeSpec
	docs      map[string]string // of types, functions and the single constant of a declaration
	funcs     map[string]*ast.FuncDecl
	methods   map[string][]*ast.FuncDecl // by receiver
	constants map[string][]*constants    // by type; "" for constants without one
	comments  map[string]string          // of constants and variables
	typed     map[string]string          // the types of constants
}

// constants are the constants of one type in one declaration.
type constants struct {
	doc   string
	names []*ast.Ident
	heads map[string]string // the comment above a constant
}

// read parses a package, without its tests and what it has for one system alone.
func read(dir string) (*pkg, error) {
	p := &pkg{
		types: map[string]*ast.TypeSpec{}, docs: map[string]string{}, funcs: map[string]*ast.FuncDecl{},
		methods: map[string][]*ast.FuncDecl{}, constants: map[string][]*constants{}, comments: map[string]string{}, typed: map[string]string{},
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if len(parsed.Comments) > 0 && strings.HasPrefix(parsed.Comments[0].List[0].Text, "//go:build") {
			continue
		}
		p.name = parsed.Name.Name
		for _, decl := range parsed.Decls {
			p.add(decl)
		}
	}
	return p, nil
}

func (p *pkg) add(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || behindDoor(d.Type) {
			return
		}
		if d.Recv == nil {
			p.funcs[d.Name.Name], p.docs[d.Name.Name] = d, d.Doc.Text()
		} else if d.Name.Name != "String" {
			of := receiver(d.Recv.List[0].Type)
			p.methods[of] = append(p.methods[of], d)
		}
	case *ast.GenDecl:
		switch d.Tok {
		case token.TYPE:
			for _, spec := range d.Specs {
				s := spec.(*ast.TypeSpec)
				p.types[s.Name.Name] = s
				p.docs[s.Name.Name] = d.Doc.Text() + s.Doc.Text()
			}
		case token.CONST, token.VAR:
			p.addValues(d)
		default: // imports
		}
	}
}

// addValues adds the constants or variables of a declaration. A constant without a type
// and a value has those of the one before it.
func (p *pkg) addValues(d *ast.GenDecl) {
	groups := map[string]*constants{}
	of := ""
	for _, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		if s.Type != nil {
			of = ""
			if id, ok := s.Type.(*ast.Ident); ok {
				of = id.Name
			}
		} else if s.Values != nil {
			of = p.typeOf(s.Values[0])
		}
		for _, name := range s.Names {
			if !name.IsExported() {
				continue
			}
			g := groups[of]
			if g == nil {
				g = &constants{doc: d.Doc.Text(), heads: map[string]string{}}
				groups[of] = g
				p.constants[of] = append(p.constants[of], g)
			}
			g.names = append(g.names, name)
			g.heads[name.Name] = s.Doc.Text()
			p.typed[name.Name] = of
			p.comments[name.Name] = strings.TrimSpace(s.Comment.Text())
			if !d.Lparen.IsValid() {
				p.docs[name.Name] = d.Doc.Text()
			}
		}
	}
}

// typeOf is the type of an expression of constants that stand before it, "" for others.
func (p *pkg) typeOf(e ast.Expr) (of string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && of == "" {
			of = p.typed[id.Name]
		}
		return of == ""
	})
	return of
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// behindDoor reports whether a function takes a door.Key, which no program has.
func behindDoor(f *ast.FuncType) bool {
	for _, field := range f.Params.List {
		if sel, ok := field.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Key" {
			if of, ok := sel.X.(*ast.Ident); ok && of.Name == "door" {
				return true
			}
		}
	}
	return false
}
