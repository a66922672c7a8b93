package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// change replaces one piece of text in one file.
type change struct {
	file     string // relative to the module's root
	old, new string
}

// mutation is one entry of a table.
type mutation struct {
	where   string // table file and line, for messages
	name    string
	pkg     string        // package of the test, "./hw/loop"
	test    string        // regular expression for the test's name
	build   []string      // flags for the compiler
	run     []string      // flags for the test binary
	limit   time.Duration // time limit of its runs; 0 is the runner's
	changes []change
}

// title is the mutation's name after its table's.
func (m *mutation) title() string {
	table, _, _ := strings.Cut(m.where, ".txt")
	return table + ": " + m.name
}

// loadTables reads all tables in dir, in the order of their names.
func loadTables(dir string) ([]mutation, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no tables in %s", dir)
	}
	var all []mutation
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		ms, err := parseTable(filepath.Base(name), text)
		if err != nil {
			return nil, err
		}
		all = append(all, ms...)
	}
	return all, nil
}

// parseTable reads one table; name is for messages.
func parseTable(name string, text []byte) ([]mutation, error) {
	p := tableParser{name: name, lines: bufio.NewScanner(bytes.NewReader(text))}
	for p.next() {
		if err := p.entryLine(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.where(), err)
		}
	}
	if err := p.finish(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.where(), err)
	}
	return p.all, nil
}

// tableParser reads a table line by line.
type tableParser struct {
	name  string
	lines *bufio.Scanner
	n     int    // line number
	line  string // the current line

	all  []mutation
	cur  *mutation
	file string // of the changes that follow
}

func (p *tableParser) where() string { return fmt.Sprintf("%s:%d", p.name, p.n) }

func (p *tableParser) next() bool {
	if !p.lines.Scan() {
		return false
	}
	p.n++
	p.line = p.lines.Text()
	return true
}

// entryLine handles a line outside the arrows.
func (p *tableParser) entryLine() error {
	line := strings.TrimSpace(p.line)
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	if title, ok := strings.CutPrefix(line, "== "); ok {
		if err := p.finish(); err != nil {
			return err
		}
		p.cur = &mutation{where: p.where(), name: strings.TrimSpace(title)}
		p.file = ""
		return nil
	}
	if p.cur == nil {
		return fmt.Errorf("%q stands before the first \"== name\"", line)
	}
	if line == "<<<" {
		return p.change()
	}
	return p.field(line)
}

// field handles "file", "test" and "flags".
func (p *tableParser) field(line string) error {
	words := strings.Fields(line)
	switch key := words[0]; {
	case key == "file" && len(words) == 2:
		p.file = words[1]
	case key == "test" && len(words) == 3:
		p.cur.pkg, p.cur.test = words[1], words[2]
	case key == "flags" && len(words) > 1:
		return p.flags(words[1:])
	default:
		return fmt.Errorf("%q is not file PATH, test PACKAGE REGEXP, flags FLAG..., <<< or # comment", line)
	}
	return nil
}

// flags sorts flags into those for the compiler and those for the test.
func (p *tableParser) flags(words []string) error {
	for _, f := range words {
		if limit, ok := strings.CutPrefix(f, "-timeout="); ok {
			var err error
			if p.cur.limit, err = time.ParseDuration(limit); err != nil {
				return err
			}
			continue
		}
		if f == "-race" || strings.HasPrefix(f, "-tags=") {
			p.cur.build = append(p.cur.build, f)
			continue
		}
		if name, _, _ := strings.Cut(f, "="); strings.Contains(name, ".") { // the package's own
			p.cur.run = append(p.cur.run, f)
			continue
		}
		p.cur.run = append(p.cur.run, "-test."+strings.TrimLeft(f, "-"))
	}
	return nil
}

// change reads the old and the new text, up to the closing arrows.
func (p *tableParser) change() error {
	if p.file == "" {
		return errors.New("a change needs a file before it")
	}
	before, err := p.until("===")
	if err != nil {
		return err
	}
	after, err := p.until(">>>")
	if err != nil {
		return err
	}
	if before == after || before == "" {
		return errors.New("the old text must not be empty or equal to the new")
	}
	p.cur.changes = append(p.cur.changes, change{p.file, before, after})
	return nil
}

// until gathers lines up to one that is exactly end.
func (p *tableParser) until(end string) (string, error) {
	var lines []string
	for p.next() {
		if p.line == end {
			return strings.Join(lines, "\n"), nil
		}
		lines = append(lines, p.line)
	}
	return "", fmt.Errorf("no %s to end the text", end)
}

// finish checks the entry that ends here and keeps it.
func (p *tableParser) finish() error {
	if err := p.lines.Err(); err != nil {
		return err
	}
	if p.cur == nil {
		return nil
	}
	if p.cur.test == "" || len(p.cur.changes) == 0 {
		return fmt.Errorf("mutation %q needs a test and a change", p.cur.name)
	}
	p.all = append(p.all, *p.cur)
	p.cur = nil
	return nil
}
