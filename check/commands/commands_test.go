// Package commands tries the commands that pages and package documentation print: each
// names a program, a target, a stage or a package that there is. With -commands.run it also
// builds the programs and looks for the flags in their help, and runs the commands that need
// nothing but this machine, with the servers and clients that pages print; the checks do that from a fresh copy of the repository, with an
// empty HOME.
package commands

import (
	"cmp"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// command is a command as a page prints it.
type command struct {
	page string
	line int
	text string
	dir  string   // where it runs, from the root
	args []string // words, without settings of the environment before, and redirections behind
}

var (
	inCode  = regexp.MustCompile("`([^`\n]+)`")
	setting = regexp.MustCompile(`^[A-Z]+=`)
	// begins says how a command begins; the names of programs alone are those of README files.
	begins = regexp.MustCompile(`^(?:[A-Z]+=\S+ )*(?:cd \S+ && )?(?:go (?:run|test|doc|build|mod)|make|bash|\.ci/run|\./nvmeof|volume [a-z]+)(?: |$)`)
)

// find returns the commands of all pages but the changes, the figures, and test data, and
// of the comments of packages.
func find(t *testing.T) (all []command) {
	require.NoError(t, filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(root, file)
		require.NoError(t, err)
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir() && (d.Name() == "testdata" || rel == ".git"):
			return filepath.SkipDir
		case rel == "CHANGELOG.md", rel == "bench/RESULTS.md":
		case strings.HasSuffix(rel, ".md"), strings.HasSuffix(rel, ".go"):
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			all = append(all, commandsOf(rel, string(text))...)
		}
		return nil
	}))
	return all
}

func commandsOf(page, text string) (all []command) {
	fenced := false
	for number, line := range strings.Split(text, "\n") {
		var candidates []string
		line = strings.TrimRight(line, "\r")
		switch {
		case strings.HasSuffix(page, ".go"):
			if code, is := strings.CutPrefix(line, "//\t"); is {
				candidates = []string{code}
			} else if strings.HasPrefix(line, "//") {
				candidates = quotedIn(line)
			}
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case fenced:
			candidates = []string{strings.TrimSpace(line)}
		default:
			candidates = quotedIn(line)
		}
		for _, c := range candidates {
			if begins.MatchString(c) {
				all = append(all, parse(page, number+1, c)...)
			}
		}
	}
	return all
}

func quotedIn(line string) (all []string) {
	for _, m := range inCode.FindAllStringSubmatch(line, -1) {
		all = append(all, m[1])
	}
	return all
}

// parse divides a line into its commands.
func parse(page string, line int, text string) (all []command) {
	dir := "."
	if path.Base(path.Dir(page)) == "volume" || strings.HasPrefix(page, "examples/volume/bench/") {
		dir = "examples/volume" // a module of its own
	}
	text, _, _ = strings.Cut(text, "  ") // what stands behind explains
	for _, one := range strings.Split(text, " && ") {
		one, _, _ = strings.Cut(one, " #")
		words := strings.Fields(one)
		for len(words) > 0 && setting.MatchString(words[0]) {
			words = words[1:]
		}
		if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, ">") }); i >= 0 {
			words = words[:i]
		}
		for i, w := range words {
			words[i] = strings.Trim(w, `'"`)
		}
		if len(words) == 2 && words[0] == "cd" {
			dir = words[1]
		} else if len(words) > 0 {
			all = append(all, command{page, line, one, dir, words})
		}
	}
	return all
}

func read(t *testing.T, file string) string {
	text, err := os.ReadFile(path.Join(root, file))
	require.NoError(t, err)
	return string(text)
}

// wrong says what is wrong with a command; of a program only after its help.
func (c *command) wrong(t *testing.T, programs *programs) (found []string) {
	missing := func(text, pattern string, names []string, what string) {
		for _, name := range names {
			if !regexp.MustCompile(`(?m)` + strings.ReplaceAll(pattern, "NAME", regexp.QuoteMeta(name))).MatchString(text) {
				found = append(found, "no "+what+" "+name)
			}
		}
	}
	switch c.args[0] {
	case "make":
		missing(read(t, "Makefile"), `^NAME:`, c.args[1:], "target")
	case ".ci/run":
		missing(read(t, ".ci/run"), `^(?:stage|beside) NAME +\d`, c.args[1:], "stage")
	case "bash":
		if _, err := os.Stat(path.Join(root, c.dir, c.args[1])); err != nil {
			found = append(found, "no script "+c.args[1])
		}
	case "./nvmeof":
		found = programs.wrong(t, ".", "./examples/nvmeof", c.args[1:])
	case "volume":
		found = programs.wrong(t, "examples/volume", ".", c.args[1:])
	case "go":
		found = c.wrongGo(t, programs)
	}
	return found
}

func (c *command) wrongGo(t *testing.T, programs *programs) (found []string) {
	if len(c.args) < 3 {
		return nil // it speaks of go test itself
	}
	rest := c.args[2:]
	switch c.args[1] {
	case "run":
		return programs.wrong(t, c.dir, rest[0], rest[1:])
	case "doc":
		if rest[len(rest)-1] == "NAME" {
			rest = rest[:len(rest)-1]
		}
		if out, err := run(root, "go", append([]string{"doc"}, rest...)...); err != nil {
			found = append(found, out)
		}
	case "build", "test":
		for _, arg := range rest {
			if pkg, is := strings.CutPrefix(arg, "./"); is {
				if _, err := os.Stat(path.Join(root, c.dir, strings.TrimSuffix(pkg, "..."))); err != nil {
					found = append(found, "no package "+arg)
				}
			}
		}
	}
	return found
}

func run(dir, name string, args ...string) (out string, err error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// programs knows the programs that commands name.
type programs struct {
	dir  string            // where they are built
	help map[string]string // what each says of itself, with the words of a command
}

// build returns the program of a package.
func (p *programs) build(t *testing.T, dir, pkg string) string {
	name := filepath.Join(p.dir, strings.NewReplacer("/", "-", ".", "").Replace(path.Join("p", dir, pkg))+exe)
	if _, err := os.Stat(name); err == nil {
		return name
	}
	out, err := run(filepath.Join(root, dir), "go", "build", "-o", name, pkg)
	require.NoError(t, err, "go build %s in %s: %s", pkg, dir, out)
	return name
}

var (
	listed   = regexp.MustCompile(`(?m)^  ([a-z]+)\b`) // a command, in a program's help
	flagWord = regexp.MustCompile(`^--?([a-zA-Z][\w-]*)`)
)

// wrong says which flags of a command a program's help does not have.
func (p *programs) wrong(t *testing.T, dir, pkg string, args []string) (found []string) {
	if mains, _ := filepath.Glob(filepath.Join(root, dir, pkg, "main.go")); mains == nil {
		return []string{"no program " + pkg}
	}
	if !*runAll {
		return nil
	}
	name := p.build(t, dir, pkg)
	help := p.helpOf(name)
	// By their help the programs of kong are known; their commands have help of their own.
	if strings.HasPrefix(help, "Usage: ") {
		help += p.helpOfCommands(name, help, args)
	}
	for _, arg := range args {
		if arg == "--" {
			break // the rest is another program's
		}
		m := flagWord.FindStringSubmatch(strings.Trim(arg, "[]"))
		if m != nil && m[1] != "help" && m[1] != "h" && !regexp.MustCompile(`(?m)(^|[\s,])--?(\[no-\])?`+regexp.QuoteMeta(m[1])+`\b`).MatchString(help) {
			found = append(found, pkg+" has no flag "+arg)
		}
	}
	return found
}

// helpOfCommands returns the help of the commands that args name. If there is none, it is the
// help of all, among which is the usual one.
func (p *programs) helpOfCommands(name, help string, args []string) (named string) {
	var all string
	for _, c := range listed.FindAllStringSubmatch(help, -1) {
		all += p.helpOf(name, c[1])
		if slices.Contains(args, c[1]) {
			named += p.helpOf(name, c[1])
		}
	}
	return cmp.Or(named, all)
}

func (p *programs) helpOf(name string, words ...string) string {
	key := strings.Join(append([]string{name}, words...), " ")
	if _, is := p.help[key]; !is {
		p.help[key], _ = run(p.dir, name, append(words, "--help")...)
	}
	return p.help[key]
}

func TestEachCommandOfAPageNamesWhatThereIs(t *testing.T) {
	p := &programs{dir: t.TempDir(), help: map[string]string{}}
	all := find(t)
	for _, c := range all {
		for _, wrong := range c.wrong(t, p) {
			t.Errorf("%s:%d: %s: %s", c.page, c.line, c.text, wrong)
		}
	}
	assert.Greater(t, len(all), 80)
}

func TestAWrongCommandIsFound(t *testing.T) {
	p := &programs{dir: t.TempDir(), help: map[string]string{}}
	for text, want := range map[string]string{
		"make fnt lint":                                 "no target fnt",
		"SHUFFLE=<seed> .ci/run rase":                   "no stage rase",
		"bash bench/gest.sh":                            "no script bench/gest.sh",
		"go test -run 'X' ./ep2/...":                    "no package ./ep2/...",
		"go run ./examples/kv -listn 127.0.0.1:7000":    "./examples/kv has no flag -listn",
		"go run ./examples/vk -addr 127.0.0.1:7":        "no program ./examples/vk",
		"./nvmeof --provider iwarp serve --bloc 512":    "./examples/nvmeof has no flag --bloc",
		"go run ./examples/kv --addr 127.0.0.1:7 get k": "",
		"cd examples && go build ./kv && make fmt":      "",
	} {
		var found []string
		for _, c := range parse("README.md", 1, text) {
			found = append(found, c.wrong(t, p)...)
		}
		if *runAll || !strings.Contains(want, "has no flag") {
			assert.Equal(t, want, strings.Join(found, "; "), text)
		}
	}
}
