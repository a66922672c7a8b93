package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is a copy of Go's own tree, of symbolic links, with this library and what it needs
// among the packages of the standard library.
type tree struct {
	from string // Go's own tree
	root string // the copy
	src  string // the copy's source
}

// tested is the directory whose tests run: it keeps its test files.
const tested = "net/http"

// newTree makes the tree in a directory.
func newTree(ctx context.Context, dir string) (*tree, error) {
	from, err := output(ctx, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	t := &tree{from: strings.TrimSpace(from), root: dir, src: filepath.Join(dir, "src")}
	for _, name := range []string{"bin", "pkg", "lib", "go.env", "VERSION"} {
		if err := os.Symlink(filepath.Join(t.from, name), filepath.Join(t.root, name)); err != nil {
			return nil, err
		}
	}
	if err := filepath.WalkDir(filepath.Join(t.from, "src"), t.link); err != nil {
		return nil, err
	}
	return t, t.addLibrary(ctx)
}

// link links a file of Go's tree into the copy. It leaves out what the tests don't need.
func (t *tree) link(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name, err := filepath.Rel(filepath.Join(t.from, "src"), path)
	if err != nil {
		return err
	}
	name = filepath.ToSlash(name)
	keep := strings.HasPrefix(name, tested+"/")
	switch {
	case d.IsDir() && (name == "cmd" || !keep && d.Name() == "testdata"):
		return fs.SkipDir
	case d.IsDir():
		return os.MkdirAll(filepath.Join(t.src, name), 0o755)
	case !keep && strings.HasSuffix(name, "_test.go"):
		return nil
	}
	return os.Symlink(path, filepath.Join(t.src, name))
}

// addLibrary adds package runtime/stream and all that it imports: this module's packages
// as standard ones, and those of other modules as vendored ones. What Go's tree vendors
// already serves both.
func (t *tree) addLibrary(ctx context.Context) error {
	list, err := output(ctx, "go", "list", "-deps", "-f",
		"{{if not .Standard}}{{.ImportPath}} {{.Dir}}{{if not .Module.Main}} {{.Module.Path}} {{.Module.Version}}{{end}}{{end}}",
		"godat/runtime/stream")
	if err != nil {
		return err
	}
	v, err := t.newVendored()
	if err != nil {
		return err
	}
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		into := filepath.Join(t.src, fields[0])
		if len(fields) == 4 {
			into = filepath.Join(t.src, "vendor", fields[0])
			if _, err := os.Stat(filepath.Join(t.from, "src", "vendor", fields[0])); err == nil {
				continue
			}
			v.add(fields[0], fields[2], fields[3])
		}
		if err := linkPackage(fields[1], into); err != nil {
			return err
		}
	}
	return v.write()
}

// linkPackage links the source files of a package.
func linkPackage(from, into string) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if f.IsDir() || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		switch filepath.Ext(f.Name()) {
		case ".go", ".s", ".h":
			if err := os.Symlink(filepath.Join(from, f.Name()), filepath.Join(into, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// vendored is the list of the standard library's vendored modules, which is in two files.
type vendored struct {
	t            *tree
	mod, modules string
}

const (
	modFile     = "go.mod"
	modulesFile = "vendor/modules.txt"
)

func (t *tree) newVendored() (*vendored, error) {
	mod, err := os.ReadFile(filepath.Join(t.src, modFile))
	if err != nil {
		return nil, err
	}
	modules, err := os.ReadFile(filepath.Join(t.src, modulesFile))
	return &vendored{t, string(mod), string(modules)}, err
}

// add adds a package of a module. If the standard library has other packages of the
// module, it is listed under that version.
func (v *vendored) add(pkg, module, version string) {
	if !strings.Contains(v.modules, "# "+module+" ") {
		v.mod += fmt.Sprintf("require %s %s\n", module, version)
		v.modules += fmt.Sprintf("# %s %s\n## explicit; go 1.18\n", module, version)
	}
	before, after, _ := strings.Cut(v.modules, "# "+module+" ")
	head, rest, _ := strings.Cut(after, "\n## explicit")
	explicit, rest, _ := strings.Cut(rest, "\n")
	v.modules = before + "# " + module + " " + head + "\n## explicit" + explicit + "\n" + pkg + "\n" + rest
}

func (v *vendored) write() error {
	if err := v.t.write(modFile, v.mod); err != nil {
		return err
	}
	return v.t.write(modulesFile, v.modules)
}

// write replaces a file of the copy's source.
func (t *tree) write(name, text string) error {
	path := filepath.Join(t.src, name)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// output runs a program and returns what it prints.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}
