package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// resultsCommand writes the page of results.
type resultsCommand struct {
	Out string `help:"The file." default:"bench/RESULTS.md" type:"path"`
}

// What the page has: commands that write Markdown, and those that write tables of their
// own.
var (
	inMarkdown = []string{
		"delivery", "delivery --provider=iwarp:127.0.0.1", "latency", "latency --provider=iwarp:127.0.0.1",
		"bandwidth", "bandwidth --provider=iwarp:127.0.0.1", "scale", "connect", "connect --provider=iwarp:127.0.0.1",
	}
	asTables = []string{"ratios", "targets", "iwarp", "stream"}
)

// Run measures everything and writes the page.
func (r *resultsCommand) Run(c *command, out io.Writer) error {
	var page bytes.Buffer
	err := c.results(out, &page, inMarkdown, asTables)
	text := strings.TrimRight(page.String(), "\n") + "\n"
	return errors.Join(err, os.WriteFile(r.Out, []byte(text), 0o644))
}

// results writes the page of some commands. A part that fails says so in its place, and
// is an error of the whole.
func (c *command) results(progress io.Writer, page *bytes.Buffer, inMarkdown, asTables []string) (all error) {
	fmt.Fprint(page, "# Results\n\nWritten by `go run ./bench results`. What the figures mean, and what not to conclude from them: README.md.\n\n")
	part := func(command string, flags ...string) {
		fmt.Fprintln(progress, "go run ./bench", command)
		err := run(append(append(c.turns(), strings.Fields(command)...), flags...), page)
		if err != nil && !errors.Is(err, errMissed) { // the table tells what was missed
			fmt.Fprintf(page, "`go run ./bench %s` failed: %v\n\n", command, err)
			all = errors.Join(all, fmt.Errorf("%s: %w", command, err))
		}
	}
	for _, command := range inMarkdown {
		part(command, "--format=markdown")
	}
	for _, command := range asTables {
		fmt.Fprintf(page, "## go run ./bench %s\n\n```\n", command)
		part(command)
		fmt.Fprint(page, "```\n\n")
	}
	return all
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
