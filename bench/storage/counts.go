package storage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"godat/bench/host"
	"godat/bench/load"
)

// tally is what all turns of a cell counted together.
type tally struct {
	load             Load
	took             time.Duration
	commands         int64
	switches, system int64
	server, client   loops
}

func (c *cell) tally() tally {
	t := tally{load: c.load}
	for i := range c.samples {
		s := &c.samples[i]
		t.took, t.commands = t.took+s.Took, t.commands+s.Count
		t.switches, t.system = t.switches+s.Switches, t.system+s.System
		t.server, t.client = t.server.plus(s.Server), t.client.plus(s.Client)
	}
	return t
}

// plus adds two counts of an end.
func (l loops) plus(other loops) loops {
	sum := l.since(loops{}.since(other))
	sum.Provider = other.Provider
	return sum
}

// each is a count for each command, or of idle for each second.
func (t *tally) each(n float64) float64 {
	if t.load.Idle {
		return n / max(1e-9, t.took.Seconds())
	}
	return n / float64(max(1, t.commands))
}

// wakeUps are an end's: each ends a sleep of what waits for the device.
func (l *loops) wakeUps() float64 { return float64(l.Polls.Waits) }

func (t *tally) wakeUps() float64 { return t.each(t.server.wakeUps() + t.client.wakeUps()) }
func (t *tally) empty() float64 {
	return t.each(float64(t.server.Polls.Empty) + float64(t.client.Polls.Empty))
}

// tookBy says by which loop an end took its events.
func (t *tally) tookBy(l loops) string {
	var parts []string
	for _, by := range []struct {
		name string
		n    int64
	}{{"channel", l.Channel}, {"batches", l.Batches}, {"dequeued", l.Dequeued}, {"answered", l.Served}} {
		if by.n > 0 {
			parts = append(parts, by.name+" "+few3(t.each(float64(by.n))))
		}
	}
	if parts == nil {
		return "–"
	}
	return strings.Join(parts, ", ")
}

// few3 shows a count in three digits.
func few3(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// ends shows a count of the target and the host.
func (t *tally) ends(count func(l *loops) float64) string {
	shown := func(l *loops) string {
		if l.Provider == "" {
			return "–"
		}
		return few3(t.each(count(l)))
	}
	return shown(&t.server) + " : " + shown(&t.client)
}

// none is how many for each command are as good as none.
const none = 0.1

func countMet(expected, seen float64) bool { return met(max(expected, none), max(seen, none)) }

// countsOf is a row of a table, and whether its guess was met, if there is one.
func (p *Page) countsOf(c *cell) (text string, guessed, hit bool) {
	if c.refused != nil {
		return fmt.Sprintf("| %s | refused: %s |\n", c.row, strings.ReplaceAll(c.refused.Error(), "\n", "; ")), false, false
	}
	t := c.tally()
	expected := "none"
	g, guessed := guessOf(p.guesses, c.key)
	if guessed {
		seen := []float64{t.wakeUps(), t.empty()}
		var parts []string
		hit = true
		for i, v := range g.values {
			part := few3(v)
			if !countMet(v, seen[i]) {
				part, hit = part+" missed", false
			}
			parts = append(parts, part)
		}
		expected = strings.Join(parts, ", ")
	}
	return fmt.Sprintf("| %s | %d | %s : %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", c.row, t.commands, t.tookBy(t.server), t.tookBy(t.client),
		t.ends((*loops).wakeUps),
		t.ends(func(l *loops) float64 { return float64(l.Polls.Wakes) }),
		t.ends(func(l *loops) float64 { return float64(l.Polls.Arms) }),
		t.ends(func(l *loops) float64 { return float64(l.Polls.Found) }),
		t.ends(func(l *loops) float64 { return float64(l.Polls.Empty) }),
		few3(t.each(float64(t.switches))), few3(t.each(float64(t.system))), expected), guessed, hit
}

// countTables are those of all loads, with how many guesses there were, and how many were met.
func (p *Page) countTables() (text string, guesses, hits int) {
	var w strings.Builder
	for _, place := range p.study.Places {
		fmt.Fprintf(&w, "### %v\n\n", place)
		for _, l := range loads(p.study.Rates, p.study.Depths) {
			unit := "for each command"
			if l.Idle {
				unit = "in a second"
			}
			fmt.Fprintf(&w, "#### %v\n\nCounts %s, of the target : the host.\n\n| row | commands | events taken by | wake-ups | made by the library | asked for a wake-up | polls that found | polls that found nothing | switches of both ends | of the system | expected: wake-ups, polls that found nothing |\n| --- |%s\n",
				l, unit, strings.Repeat(" ---:|", 10))
			for _, r := range p.study.rows {
				if c := p.study.at[key{place, r.Name, l}]; c != nil {
					line, guessed, hit := p.countsOf(c)
					w.WriteString(line)
					if guessed {
						guesses++
					}
					if hit {
						hits++
					}
				}
			}
			w.WriteString("\n")
		}
	}
	return w.String(), guesses, hits
}

// judged says at which loads a program that sets nothing wakes up more often than it may. A bound at saturation has
// the wake-ups of the loop that polls. Where that was refused, the bound is at least what it is without them, so what
// is above that is not judged.
func (p *Page) judged() string {
	var w strings.Builder
	all, judged, within, woken, polled, inVain := 0, 0, 0, 0, 0, 0
	for _, place := range p.study.Places {
		for _, l := range loads(p.study.Rates, p.study.Depths) {
			mine, one, other := p.study.at[key{place, place.unset(), l}], p.study.at[key{place, channel, l}], p.study.at[key{place, poll, l}]
			if l.Idle || mine == nil || one == nil || other == nil || mine.refused != nil || one.refused != nil {
				continue
			}
			a, c, q := mine.tally(), one.tally(), other.tally()
			bound, least := mostProcessor*c.wakeUps(), ""
			switch {
			case l.Rate == load.Closed && other.refused == nil:
				bound = none + q.wakeUps()
			case l.Rate == load.Closed:
				bound, least = none, "at least "
			}
			all++
			verdict := "not judged"
			switch {
			case a.wakeUps() <= bound:
				verdict, judged, within = "within", judged+1, within+1
			case least == "":
				verdict, judged = "beyond", judged+1
			}
			if a.wakeUps() > mostProcessor*max(none, c.wakeUps()) {
				woken++
			}
			polls, vain := few3(q.wakeUps()), few3(q.empty())
			if other.refused != nil {
				polls, vain = "refused", "refused"
			} else if polled++; a.empty() > q.empty() {
				inVain++
			}
			fmt.Fprintf(&w, "| %v | %v | %s | %s | %s | %s%s | %s | %s, %s, %s |\n", place, l, few3(c.wakeUps()), few3(a.wakeUps()), polls, least, few3(bound), verdict,
				few3(c.empty()), few3(a.empty()), vain)
		}
	}
	unknown := ""
	if judged < all {
		unknown = fmt.Sprintf(" Not judged: %d, because the loop that polls was refused there, and nobody knows how often it wakes up.", all-judged)
	}
	return fmt.Sprintf("A program that sets nothing is to wake up at a rate at most %v times as often as with a channel, and at saturation at most %v times for each command more than a loop that polls, of both ends together. Of %d loads %d are judged, and it does so at %d of these.%s It wakes up over %v times as often as with a channel at %d of all %d, and polls in vain more often than a loop that polls at %d of the %d where that was not refused.\n\n| place | load | channel | sets nothing | poll | at most | verdict | polls that found nothing, of each |\n| --- | --- | ---:| ---:| ---:| ---:| --- | ---:|\n%s",
		mostProcessor, none, all, judged, within, unknown, mostProcessor, woken, all, inVain, polled, w.String())
}

// counts is the page of a study of counts: of a machine whose times mean nothing.
func (p *Page) counts() string {
	s := p.study
	tables, guesses, hits := p.countTables()
	var rows strings.Builder
	for _, r := range s.rows {
		if !slices.ContainsFunc(s.Places, func(p Place) bool { return p.has(r) }) {
			continue
		}
		fmt.Fprintf(&rows, "- **%s**: %s.\n", r.Name, r.Does)
	}
	return fmt.Sprintf("# Interrupt or poll, by counts\n\n`bash bench/storage-guest.sh --write` writes this page: [STORAGE.md](STORAGE.md)'s rows over verbs, beside Linux's own target, in a guest whose processors are emulated. It ran `%s` there.\n\n", s.Line) +
		fmt.Sprintf("%s\n%d turns of %v by the guest's clock for each load (idle %v). %s; such a turn is taken %d times at most, and then the row is refused at that load.\n\n## What it says\n\n", host.Describe(), s.Repeats, s.Duration, idleTurns*s.Duration, s.mistaken(), mostTimes) +
		p.judged() + countsAsked + "\n## What was expected, and seen\n\n" +
		fmt.Sprintf("A guess for each row was written before it ran (bench/storage/expectations-guest.txt). A guess is met within a factor of %v; what is below %v is as good as none. %d of %d rows met theirs; what was missed is marked.\n\n", within, none, hits, guesses) +
		tables + "## The rows\n\n" + rows.String()
}

const countsAsked = `
## What was asked

How often the ends of a storage target wake up and poll for each command: 4 KiB reads and writes of a store in memory, over soft-RoCE, with both ends in one guest as two processes. A wake-up ends a sleep of what waits for the device's event; and some wake-ups the library makes itself, of a thread that delivers or polls. What a row took its events by is what its adapters' snapshots say, and a row that ran another loop than it names is refused. A loop that polls, and is kept from its processor for a millisecond, loses the device, which then sleeps: here two such loops and soft-RoCE share two processors. Linux's target proves itself by its disk's statistics: each command is one read or write there. Switches of the system are those of all threads, the kernel's too.

## What not to conclude

- Nothing about time: an emulated processor runs a program ten to a hundred times slower, and not everything by the same factor.
- Nothing about how often a loop that polls finds nothing on another machine: that is how much time passes, in units of one poll.
- Little about saturation: an adapter polls on while completions come sooner than a sleep costs there, which it measures, and here they come from soft-RoCE on the two processors that both ends use, too. Where they take longer, it sleeps as a channel does.
- Nothing about an adapter: soft-RoCE is software of the kernel. The library decides what a command wakes up, and the device how many completions one wake-up finds.
- Nothing about what Linux's target takes: it is no process, and has no snapshot. Its switches are in those of the system, with the host's.
`
