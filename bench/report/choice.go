package report

import (
	"fmt"
	"strings"

	"godat/bench/load"
	"godat/bench/stats"
)

// choice is what a choice between a channel and polling stands on. An estimate that was not
// measured has no repeats.
type choice struct {
	light  load.Rate      // the least rate in open loop; 0 if there is none
	slower stats.Estimate // how much longer a message takes by channel at that rate
	saved  stats.Estimate // how many processors a channel saves at that rate
	back   stats.Estimate // how much longer a message takes by channel back to back
	most   stats.Estimate // how many messages a channel carries at saturation, in those of polling
	rate   float64        // and how many that are in a second
	beyond []way          // that carry more than a channel at saturation
}

// says what to choose.
func (c *choice) says() string {
	if c.light == 0 {
		return c.unloaded()
	}
	longer, saves, fewer := than(c.slower, 0), than(c.saved, 0), than(c.most, 1) < 0
	if !c.saved.Sure || c.saved.High-c.saved.Low > wide {
		saves = 0
	}
	var text []string
	add := func(when bool, sentence string) {
		if when {
			text = append(text, sentence)
		}
	}
	slower := duration(c.slower.Median)
	switch {
	case saves > 0:
		add(true, fmt.Sprintf("Choose a channel where messages come now and then: it leaves %s processors to others.", twoDigits(c.saved.Median)))
		add(longer > 0, fmt.Sprintf("It costs %s a message.", slower))
		add(longer <= 0, "This run shows no price in time.")
		add(longer > 0, "Poll if that time matters more than a processor.")
		add(longer <= 0 && !fewer, "This run has no reason to poll.")
	case longer > 0:
		add(true, fmt.Sprintf("This run shows no processor saved by a channel. Poll if a processor can be spared and %s a message matter.", slower))
	default:
		add(fewer, "Choose a channel: no other price of it than this can be told here.")
		add(!fewer, "Choose a channel: no price of it can be told here.")
	}
	add(fewer, c.over())
	return strings.Join(text, " ")
}

// over says what to choose beyond what a channel carries.
func (c *choice) over() string {
	text := fmt.Sprintf("Where one consumer must take over %s, poll", rateOf(c.rate))
	var names []string
	for _, w := range c.beyond {
		names = append(names, w.name)
	}
	if n := len(names); n > 1 {
		names = append(names[:n-2], names[n-2]+" or "+names[n-1])
	}
	if names != nil {
		text += ", or take " + strings.Join(names, ", ")
	}
	return text + "."
}

// unloaded is what to choose if no rate in open loop was measured, where a channel saves.
func (c *choice) unloaded() string {
	const rest = " What a channel saves while messages come now and then was not measured: the run had no such rate with figures."
	if than(c.most, 1) < 0 {
		return c.over() + rest
	}
	if than(c.back, 0) > 0 {
		return fmt.Sprintf("Poll if a processor is always busy with messages, and %s of each matter.", duration(c.back.Median)) + rest
	}
	return "This run shows no reason to poll." + rest
}
