package remote

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/lane"
	"godat/bench/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// served is a Process whose other side is a goroutine.
func served(t *testing.T, lanes ...Lane) *Process {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Serve(in, out, lanes)
		ended <- errors.Join(err, in.Close(), out.Close())
	}()
	p, err := attach(toServer, fromServer, func() error { return <-ended }, func() { _ = fromServer.Close() })
	require.NoError(t, err)
	return p
}

var (
	channel = Lane{Name: "channel", Does: "copies", Open: func(_, depth int) (lane.Lane, error) { return lane.NewChannel(depth), nil }}
	pipe    = Lane{Name: "pipe", RoundTrip: true, Open: func(size, depth int) (lane.Lane, error) {
		return lane.NewPipe(lane.Config{Size: size, Depth: depth}), nil
	}}
	broken = Lane{Name: "broken", Open: func(int, int) (lane.Lane, error) { return nil, errors.New("no") }}
)

func TestALaneOfAnotherProcessIsMeasuredAsOneOfThisProcess(t *testing.T) {
	p := served(t, channel, pipe)
	assert.Equal(t, []Lane{{Name: "channel", Does: "copies"}, {Name: "pipe", RoundTrip: true}}, p.Lanes())
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
	p := served(t, pipe)
	ld := load.Load{Rate: load.Closed, Depth: 1}
	r := p.Runner(0, 64, 1)
	assert.EqualError(t, r.Refuse(ld), load.ErrPostWaits.Error())
	_, err := r.Run(ld)
	assert.Equal(t, load.Refusal(load.ErrPostWaits.Error()), err)
	require.NoError(t, p.Close())
}

func TestALaneThatCannotBeOpenedIsRefusedAndTheOthersGoOn(t *testing.T) {
	p := served(t, broken, channel)
	ld := load.Load{Rate: load.Closed, Depth: 1, Duration: time.Millisecond}
	assert.ErrorContains(t, p.Runner(0, 64, 1).Refuse(ld), "no")
	assert.ErrorContains(t, p.Runner(7, 64, 1).Refuse(ld), "there are 2 lanes")
	_, err := p.Runner(1, 64, 1).Run(ld)
	require.NoError(t, err)
	require.NoError(t, p.Close())
}

func TestAProcessThatHasStoppedIsKilled(t *testing.T) {
	out, said := io.Pipe()
	killed := make(chan struct{})
	go func() { _, _ = io.WriteString(said, "[]\n") }()
	p, err := attach(input{io.Discard}, out, func() error { <-killed; return nil }, sync.OnceFunc(func() {
		_ = said.Close()
		close(killed)
	}))
	require.NoError(t, err)
	p.stall = time.Millisecond
	_, err = p.Runner(0, 64, 1).Run(load.Load{Duration: time.Millisecond})
	require.ErrorContains(t, err, "has not answered for 2ms, and was killed")
	_, err = p.Runner(0, 64, 1).Run(load.Load{Duration: time.Hour})
	require.ErrorContains(t, err, "was killed", "the rows behind it learn the same at once")
	require.NoError(t, p.Close())
}

// input is an input that can be closed.
type input struct{ io.Writer }

func (input) Close() error { return nil }

func TestAProcessThatEndsRefusesItsRows(t *testing.T) {
	for said, want := range map[string]string{
		"":                        "no list of lanes",
		"hello\n":                 "no list of lanes",
		"[]\n":                    "its process has ended",
		"[]\nhello\n":             "its process has ended",
		"[]\n{}\n":                "without a histogram",
		"[]\n" + `{"error":"no"}`: "no",
	} {
		p, err := attach(input{io.Discard}, strings.NewReader(said), func() error { return nil }, func() {})
		if err == nil {
			_, err = p.Runner(0, 64, 1).Run(load.Load{})
			var refusal load.Refusal
			assert.ErrorAs(t, err, &refusal, said)
		}
		assert.ErrorContains(t, err, want, said)
	}
}
