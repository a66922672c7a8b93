package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"godat/bench/stats"
)

// nearly is the least part of a whole that is nearly all of it.
const nearly = 0.8

// wakeUp says what a raw channel takes at a load at which a consumer sleeps between messages; it is empty
// if that was not measured, or its repeats don't agree.
func (b *beside) wakeUp() string {
	if b.raw == nil || than(b.time(), 0) <= 0 {
		return ""
	}
	raw, ok := b.raw.Median()
	if !ok || !raw.Steady() {
		return ""
	}
	text := fmt.Sprintf(" A raw Go channel takes %s there", duration(raw.Median))
	if ch, _ := b.channel.Median(); raw.Median >= nearly*ch.Median {
		text += ": nearly all of a channel's time is Go's wake-up of the consumer"
	}
	return text + "."
}

// saturated says how many messages both carry if another goroutine posts as fast as it can, what of the
// processors a message takes, and which other ways carry more than a channel.
func (b *beside) saturated() string {
	e := b.ratio()
	text := fmt.Sprintf("As fast as one goroutine can post, a channel carries %s and polling %s: ", rateOf(b.channel.PerSecond.Median), rateOf(b.polled.PerSecond.Median))
	if than(e, 1) == 0 {
		text += fmt.Sprintf("which is faster can't be told (a channel %s to %s times polling).", twoDigits(e.Low), twoDigits(e.High))
	} else {
		text += fmt.Sprintf("%s times as many (%s to %s).", twoDigits(e.Median), twoDigits(e.Low), twoDigits(e.High))
	}
	if spent := b.spent(); spent.Repeats > 0 {
		text += fmt.Sprintf(" A message costs %s of processor time by channel and %s polled: %s.",
			duration(b.channel.Processor.Median), duration(b.polled.Processor.Median), difference(spent, duration, "more", "less"))
	}
	var ways []string
	for _, w := range b.beyond() {
		ways = append(ways, w.name+" "+rateOf(w.rate))
	}
	if ways != nil {
		text += " Other ways carry more than a channel, too: " + strings.Join(ways, ", ") + "."
	}
	return text
}

// way is a way of delivery, and the messages that it carries in a second.
type way struct {
	name string
	rate float64
}

// inProse are the names of ways of delivery in sentences.
var inProse = map[string]string{"wait": "Wait", "batch": "batches", "per-request": "one-shots", "callback": "callbacks", "iterator": "an iterator"}

// beyond are the other ways that carry more than a channel, the fastest first.
func (b *beside) beyond() (list []way) {
	for _, row := range b.others {
		if row.PerSecond.Steady() && than(paired(row, b.channel, rates), 1) > 0 {
			list = append(list, way{cmp.Or(inProse[row.Name], row.Name), row.PerSecond.Median})
		}
	}
	slices.SortStableFunc(list, func(a, b way) int { return cmp.Compare(b.rate, a.rate) })
	return list
}

// changes reports whether at this load a channel has two states, and polling one.
func (b *beside) changes() bool {
	ch, _ := b.channel.Median()
	poll, ok := b.polled.Median()
	return b.rate.Open() && ch.Shape == stats.TwoStates && ok && poll.Steady()
}

// states says what the two states of a channel are.
func (b *beside) states() string {
	ch, _ := b.channel.Median()
	poll, _ := b.polled.Median()
	x, y := ch.States[0], ch.States[1]
	return fmt.Sprintf("At %s a channel has two states: a message takes %s in %d of %d repeats, and %s in %d. Polled it takes %s there.",
		inWords(b.rate), duration(x.At), x.Repeats, ch.Repeats, duration(y.At), y.Repeats, duration(poll.Median))
}

// rateOf writes a rate with two digits.
func rateOf(perS float64) string {
	step := math.Pow(10, math.Floor(math.Log10(max(perS, 1)))-1)
	n, unit := math.Round(perS/step)*step, ""
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.of {
			n, unit = n/u.of, u.name
			break
		}
	}
	digits := 0
	if n < 10 && unit != "" {
		digits = 1
	}
	return fmt.Sprintf("%.*f%s a second", digits, n, unit)
}
