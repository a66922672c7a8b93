package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/report"
	"godat/bench/stats"
)

// TestTwoRunsAgree counts of how many figures the intervals of two runs meet, which tells how much of
// a difference is the machine's. Unless it is asked for pairs, it makes one of runs that are too short to mean anything:
//
//	go test ./bench -run '^TestTwoRunsAgree$' -v -timeout 60m -agree.pairs 10
var (
	agreePairs = flag.Int("agree.pairs", 0, "pairs of runs whose figures TestTwoRunsAgree compares")
	agreeLine  = flag.String("agree.line", strings.Join(usualAgree, " "), "the command to run twice for each pair, with its flags")
)

func TestTwoRunsAgree(t *testing.T) {
	if *agreePairs > 0 {
		require.NoError(t, agree(&command{again: run}, os.Stdout, *agreePairs, strings.Fields(*agreeLine)))
		return
	}
	var out strings.Builder
	brief := command{again: run, Repeats: 1, Duration: 10 * time.Millisecond}
	if err := agree(&brief, &out, 1, []string{"delivery", "--mode=poll", "--rate=closed", "--no-anchors"}); !errors.Is(err, errNoFigure) { // as on a busy machine
		require.NoError(t, err)
		assert.Regexp(t, `two runs agreed in \d of \d comparisons`, out.String())
	}
	assert.Regexp(t, `poll .* closed`, out.String())
}

var errNoFigure = errors.New("no figure was measured by both runs of a pair")

// usualAgree is what the first sentence of the default run comes from.
var usualAgree = []string{"delivery", "--mode=poll,channel,batch", "--rate=closed,10k,100k,max", "--no-anchors"}

// rounding is the half of what is printed of a figure's last digit at most.
const rounding = 0.005

// agreement counts pairs of runs, of one row.
type agreement struct {
	row   report.Row
	agree [len(agreeing)]int
	pairs [len(agreeing)]int // in which both runs have the figure
}

// agreeing are the figures that are compared.
var agreeing = [...]struct {
	name string
	of   func(*report.Row) (stats.Estimate, bool)
}{
	{"p50", func(r *report.Row) (stats.Estimate, bool) { return r.Median() }},
	{"per second", func(r *report.Row) (stats.Estimate, bool) { return r.PerSecond, !r.Rate.Open() || r.Saturated }},
	{"processor", func(r *report.Row) (stats.Estimate, bool) { return r.Processor, r.Processor.Median > 0 }},
}

// agree runs the pairs, and prints how many agree.
func agree(c *command, out io.Writer, pairs int, line []string) error {
	args := append(c.turns(), line...)
	var list []*agreement
	for n := range pairs {
		began := time.Now()
		var pair [2]*report.Report
		for i := range pair {
			r, err := c.again.measured(args)
			if err != nil {
				return fmt.Errorf("%s made no report to compare: %w", strings.Join(args, " "), err)
			}
			pair[i] = r
		}
		for i := range pair[0].Rows {
			if i == len(list) {
				list = append(list, &agreement{row: pair[0].Rows[i]})
			}
			list[i].add(&pair[0].Rows[i], &pair[1].Rows[i])
		}
		fmt.Fprintf(os.Stderr, "pair %d of %d took %v\n", n+1, pairs, time.Since(began).Round(time.Second))
	}
	return printAgreements(out, strings.Join(args, " "), list)
}

// add compares two runs of the row.
func (a *agreement) add(x, y *report.Row) {
	if x.Refused != "" || y.Refused != "" {
		return
	}
	for i, f := range agreeing {
		ex, ok := f.of(x)
		ey, also := f.of(y)
		if !ok || !also {
			continue
		}
		a.pairs[i]++
		if !ex.Rounded(rounding).Apart(ey.Rounded(rounding)) {
			a.agree[i]++
		}
	}
}

// printAgreements prints in how many pairs the runs agree: the intervals of their figures
// meet.
func printAgreements(out io.Writer, line string, list []*agreement) error {
	t := newTable(out, "Pairs of runs whose intervals meet")
	header := table.Row{"", "load", "size", "outstanding"}
	for _, f := range agreeing {
		header = append(header, f.name)
	}
	t.AppendHeader(header)
	agree, pairs, figures, always := 0, 0, 0, 0
	for _, a := range list {
		row := table.Row{a.row.Name, a.row.Rate, a.row.Size, a.row.Depth}
		for i := range agreeing {
			if a.pairs[i] == 0 {
				row = append(row, "–")
				continue
			}
			row = append(row, fmt.Sprintf("%d of %d", a.agree[i], a.pairs[i]))
			agree, pairs = agree+a.agree[i], pairs+a.pairs[i]
			figures++
			if a.agree[i] == a.pairs[i] {
				always++
			}
		}
		t.AppendRow(row)
	}
	t.Render()
	if pairs == 0 {
		return errNoFigure
	}
	fmt.Fprintf(out, "\nOf %d figures, %d agreed within their intervals in all pairs of runs of go run ./bench %s,\nand two runs agreed in %d of %d comparisons (%.1f %%).\n",
		figures, always, line, agree, pairs, 100*float64(agree)/float64(pairs))
	return nil
}
