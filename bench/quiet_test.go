package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/host"
)

// nobodyElse sees nothing that other programs do.
func nobodyElse() host.Disturbed { return func(time.Duration) bool { return false } }

// always sees that other programs use the processors.
func always() host.Disturbed { return func(time.Duration) bool { return true } }

// firstLine runs a command line beside other programs, and returns what it prints first.
func firstLine(t *testing.T, watch func() host.Disturbed, line string) (first string, err error) {
	t.Helper()
	var out bytes.Buffer
	err = runWith(run, watch, strings.Fields(line), &out)
	assert.Greater(t, strings.Count(out.String(), "\n"), 3, "what was measured is printed: %s", line)
	first, _, _ = strings.Cut(out.String(), "\n")
	return first, err
}

func TestCommandsThatPrintTablesSayFirstWhetherTheMachineCouldAnswer(t *testing.T) {
	contests := fmt.Sprintf("%[1]d of %[1]d turns", 6*2*min(2, runtime.NumCPU())) // two, with one processor and with two
	lines := map[string]string{
		"ratios --repeats=6 --slice=100us":                               contests,
		"idle --streams --ia=loop --connections=2 --for=1ms":             "1 of 1 turns",
	}
	for line, turns := range lines {
		first, err := firstLine(t, nobodyElse, line)
		require.NoError(t, err, line)
		assert.Equal(t, "This machine could answer: "+turns+" were undisturbed.", first, line)
		first, err = firstLine(t, always, line)
		require.ErrorIs(t, err, errUnable, line)
		assert.Equal(t, "This machine could not answer: other programs used over a quarter of the processors during "+turns+".", first, line)
	}
}

func TestTooFewRepeatsAreNoAnswer(t *testing.T) {
	first, err := firstLine(t, nobodyElse, "ratios --repeats=5 --slice=100us")
	require.ErrorIs(t, err, errUnable)
	assert.Equal(t, "This machine could not answer: an interval takes 6 repeats, and it has 5.", first)
}

func TestHalfOfTheTurnsMayBeDisturbed(t *testing.T) {
	q := quiet{watch: nobodyElse}
	require.ErrorIs(t, q.tell(io.Discard, 0), errUnable, "nothing was measured")
	q.turn(func() {})
	q.count(always(), 0)
	require.NoError(t, q.tell(io.Discard, 0))
	q.count(always(), 0)
	require.ErrorIs(t, q.tell(io.Discard, 0), errUnable)
}

// What the program itself uses is not another's.
func TestATurnTellsItsWatchWhatTheProgramUsed(t *testing.T) {
	used, known := host.ProcessorTime()
	var told time.Duration
	q := quiet{watch: func() host.Disturbed {
		return func(ours time.Duration) bool {
			told = ours
			return false
		}
	}}
	q.turn(func() {
		for until := used + 20*time.Millisecond; known && used < until; used, _ = host.ProcessorTime() {
		}
	})
	if known {
		assert.GreaterOrEqual(t, told, 10*time.Millisecond)
	} else {
		assert.Negative(t, told)
	}
}
