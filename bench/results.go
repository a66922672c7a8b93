package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"godat/bench/host"
	"godat/bench/report"
)

// resultsCommand writes the page of results.
type resultsCommand struct {
	Out    string `help:"The file." default:"bench/RESULTS.md" type:"path"`
	Readme string `help:"The file whose marked lines get the two figures for readers in a hurry." default:"README.md" type:"path"`
	Guest  bool   `help:"Measure verbs in a guest, too: what check/guest/install.sh installs is needed, and half an hour."`
}

// What the page has: commands with reports, commands that write tables of their own, and
// scripts, of which the first writes Markdown.
var (
	withReports = []string{
		"delivery", "latency", "bandwidth", "scale", "connect", "delivery --producers=1,2,4 --depth=1,16,64 --rate=max --mode=poll,channel,batch",
		"delivery --provider=iwarp:127.0.0.1", "latency --provider=iwarp:127.0.0.1",
		"bandwidth --provider=iwarp:127.0.0.1", "connect --provider=iwarp:127.0.0.1",
		"peers",
	}
	asTables = []string{"ratios", "targets", "iwarp", "stream", "idle", "agree"}
	inGuest  = []string{"bench/guest.sh", "bench/ibv.sh 5"}
)

// The reports that README's figures come from, of withReports.
const (
	deliveryReport = 0
	latencyReport  = 1
)

// Run measures everything and writes the page.
func (r *resultsCommand) Run(c *command, out io.Writer) error {
	p := &page{c: c, progress: out}
	p.begin()
	p.reports(withReports)
	p.tables(asTables)
	if r.Guest {
		p.scripts(inGuest)
	}
	figures, err := p.figures()
	if err == nil {
		err = replaceFigures(r.Readme, figures)
	}
	text := strings.TrimRight(p.text.String(), "\n") + "\n"
	return errors.Join(p.failed, err, os.WriteFile(r.Out, []byte(text), 0o644))
}

// page is the page of results while it is written. A part that fails says so in its
// place.
type page struct {
	c        *command
	progress io.Writer
	text     bytes.Buffer
	measured []*report.Report // nil for a command that failed
	failed   error
}

func (p *page) begin() {
	fmt.Fprintf(&p.text, "# Results\n\n`go run ./bench results` wrote this page on %s, on %s. Each part names the command that repeats it.\n"+
		"What the figures mean, and what not to conclude from them: [README.md](README.md).\n\n", time.Now().UTC().Format("2006-01-02"), host.Describe())
}

// fail notes that a command failed; a target that was missed is no failure of the page.
func (p *page) fail(command string, err error) {
	if err == nil || errors.Is(err, errMissed) {
		return
	}
	fmt.Fprintf(&p.text, "`%s` failed: %v\n\n", command, err)
	p.failed = errors.Join(p.failed, fmt.Errorf("%s: %w", command, err))
}

// reports runs commands, and writes their reports.
func (p *page) reports(commands []string) {
	for _, command := range commands {
		line := "go run ./bench " + command
		fmt.Fprintln(p.progress, line)
		r, err := p.c.again.measured(append(p.c.turns(), strings.Fields(command)...))
		if err == nil {
			r.Command = line
			r.WriteMarkdown(&p.text)
		} else {
			r = nil
		}
		p.measured = append(p.measured, r)
		p.fail(line, err)
	}
}

// tables runs commands, and writes what they print.
func (p *page) tables(commands []string) {
	for _, command := range commands {
		line := "go run ./bench " + command
		fmt.Fprintln(p.progress, line)
		fmt.Fprintf(&p.text, "## %s\n\n```\n", line)
		err := p.c.again(append(p.c.turns(), strings.Fields(command)...), &p.text)
		fmt.Fprint(&p.text, "```\n\n")
		p.fail(line, err)
	}
}

// scripts runs scripts, of which the first writes Markdown.
func (p *page) scripts(scripts []string) {
	for i, script := range scripts {
		fmt.Fprintln(p.progress, "bash", script)
		cmd := exec.Command("bash", strings.Fields(script)...)
		cmd.Stderr = os.Stderr
		said, err := cmd.Output()
		if i == 0 {
			fmt.Fprintf(&p.text, "%s\n\n", bytes.TrimSpace(said))
		} else {
			fmt.Fprintf(&p.text, "## bash %s\n\n```\n%s\n```\n\n", script, bytes.TrimSpace(said))
		}
		p.fail("bash "+script, err)
	}
}

// figures are the lines that README has.
func (p *page) figures() (string, error) {
	delivery, latency := p.measured[deliveryReport], p.measured[latencyReport]
	if delivery == nil || latency == nil {
		return "", errors.New("no figures for README: delivery or latency failed")
	}
	return fmt.Sprintf("- %s\n- %s\n\nMessages of 64 bytes on `loop`, measured on %s by `go run ./bench`, which answers for your machine. "+
		"[bench/RESULTS.md](bench/RESULTS.md) has all tables.\n", delivery.Answer(), latency.Only("poll", "channel", "net.Conn").Answer(), delivery.Host), nil
}

// The lines between which README has its figures.
const (
	figuresBegin = "<!-- go run ./bench results writes the lines from here -->\n"
	figuresEnd   = "<!-- to here -->\n"
)

// replaceFigures replaces what is between the marks of a file.
func replaceFigures(name, figures string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), figuresBegin)
	_, after, ends := strings.Cut(rest, figuresEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %q and %q", name, strings.TrimSpace(figuresBegin), strings.TrimSpace(figuresEnd))
	}
	return os.WriteFile(name, []byte(before+figuresBegin+figures+figuresEnd+after), 0o644)
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
