package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"godat/check/mutate/patch"
	"godat/check/world"
)

// summed is the last line of a page.
func summed(page []byte) string {
	return fmt.Sprintf("\n<!-- written by command results; CRC-32 of the page above: %08x -->\n", crc32.ChecksumIEEE(page))
}

// quoted are arguments as a shell takes them.
func quoted(args []string) string {
	plain := regexp.MustCompile(`^[-+\w./=,:]+$`)
	for i, arg := range args {
		if !plain.MatchString(arg) {
			args[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(args, " ")
}

// table writes what became of programs, and of all together.
func (c *campaign) table(out io.Writer, rows []*row) {
	fmt.Fprintf(out, "| program | seeds, from %d | run twice, and the same | the world's time | of a processor | troubles | findings |\n|---|---|---|---|---|---|---|\n", c.first)
	var seeds, same int
	var took, spent time.Duration
	for _, r := range rows {
		r.write(out)
		seeds, same, took, spent = seeds+r.seeds, same+r.same, took+r.took, spent+r.spent
	}
	fmt.Fprintf(out, "| all | %d | %d | %v | %v | | |\n", seeds, same, took.Round(time.Second), spent.Round(time.Second))
}

func (r *row) write(out io.Writer) {
	var troubles []string
	for _, kind := range slices.Sorted(maps.Keys(r.troubles)) {
		troubles = append(troubles, fmt.Sprintf("%d %s", r.troubles[kind], kind))
	}
	found := "none"
	if len(r.findings) > 0 {
		found = cell(strings.Join(r.findings, "; "))
	}
	fmt.Fprintf(out, "| %s over %s | %d | %d | %v | %v | %s | %s |\n", r.Program, r.Provider, r.seeds, r.same,
		r.took.Round(time.Second), r.spent.Round(100*time.Millisecond), strings.Join(troubles, ", "), found)
}

// The lines of what command plant prints: the first, one for each fault, one for each room, the last.
var (
	began = regexp.MustCompile(`^commit (\S+(?:` + world.Changed + `)?)$`)
	fault = regexp.MustCompile(`^([\w-]+/[\w-]+)\.patch +(\S.*)$`)
	room  = regexp.MustCompile(`^([\w-]+): (\d+ of \d+) found(?:, \d+ of them in files that no program of the world has)?$`)
	ended = regexp.MustCompile(`^(\d+ of \d+) found(?:, \d+ of them in files that no program of the world has)?, by \d+ seeds$`)
	// outcome matches what became of a fault: it lives, or a seed finds it.
	outcome = regexp.MustCompile(`^(?:lives: (?:\d+ seeds|\d+ runs in \S+ of processors|the guest has none of its files)|[a-z]+ over [a-z]+, seed \d+(?: \(-world\.rounds \d+ -world\.troubles \d+\))?: \S.*)$`)
)

// campaigns are what runs of command plant have printed at one commit, each fault once.
type campaigns struct {
	commit string
	faults map[string]string // the outcomes
}

// count is how many of faults were found.
type count struct{ found, planted int }

func (n count) String() string { return fmt.Sprintf("%d of %d", n.found, n.planted) }

// planted writes what plant has printed as a table, with what was expected of each fault.
func (c *campaigns) planted(out io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var rows bytes.Buffer
	var all count
	var rooms map[string]count // of the run whose lines these are; nil between runs. That of all is "".
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\n"); rooms == nil {
			m := began.FindStringSubmatch(line)
			if m == nil {
				return fmt.Errorf("%s: %q is not how command plant begins, which is by its commit", path, line)
			}
			if m[1] != c.commit {
				return fmt.Errorf("%s is of commit %s, and this is %s: plant the faults anew", path, m[1], c.commit)
			}
			rooms = make(map[string]count)
			continue
		}
		said, sum, last := "", "", false
		if m := room.FindStringSubmatch(line); m != nil {
			said, sum = m[1], m[2]
		} else if m := ended.FindStringSubmatch(line); m != nil {
			sum, last = m[1], true
		} else if err := c.row(&rows, rooms, line); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if n := rooms[said]; sum != "" && sum != n.String() {
			return fmt.Errorf("%s says %q, and has %v", path, line, n)
		}
		if last {
			all.found, all.planted, rooms = all.found+rooms[""].found, all.planted+rooms[""].planted, nil
		}
	}
	if rooms != nil || all.planted == 0 {
		return fmt.Errorf("%s has no fault, or not all of a run's lines: it is to have what command plant prints, to the end", path)
	}
	_, err = fmt.Fprintf(out, "\n## %s\n\n%v are found. What was expected stands in each fault's patch, and stood there before the run.\n\n"+
		"| fault | expected | came |\n|---|---|---|\n%s", cell(strings.TrimSuffix(filepath.Base(path), ".txt")), all, &rows)
	return err
}

// row writes the line of a fault as a row, and counts it.
func (c *campaigns) row(out io.Writer, rooms map[string]count, line string) error {
	m := fault.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("%q is no line of command plant's", line)
	}
	name, came := m[1], strings.TrimSpace(m[2])
	switch {
	case strings.HasPrefix(came, "not planted"):
		return fmt.Errorf("a fault that nobody could plant: %s", line)
	case !outcome.MatchString(came):
		return fmt.Errorf("%q is nothing that becomes of a fault", line)
	case c.faults[name] != "":
		return fmt.Errorf("%s was planted before, and became: %s", name, c.faults[name])
	}
	c.faults[name] = came
	text, err := os.ReadFile(name + ".patch")
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join("../mutate/mutations", name+".patch"))
	}
	if err != nil {
		return fmt.Errorf("a fault that is gone: %w", err)
	}
	header, _, err := patch.Read(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, of := range []string{filepath.Dir(name), ""} {
		n := rooms[of]
		if n.planted++; !strings.HasPrefix(came, "lives") {
			n.found++
		}
		rooms[of] = n
	}
	_, err = fmt.Fprintf(out, "| %s | %s | %s |\n", name, cell(strings.Join(header["Expect"], " ")), cell(came[:min(len(came), 200)]))
	return err
}

// cell is a text as a cell of a table has it.
func cell(text string) string {
	return strings.NewReplacer("|", "/", "&", "&amp;", "<", "&lt;").Replace(strings.ToValidUTF8(text, ""))
}
