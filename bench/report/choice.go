package report

import (
	"fmt"

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
	switch {
	case saves > 0:
		text := fmt.Sprintf("Choose a channel where messages come now and then: it leaves %s processors to others", twoDigits(c.saved.Median))
		if longer <= 0 {
			text += ", and this run shows no price in time. "
		} else {
			text += fmt.Sprintf(", and costs %s a message. ", duration(c.slower.Median))
		}
		switch {
		case longer > 0 && fewer:
			return text + fmt.Sprintf("Poll if that time matters more than a processor, or if one consumer must take over %s.", rateOf(c.rate))
		case longer > 0:
			return text + "Poll if that time matters more than a processor."
		case fewer:
			return text + fmt.Sprintf("Poll if one consumer must take over %s.", rateOf(c.rate))
		}
		return text + "This run has no reason to poll."
	case longer > 0 && fewer:
		return fmt.Sprintf("This run shows no processor saved by a channel: poll if a processor can be spared and %s a message, or over %s, matter.", duration(c.slower.Median), rateOf(c.rate))
	case longer > 0:
		return fmt.Sprintf("This run shows no processor saved by a channel: poll if a processor can be spared and %s a message matter.", duration(c.slower.Median))
	case fewer:
		return fmt.Sprintf("Choose a channel, unless one consumer must take over %s: no other price can be told here.", rateOf(c.rate))
	}
	return "Choose a channel: no price of it can be told here."
}

// unloaded is what to choose if no rate in open loop was measured, where a channel saves.
func (c *choice) unloaded() string {
	const rest = " What a channel saves while messages come now and then was not measured: the run had no such rate with figures."
	if than(c.most, 1) < 0 {
		return fmt.Sprintf("Poll if one consumer must take over %s.", rateOf(c.rate)) + rest
	}
	if than(c.back, 0) > 0 {
		return fmt.Sprintf("Poll if a processor is always busy with messages, and %s of each matter.", duration(c.back.Median)) + rest
	}
	return "This run shows no reason to poll." + rest
}
