package storage

import (
	_ "embed"
	"fmt"
	"path"
	"strconv"
	"strings"
)

//go:embed expectations.txt
var expectations string

//go:embed expectations-guest.txt
var countExpectations string

// guess is what was expected of a cell before it ran.
type guess struct {
	cell   [4]string // provider, processors, row, load; patterns
	values []float64 // of idle one, and else two
}

// What the values of expectations.txt are.
func (g guess) idle() float64      { return g.values[0] }       // percent of a core
func (g guess) p50() float64       { return 1e3 * g.values[0] } // nanoseconds
func (g guess) processor() float64 { return 1e3 * g.values[1] } // nanoseconds for each command

// within is the factor by which a guess may differ from what was seen, either way.
const within = 1.5

// parseGuesses reads a file of expectations.
func parseGuesses(text string) (list []guess, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Split(line, "|")
		words := strings.Fields(parts[0])
		if len(words) != 4 || len(parts) < 2 || len(parts) > 3 || (words[3] == "idle") != (len(parts) == 2) {
			return nil, fmt.Errorf("no expectation: %q", line)
		}
		g := guess{cell: [4]string(words)}
		for _, part := range parts[1:] {
			v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			if err != nil || v < 0 {
				return nil, fmt.Errorf("no expectation: %q", line)
			}
			g.values = append(g.values, v)
		}
		list = append(list, g)
	}
	return list, nil
}

// words are how expectations name a cell.
func (k key) words() [4]string {
	provider, _, _ := strings.Cut(k.place.Provider, ":")
	load := "idle"
	if !k.load.Idle {
		load = fmt.Sprintf("%d@%s", k.load.Depth, strings.TrimSuffix(strings.Replace(k.load.rate(), "saturation", "sat", 1), "/s"))
	}
	return [4]string{provider, strconv.Itoa(k.place.Processors), k.row, load}
}

// guessOf finds the guess of a cell.
func guessOf(list []guess, k key) (guess, bool) {
	words := k.words()
	for _, g := range list {
		fits := true
		for i := range words {
			ok, err := path.Match(g.cell[i], words[i])
			fits = fits && ok && err == nil
		}
		if fits {
			return g, true
		}
	}
	return guess{}, false
}

// met reports whether a guess is near what was seen.
func met(expected, seen float64) bool {
	return seen <= expected*within && seen*within >= expected
}
