package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePageIsAsItWasWritten(t *testing.T) {
	page, err := os.ReadFile("../RESULTS.md")
	require.NoError(t, err)
	at := bytes.LastIndex(page, []byte("\n<!-- "))
	require.Positive(t, at)
	require.Equal(t, summed(page[:at]), string(page[at:]), "RESULTS.md was changed by hand: write it anew, as the command's doc says")
}

func TestProgramsShareTheTimeThatNotAllSeedsHave(t *testing.T) {
	c, costs := campaign{seeds: 50}, []time.Duration{time.Second, 10 * time.Second, 20 * time.Second}
	rows := []*row{{}, {}, {}}
	play := func() (r *row) {
		if r = c.next(rows); r != nil {
			r.seeds++
			for i := range rows {
				if rows[i] == r {
					r.had += costs[i]
				}
			}
		}
		return r
	}
	for rows[0].seeds < 40 {
		require.NotNil(t, play())
	}
	for i, r := range rows {
		assert.InDelta(t, 40, r.had.Seconds(), costs[i].Seconds(), "a program has had its time, but for a seed")
	}
	for play() != nil {
	}
	assert.Equal(t, []int{50, 50, 50}, []int{rows[0].seeds, rows[1].seeds, rows[2].seeds})
}
