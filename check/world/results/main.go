// Command results runs seeds of all programs, and writes the page RESULTS.md: how much was run, which troubles came, and
// what was found. Behind that are the campaigns that it is given, each as a file of what command plant has printed:
//
//	cd check/world && go run ./plant -run '^faults/' -seeds 100 > faults.txt
//	cd check/world && go run ./results -seeds 100 faults.txt > RESULTS.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"godat/check/world"
)

func main() {
	seeds := flag.Int("seeds", 10, "seeds of each program over each provider")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *seeds, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

// row is a line of the table of programs.
type row struct {
	world.Run
	seeds    int
	took     time.Duration
	troubles map[string]int
	findings []string
}

func run(ctx context.Context, out io.Writer, seeds int, campaigns []string) error {
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "# What the seeded world has run\n\nCommit %s, by `cd check/world && go run ./results -seeds %d`. A line repeats by its seed, as README.md says.\n\n",
		strings.TrimSpace(string(commit)), seeds)
	fmt.Fprintf(out, "| program | seeds | the world's time | troubles | findings |\n|---|---|---|---|---|\n")
	for _, guest := range []string{world.Guest, world.VolumeGuest} {
		if err := runGuest(ctx, out, guest, seeds); err != nil {
			return err
		}
	}
	for _, path := range campaigns {
		if err := campaign(out, path); err != nil {
			return err
		}
	}
	return nil
}

func runGuest(ctx context.Context, out io.Writer, guest string, seeds int) (err error) {
	dir, err := os.MkdirTemp("", "results")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := world.Build(ctx, ".", guest, dir, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	for _, r := range world.All(guest) {
		is := row{Run: r, seeds: seeds, troubles: make(map[string]int)}
		for i := range seeds {
			is.Seed = uint64(i + 1)
			result := is.In(ctx, p)
			is.took += result.Time
			for _, m := range brought.FindAllStringSubmatch(result.Output, -1) {
				n, _ := strconv.Atoi(m[1])
				is.troubles[m[2]] += n
			}
			if result.Err != "" {
				is.findings = append(is.findings, fmt.Sprintf("seed %d: %s", is.Seed, result.Err))
			}
		}
		is.write(out)
	}
	return nil
}

// brought matches the troubles in the line of a history.
var brought = regexp.MustCompile(`\b(\d+) (cut|full|hold|reset|restart|slip|slow|stop), `)

func (r *row) write(out io.Writer) {
	var troubles []string
	for _, kind := range slices.Sorted(maps.Keys(r.troubles)) {
		troubles = append(troubles, fmt.Sprintf("%d %s", r.troubles[kind], kind))
	}
	found := "none"
	if len(r.findings) > 0 {
		found = strings.Join(r.findings, "; ")
	}
	fmt.Fprintf(out, "| %s over %s | %d | %v | %s | %s |\n", r.Program, r.Provider, r.seeds, r.took.Round(time.Second), strings.Join(troubles, ", "), found)
}

// campaign writes what plant has printed as a table. Each fault was expected to be found.
func campaign(out io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n## %s\n\nExpected of each: a program that knows nothing of it finds it.\n\n| fault | came |\n|---|---|\n", strings.TrimSuffix(filepath.Base(path), ".txt"))
	for line := range strings.Lines(string(text)) {
		name, came, ok := strings.Cut(strings.TrimSpace(line), ".patch")
		if !ok {
			continue
		}
		came = strings.TrimSpace(came)
		fmt.Fprintf(out, "| %s | %s |\n", name, strings.ReplaceAll(came[:min(len(came), 160)], "|", "/"))
	}
	return nil
}
