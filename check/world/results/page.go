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
	"strconv"
	"strings"
	"time"

	"godat/check/mutate/patch"
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
		found = strings.ReplaceAll(strings.Join(r.findings, "; "), "|", "/")
	}
	fmt.Fprintf(out, "| %s over %s | %d | %d | %v | %v | %s | %s |\n", r.Program, r.Provider, r.seeds, r.same,
		r.took.Round(time.Second), r.spent.Round(100*time.Millisecond), strings.Join(troubles, ", "), found)
}

// summary matches the last line of a run of command plant.
var summary = regexp.MustCompile(`^\d+ of (\d+) found.*, by \d+ seeds$`)

// planted writes what plant has printed as a table, with what was expected of each fault.
func planted(out io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var rows bytes.Buffer
	planted, found, sum := 0, 0, 0
	for line := range strings.Lines(string(text)) {
		if m := summary.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			n, _ := strconv.Atoi(m[1])
			sum += n
		}
		name, came, ok := strings.Cut(strings.TrimSpace(line), ".patch")
		if !ok {
			continue
		}
		text, err := os.ReadFile(name + ".patch")
		if errors.Is(err, fs.ErrNotExist) {
			text, err = os.ReadFile(filepath.Join("../mutate/mutations", name+".patch"))
		}
		if err != nil {
			return fmt.Errorf("%s has a fault that is gone: %w", path, err)
		}
		header, _, err := patch.Read(text)
		if err != nil {
			return err
		}
		came = strings.TrimSpace(came)
		if strings.HasPrefix(came, "not planted") {
			return fmt.Errorf("%s has a fault that nobody could plant: %s", path, line)
		}
		if planted++; !strings.HasPrefix(came, "lives") {
			found++
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", name, strings.Join(header["Expect"], " "), strings.ReplaceAll(came[:min(len(came), 200)], "|", "/"))
	}
	if planted == 0 || planted != sum {
		return fmt.Errorf("%s has %d faults, and sums of %d: it is to have what command plant prints, to the end", path, planted, sum)
	}
	_, err = fmt.Fprintf(out, "\n## %s\n\n%d of %d are found. What was expected stands in each fault's patch, and stood there before the run.\n\n"+
		"| fault | expected | came |\n|---|---|---|\n%s", strings.TrimSuffix(filepath.Base(path), ".txt"), found, planted, &rows)
	return err
}
