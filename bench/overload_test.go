package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

func TestOverloadCountsEachCallOnceAndPrintsACurve(t *testing.T) {
	var out bytes.Buffer
	line := []string{"overload", "--ia=loop", "--repeats=2", "--duration=400ms", "--load=0.1,0.5", "--format=json"}
	require.NoError(t, runWith(run, nobodyElse, line, &out))
	var r overloadReport
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	assert.Equal(t, "go run ./bench "+strings.Join(line, " "), r.Command)
	assert.Equal(t, 1, r.Processes)
	assert.InDelta(t, 400, r.Capacity, 0)
	require.Len(t, r.Rows, 2)
	for i, asked := range []float64{40, 200} {
		assert.InDelta(t, asked, r.Rows[i].Asked, 3)
		assert.Positive(t, r.Rows[i].InTime)
		assert.GreaterOrEqual(t, r.Rows[i].Median, 10*time.Millisecond)
	}
	assert.InDelta(t, 1, r.Rows[1].OfMost, 0)

	out.Reset()
	require.ErrorIs(t, runWith(run, always, line, &out), errUnable)
	r = overloadReport{}
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	assert.Contains(t, r.Answers, "other programs")
}

func TestEachLoadIsComparedWithTheMostThatWasAnsweredInTime(t *testing.T) {
	r := &overloadReport{Rows: []overloadRow{{InTime: 200}, {InTime: 400}, {InTime: 300}}}
	r.compare()
	assert.Equal(t, []float64{0.5, 1, 0.75}, []float64{r.Rows[0].OfMost, r.Rows[1].OfMost, r.Rows[2].OfMost})
	nothing := &overloadReport{Rows: []overloadRow{{}}}
	nothing.compare()
	assert.Zero(t, nothing.Rows[0].OfMost)
}

func TestARowHasTheMediansOfItsTurns(t *testing.T) {
	turn := func(n int) overloadTurn {
		var took []time.Duration
		for i := range n {
			took = append(took, time.Duration(n-i)*time.Millisecond)
		}
		return overloadTurn{
			lasted: 2 * time.Second, window: time.Second, asked: int64(4 * n), begun: int64(n + 2), inTime: took,
			refused: slices.Clone(took[:n/2]), late: 2, counted: int64(n),
		}
	}
	row := newOverloadRow(2, []overloadTurn{turn(100), turn(300), turn(200)})
	assert.Equal(t, overloadRow{
		Load: 2, Asked: 400, InTime: 200, Refused: 50, Late: 1, InVain: 1,
		Median: 101 * time.Millisecond, P99: 198 * time.Millisecond, Refusal: 151 * time.Millisecond,
	}, row)
}

// The process of the server ends with its input.
func TestTheServerOfAnotherProcessSaysWhereItListens(t *testing.T) {
	o := overloadCommand{IA: "iwarp:127.0.0.1", Workers: 1, Handler: time.Millisecond}
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- o.serve(in, out) }()
	address, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	ia, err := dat.Open(t.Context(), o.IA)
	require.NoError(t, err)
	c, err := rpc.Dial(t.Context(), ia, strings.TrimSpace(address), rpc.Config{})
	require.NoError(t, err)
	callers := overloadCallers{[]*rpc.Client{c}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for want := range int64(3) {
		n, err := callers.begun()
		require.NoError(t, err)
		assert.Equal(t, want, n)
		_, err = c.Call(ctx, rpc.Call{Method: overloadWork}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(callers.close(), ia.Close(), stdin.Close()))
	require.NoError(t, <-served)
}
