package storage

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"godat/bench/host"
	"godat/bench/load"
	pages "godat/bench/page"
	"godat/bench/stats"
)

// Page is the page of a study.
type Page struct {
	study   *Study
	guesses []guess
}

// NewPage makes the page of a study that has run.
func NewPage(s *Study) (*Page, error) {
	text := expectations
	if s.Counts {
		text = countExpectations
	}
	guesses, err := parseGuesses(text)
	return &Page{s, guesses}, err
}

// String is the page.
func (p *Page) String() string {
	s := p.study
	if s.Counts {
		return p.counts()
	}
	var w strings.Builder
	fmt.Fprintf(&w, "# Interrupt or poll\n\n`%s` writes this page. What does it cost a storage target and its host to sleep until a completion comes, or to poll for it?\n\n", s.Line)
	w.WriteString(p.Machine() + "\n## What it says\n\n" + p.Summary() + "\n")
	for _, place := range s.Places {
		fmt.Fprintf(&w, "![processor time and latency by load](%s)\n", plotName(place))
	}
	w.WriteString(asked + "\n" + notToConclude + "\n" + p.repeat() + "\n## Where the lines cross\n\n" + p.crossings() + "\n" + p.dominated() + "## What was expected, and seen\n\n" + p.misses() + "\n" + explanation + "\n")
	list := loads(s.Rates, s.Depths)
	for _, place := range s.Places {
		fmt.Fprintf(&w, "### %v\n\n", place)
		for _, l := range list {
			if l.Idle {
				w.WriteString(s.idleTable(place, p.guesses))
				continue
			}
			w.WriteString(s.table(place, p.guesses, l))
		}
	}
	w.WriteString("## The rows\n\n")
	for _, r := range s.rows {
		fmt.Fprintf(&w, "- **%s**: %s.\n", r.Name, r.Does)
	}
	return w.String()
}

const asked = `
## What was asked

4 KiB reads and writes of random blocks, through the target and the host of ` + "`examples/nvmeof`" + `, of a store in memory, which costs next to nothing: so what is left is the delivery. Depth is how many commands are under way at most. A load is a number of commands a second, each with an intended time, or saturation: as many as there can be. Where a provider has a wire, target and host are two processes; the simulated polled device joins two adapters of one process. All rows take turns, and in each turn the processes of a row start anew, so that no row runs beside another one that spins.

After each load a row proves by the snapshots of both adapters which loop it ran. A channel, batches and polling each take events of their own kind, at least one for each command at each end. A row that sleeps must have slept as soon as it found the device empty, and one that polls must have polled on; the row *adaptive* must poll on at saturation. A row that ran another loop than it names is refused. The row *pacer* has no target and no command: it is what the instrument takes.
`

const notToConclude = `## What not to conclude

- Nothing about a device: iwarp is software over the kernel's TCP, and the simulated device has no wire: a poll of it reads memory, and what ends a sleep is a goroutine's wake-up, without a bus or an interrupt. An adapter's interrupt and its polls cost what they cost there: repeat it. bench/STORAGE-guest.md counts wake-ups and polls over verbs, beside Linux's own target.
- Nothing about a store that takes time: with a disk of 100 µs behind it, 10 µs of delivery are a tenth.
- Nothing about many connections: each row has one queue. A loop that polls for each of 1000 queues has no processors for them.
- Nothing about a processor that others want: a loop that polls has its figures here because it may have the processor.
- Nothing about the latency of a loop that polls, where loops have all processors of their process or of the machine: Go's scheduler looks at timers and sockets every 10 ms then, and the pacer waits for it. So do two loops in one process of two processors, and two processes on a machine of two. Where the lag is most of a median latency, the figure is the pacer's. The column *p50 from its beginning* leaves out the pacer's lag. It also leaves out the wait that a late loop causes.
- Nothing about a sleep on ibv: no verbs device was measured.
- Nothing about a small difference or a ratio at rates where the row *pacer* takes nearly as much processor time as another row: the figure is the pacer's then, which sleeps and wakes up for each command, and two rows look alike, or behind, by it.
- Nothing about a processor that is idle for long: idle is one connection without a keep-alive, for the time said above.
- Nothing about processor time on a kernel that keeps interrupts apart (CONFIG_IRQ_TIME_ACCOUNTING): getrusage leaves out there what TCP does in softirqs, so iwarp and net.Conn look cheaper than they are.
- The lag, which is the pacer's, is part of every latency, and differs by what rows take from its processor. Each row runs its loads in the same order, after a warm-up of half a turn. Turns that other programs disturbed are not left out.
`

const explanation = `A median and its interval of 95 % over the turns; p99 and p99.9 are of all turns together, also of those that fell behind, and left out with fewer than ten commands beyond. Latency counts from the intended time (of saturation from the submission), so a command that waits for room waits in its figure; *behind* says that less was done than was asked for, in most turns or in as many as it says. The p50 from its beginning is the median from when a command began. Processor time is that of both processes (getrusage) without the pacer's spinning, which is in the last column; its sleeps, its wake-ups and its ticks are in each row, as the row *pacer* has them alone. The pacer sleeps until 50 µs before an intended time, or a quarter of the time between two, and spins the rest; its lag is how late commands began. STORAGE.hlog beside this page has all latencies, as an HdrHistogram log.
`

// repeat says how to repeat the study.
func (p *Page) repeat() string {
	return fmt.Sprintf("## How to repeat it\n\n```\n%s\n```\n\nWith an adapter, one command, on a machine that does nothing else:\n\n```\ngo run ./bench storage --provider ibv:DEVICE --host ADDRESS --write --folder .\n```\n\n"+
		"DEVICE is one of `ibv_devices`, ADDRESS an address of its port. Send back STORAGE.md, STORAGE.hlog and the plots that it writes into the folder, with the adapter's model and firmware.\n", p.study.Line)
}

// Machine says where and how it was measured.
func (p *Page) Machine() string {
	s := p.study
	return fmt.Sprintf("%s\n%d turns of %v for each load (idle %v). During %d of %d loads other programs used over a quarter of the processors. %s; such a turn is taken %d times at most, and then the row is refused.\n",
		host.Describe(), s.Repeats, s.Duration, idleTurns*s.Duration, s.disturbed, s.turns, s.mistaken(), mostTimes)
}

// mistaken says how many turns ran another loop than their rows name.
func (s *Study) mistaken() string {
	switch s.again {
	case 0:
		return "No turn ran another loop than its row names"
	case 1:
		return "1 turn ran another loop than its row names"
	}
	return fmt.Sprintf("%d turns ran another loop than their rows name", s.again)
}

// Summary is what other pages quote: by place where polling is below a channel, and how a program fares that
// sets nothing.
func (p *Page) Summary() string {
	s, depth := p.study, p.study.Depths[len(p.study.Depths)-1]
	var w strings.Builder
	fmt.Fprintf(&w, "Polling beside a channel, with %d reads of 4 KiB under way:\n\n| place | polling takes less processor time for each read | polling has the lower median latency | at saturation, reads | and processor time of each |\n| --- | --- | --- | ---:| ---:|\n", depth)
	for _, place := range s.Places {
		fmt.Fprintf(&w, "| %v | %s | %s | %s |\n", place,
			s.cross(place, false, depth, poll, channel, (*cell).processor).brief(), s.cross(place, false, depth, poll, channel, (*cell).p50).brief(), s.saturation(place, depth))
	}
	return w.String() + "\n" + p.unset()
}

// saturation is what polling does of a channel's commands when there are as many as there can be, and its
// processor time of each.
func (s *Study) saturation(place Place, depth int) string {
	both := s.measured(place, Load{Depth: depth, Rate: load.Closed}, poll, channel)
	if both == nil || !both[0].known() || !both[1].known() {
		return "– | –"
	}
	one, other := both[0], both[1]
	return fmt.Sprintf("%.2f times | %.2f times", median(stats.Ratios(one.iops(), other.iops())), median(stats.Ratios(one.processor(), other.processor())))
}

// crossings are all crossing points.
func (p *Page) crossings() string {
	s := p.study
	var w strings.Builder
	w.WriteString("At which rates polling is below a channel, interpolated for each turn; rates that one of the two did not keep up with are left out, and saturation is no rate.\n\n| place | load | processor time per IO | p50 | p50 from its beginning |\n| --- | --- | --- | --- | --- |\n")
	for _, place := range s.Places {
		for _, write := range []bool{false, true} {
			for _, depth := range s.Depths {
				fmt.Fprintf(&w, "| %v | %s, depth %d | %v | %v | %v |\n", place, Load{Write: write}.op(), depth,
					s.cross(place, write, depth, poll, channel, (*cell).processor), s.cross(place, write, depth, poll, channel, (*cell).p50), s.cross(place, write, depth, poll, channel, (*cell).own))
			}
		}
	}
	return w.String()
}

// dominated says of each place where the adapter's own way is beyond its bounds.
func (p *Page) dominated() string {
	var w strings.Builder
	for _, place := range p.study.Places {
		w.WriteString(p.study.dominated(place))
	}
	return w.String()
}

// misses counts the guesses that were met.
func (p *Page) misses() string {
	all, hits := 0, 0
	for _, c := range p.study.cells {
		g, ok := guessOf(p.guesses, c.key)
		if !ok || c.refused != nil || !c.known() {
			continue
		}
		all++
		switch {
		case c.load.Idle:
			if met(g.idle(), median(c.share())) {
				hits++
			}
		case !c.saturated() && met(g.p50(), median(c.p50())) && met(g.processor(), median(c.processor())):
			hits++
		}
	}
	return fmt.Sprintf("A guess for each cell was written before it ran (bench/storage/expectations.txt): a median latency and a processor time, both of which must be within a factor of %v. %d of %d cells met theirs; what was missed is marked in the tables.\n", within, hits, all)
}

// The lines around what is written into other pages.
var marks = pages.Marks{Begin: "<!-- go run ./bench storage --write writes the lines from here -->\n", End: "<!-- to here -->"}

// Writable is an error if a page could not be written in a folder, or the page above it not be rewritten.
func Writable(folder string) error {
	return errors.Join(pages.Writable(folder), marks.Quotable(above(folder)))
}

// above is the page that quotes a folder's.
func above(folder string) string { return filepath.Join(folder, "..", "README.md") }

// Refused is an error if rows were, or if the figures mean nothing.
func (p *Page) Refused() error {
	var errs []error
	for _, text := range p.study.Refused() {
		errs = append(errs, errors.New(text))
	}
	if why := p.study.Busy(); why != "" {
		errs = append(errs, errors.New(why))
	}
	return errors.Join(errs...)
}

// Write writes the page in a folder, with its logs and plots, and the marked lines of the README.md
// above it. Figures that are not all measured, or that mean nothing, replace none.
func (p *Page) Write(folder string) error {
	if why := p.Refused(); why != nil {
		return fmt.Errorf("the pages in %s stay as they are: %w", folder, why)
	}
	if p.study.Counts {
		return pages.WriteText(filepath.Join(folder, "STORAGE-guest.md"), p.String())
	}
	for _, place := range p.study.Places {
		var svg bytes.Buffer
		if err := p.study.plot(&svg, place); err != nil {
			return err
		}
		if err := pages.WriteText(filepath.Join(folder, plotName(place)), svg.String()); err != nil {
			return err
		}
	}
	err := errors.Join(
		pages.Write(filepath.Join(folder, "STORAGE.hlog"), p.study.WriteLogs),
		pages.WriteText(filepath.Join(folder, "STORAGE.md"), p.String()))
	if err != nil {
		return err
	}
	return marks.Quote(above(folder), p.Summary()+"[bench/STORAGE.md](bench/STORAGE.md) has the tables, and how to repeat it with an adapter.\n")
}

// plotName is the file of a place's plot.
func plotName(p Place) string {
	name, _, _ := strings.Cut(p.Provider, ":")
	return fmt.Sprintf("STORAGE-%s-%d.svg", name, p.Processors)
}

// Tables are what a run without a page prints.
func (p *Page) Tables() string {
	text := p.String()
	if p.study.Counts {
		return text
	}
	_, tables, _ := strings.Cut(text, "## Where the lines cross")
	return p.Machine() + "\n" + p.Summary() + "\n## Where the lines cross" + tables
}
