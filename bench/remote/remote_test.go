package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/lane"
	"godat/bench/load"
)

// A child of a test's serves lanes, or says what its second word is, until its input ends. If that is empty, it ends.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		if err := Serve(os.Stdin, os.Stdout, func() { os.Exit(1) }, []Lane{channel, pipe, broken}); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) == 3 && os.Args[1] == "say":
		if fmt.Print(os.Args[2]); os.Args[2] != "" {
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

var (
	channel = Lane{Name: "channel", Does: "copies", Open: func(_, depth int) (lane.Lane, error) { return lane.NewChannel(depth), nil }}
	pipe    = Lane{Name: "pipe", RoundTrip: true, Open: func(size, depth int) (lane.Lane, error) {
		return lane.NewPipe(lane.Config{Size: size, Depth: depth}), nil
	}}
	broken = Lane{Name: "broken", Open: func(int, int) (lane.Lane, error) { return nil, errors.New("no") }}
)

// serving is a process that has the three lanes.
func serving(t *testing.T) *Process {
	t.Helper()
	p, err := Start(t.Context(), os.Args[0], "serve")
	require.NoError(t, err)
	return p
}

func TestALaneOfAnotherProcessIsMeasuredAsOneOfThisProcess(t *testing.T) {
	p := serving(t)
	assert.Equal(t, []Lane{{Name: "channel", Does: "copies"}, {Name: "pipe", RoundTrip: true}, {Name: "broken"}}, p.Lanes())
	for _, ld := range []load.Load{{Rate: load.Closed, Depth: 2, Duration: time.Millisecond}, {Rate: load.Max, Depth: 8, Duration: time.Millisecond}} {
		r := p.Runner(0, 64, ld.Depth)
		require.NoError(t, r.Refuse(ld))
		for range 2 {
			res, err := r.Run(ld)
			require.NoError(t, err)
			assert.Positive(t, res.Count)
			assert.Equal(t, res.Count, res.Latency.TotalCount(), "each message is in the histogram that came over")
			assert.GreaterOrEqual(t, res.Took, time.Millisecond)
		}
	}
	require.NoError(t, p.Close())
}

func TestALoadThatTheLaneRefusesIsRefused(t *testing.T) {
	p := serving(t)
	ld := load.Load{Rate: load.Closed, Depth: 1}
	r := p.Runner(1, 64, 1)
	assert.EqualError(t, r.Refuse(ld), load.ErrPostWaits.Error())
	_, err := r.Run(ld)
	assert.Equal(t, load.Refusal(load.ErrPostWaits.Error()), err)
	require.NoError(t, p.Close())
}

func TestALaneThatCannotBeOpenedIsRefusedAndTheOthersGoOn(t *testing.T) {
	p := serving(t)
	ld := load.Load{Rate: load.Closed, Depth: 1, Duration: time.Millisecond}
	assert.ErrorContains(t, p.Runner(2, 64, 1).Refuse(ld), "no")
	assert.ErrorContains(t, p.Runner(7, 64, 1).Refuse(ld), "there are 3 lanes")
	_, err := p.Runner(0, 64, 1).Run(ld)
	require.NoError(t, err)
	require.NoError(t, p.Close())
}

func TestAProcessThatIsKilledRefusesItsRows(t *testing.T) {
	p := serving(t)
	p.end.Kill()
	<-p.end.Done
	for range 2 {
		_, err := p.Runner(0, 64, 1).Run(load.Load{Duration: time.Millisecond})
		var refusal load.Refusal
		require.ErrorAs(t, err, &refusal)
		require.ErrorContains(t, err, "has ended")
	}
	require.Error(t, p.Close())
}

func TestAProcessWithoutAListOfLanesIsAnError(t *testing.T) {
	for _, says := range []string{"", "hello\n", `{"Error":"no"}`} {
		_, err := Start(context.Background(), os.Args[0], "say", says)
		assert.ErrorContains(t, err, "no list of lanes", says)
	}
}

func TestATurnWithoutAHistogramIsRefused(t *testing.T) {
	p, err := Start(t.Context(), os.Args[0], "say", "{}{}")
	require.NoError(t, err)
	_, err = p.Runner(0, 64, 1).Run(load.Load{})
	var refusal load.Refusal
	assert.ErrorAs(t, err, &refusal)
	p.end.Kill()
	<-p.end.Done
}
