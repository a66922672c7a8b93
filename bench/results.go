package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"godat/bench/page"
)

// resultsCommand writes the page of results.
type resultsCommand struct {
	Out    string   `help:"The file." default:"bench/RESULTS.md" type:"path"`
	Readme string   `help:"The file whose marked lines get the sentences for readers in a hurry." default:"README.md" type:"path"`
	Only   []string `help:"Measure only these parts, and keep the others as they are in the file: loop, iwarp, peers, idle." placeholder:"PART"`
}

// part is a part of the page that can be measured by itself.
type part struct {
	name, title, note string
	lines             []string // command lines of this program
}

// parts are those of the page. README's figures come from the first two reports of the part that is quoted.
func parts() []part {
	return []part{
		{"loop", "Messages inside one process", "", []string{
			"delivery", "latency", "bandwidth --mode=poll,channel,batch", "scale --mode=poll,channel,batch", "connect",
			"delivery --producers=1,2,4 --depth=4,64 --rate=max --mode=poll,channel,batch",
		}},
		{"iwarp", "Messages over iWARP", "Both ends are in one process, over loopback TCP.", []string{
			"delivery --provider=iwarp:127.0.0.1 --no-anchors --mode=poll,wait,channel,batch", "latency --provider=iwarp:127.0.0.1",
			"bandwidth --provider=iwarp:127.0.0.1 --mode=poll,channel,batch", "connect --provider=iwarp:127.0.0.1",
		}},
		{"peers", "What others take for the same work", "", []string{"peers", "peers --only net --size 1048576 --depth 1"}},
		{"idle", "Idle connections", "Each process may have 20 000 descriptors. Over loop, both ends are in one process.", []string{
			"idle --for=30s", "idle --streams --for=30s", "idle --streams --ia=loop --for=30s",
		}},
	}
}

// wanted reports whether the part is to be measured.
func (r *resultsCommand) wanted(name string) bool {
	return len(r.Only) == 0 || slices.Contains(r.Only, name)
}

// check refuses names of parts that there are not.
func (r *resultsCommand) check() error {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	for _, name := range r.Only {
		if !slices.Contains(names, name) {
			return misusedf("no part %q: one of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// Run measures what is wanted. It writes the page after each part, so that what was
// measured is not lost with a later one. A part that fails says why in its place.
func (r *resultsCommand) Run(c *command, out io.Writer) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.wanted(quoted) {
		if err := figures.Check(r.Readme); err != nil {
			return err
		}
	}
	if _, err := readPage(r.Out); err != nil { // before minutes of measuring
		return err
	}
	var failed error
	for _, part := range parts() {
		if !r.wanted(part.name) {
			continue
		}
		m := measurement{c: c, progress: out}
		text := m.measure(part)
		failed = errors.Join(failed, m.failed, m.writeHistograms(strings.TrimSuffix(r.Out, ".md")+"-"+part.name+".hlog"))
		if part.name == quoted {
			failed = errors.Join(failed, m.writeFigures(r.Readme))
		}
		p, err := readPage(r.Out) // another process may have measured other parts meanwhile
		if err != nil {
			return errors.Join(failed, err)
		}
		p[part.name] = text
		if err := page.WriteText(r.Out, p.String()); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// quoted is the part that README's figures come from.
const quoted = "loop"

// resultsPage is the page of results: by part, the text of each one that was measured, now or before.
type resultsPage map[string]string

// marksOf are the lines around a part.
func marksOf(part string) page.Marks {
	return page.Marks{Begin: "<!-- part " + part + " -->\n", End: "<!-- end of part " + part + " -->\n"}
}

// readPage reads the parts of a page that was written before, if there is one. A text that has no
// part is not overwritten, nor one whose parts can't be told from each other.
func readPage(name string) (resultsPage, error) {
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	p := resultsPage{}
	for _, part := range parts() {
		_, text, _, err := marksOf(part.name).Cut(string(old))
		if errors.Is(err, page.ErrNoMarks) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		p[part.name] = text
	}
	if len(p) == 0 && strings.TrimSpace(string(old)) != "" {
		return nil, fmt.Errorf("%s is no page of results, since no part has its marks: move it away, or name another file by --out", name)
	}
	return p, nil
}

// String is the whole page. A part that was never measured says how it can be.
func (p resultsPage) String() string {
	var b strings.Builder
	b.WriteString("# Results\n\n`go run ./bench results` writes this page, and `go run ./bench results --only PART` one part of it. Each part names the machine, and the\n" +
		"commands that repeat it. Beside this page each part but idle has a log of all its latencies, `RESULTS-PART.hlog`, as HdrHistogram writes it. What the figures mean, and\n" +
		"what not to conclude from them: [README.md](README.md).\n\n")
	for _, part := range parts() {
		text := p[part.name]
		if text == "" {
			text = fmt.Sprintf("## %s\n\nNot measured yet: `go run ./bench results --only %s`\n\n", part.title, part.name)
		}
		m := marksOf(part.name)
		b.WriteString(m.Begin + text + m.End + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// turns are the flags of the repeats, if they are set.
func (c *command) turns() (flags []string) {
	if c.Repeats > 0 {
		flags = append(flags, fmt.Sprint("--repeats=", c.Repeats))
	}
	if c.Duration > 0 {
		flags = append(flags, fmt.Sprint("--duration=", c.Duration))
	}
	return flags
}
