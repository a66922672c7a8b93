package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/host"
	"godat/bench/lane"
	"godat/bench/mode"
	"godat/bench/report"
	"godat/evd"
	"godat/internal/owner"
)

// The pool library runs two goroutines of its own from the start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") { // a child of a test's
		main()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// run runs a command line, and what it reruns in this process.
func run(args []string, out io.Writer) error { return runWith(run, host.WatchOthers, args, out) }

func TestAnotherProcessSaysHowItEnds(t *testing.T) {
	err := process([]string{"nosuch"}, io.Discard)
	require.ErrorContains(t, err, "unexpected argument nosuch")
	require.ErrorIs(t, err, errUsage)
	var out bytes.Buffer
	require.ErrorIs(t, process([]string{"connect", "--repeats=1", "--duration=2ms"}, &out), errUnable)
	assert.Contains(t, out.String(), "This machine could not answer")
}

// ran is the report of a command line. One repeat is too few to answer from.
func ran(t *testing.T, args ...string) (r report.Report) {
	t.Helper()
	var out bytes.Buffer
	args = append([]string{"--repeats=1"}, args...)
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--duration=") }) {
		args = append(args, "--duration=2ms")
	}
	require.ErrorIs(t, run(args, &out), errUnable)
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	for _, row := range r.Rows {
		assert.NotEqual(t, row.Refused == "", row.Kept == 0, "a row has figures, or a reason why not: %s %s", row.Name, row.Rate)
	}
	return r
}

func TestEachCommandHasARowForEveryWayAndLoad(t *testing.T) {
	ways := len(mode.All())
	commands := map[string]int{
		"--rate=closed,20k,max":   3 * (ways + len(lane.Anchors())),
		"delivery --size=64,4096": 10 * (ways + len(lane.Anchors())),
		"latency":                 ways + len(lane.RoundTrips()),
		"bandwidth --rate=max":    3 * (ways + len(lane.Copies())),
		"--producers=1,2 --depth=4,16 --rate=max --no-anchors": 4 * ways,
		"scale --conns=1,20 --duration=20ms":                   2 * ways,
		"connect":                                              2,
		"connect --provider=iwarp":                             2,
		"--mode=poll --no-anchors":                             5,
		"latency --provider=iwarp":                             ways + len(lane.RoundTrips()),
		"bandwidth --provider=iwarp":                           3 * (ways + len(lane.Copies())),
	}
	if testing.Short() || owner.Enabled { // the race detector makes everything slower
		commands = map[string]int{"--mode=poll --no-anchors": 5, "latency": ways + len(lane.RoundTrips()), "connect": 2}
	}
	for args, rows := range commands {
		t.Run(args, func(t *testing.T) {
			assert.Equal(t, rows, len(ran(t, append(strings.Fields(args), "--format=json")...).Rows))
		})
	}
}

func TestDialMeasuresRoundTripsToServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, lane.Config{Provider: "iwarp:127.0.0.1"}, 0, out) }()
	said, err := bufio.NewReader(in).ReadString('\n')
	require.NoError(t, err)
	port := said[strings.LastIndexByte(said, ':')+1 : len(said)-1]
	r := ran(t, "dial", "127.0.0.1:"+port, "--mode=channel,wait", "--format=json")
	assert.Len(t, r.Rows, 2)
	stop()
	assert.NoError(t, <-ended)
}

func TestLoopReachesNoOtherProcess(t *testing.T) {
	serve := serveCommand{adapterFlags: adapterFlags{Provider: "loop"}}
	assert.ErrorContains(t, serve.Run(io.Discard), "no other process")
	dial := dialCommand{Addr: "127.0.0.1:1"}
	dial.Provider = "loop"
	assert.ErrorContains(t, dial.Run(&command{}, io.Discard), "no other process")
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	for args, why := range map[string]string{
		"--size=0": "from 1 to", "--size=-1": "from 1 to", "--depth=-1": "from 1 to", "--depth=100000": "from 1 to",
		"scale --conns=0": "from 1 to", "--producers=0": "from 1 to", "--producers=2 --rate=max --size=1000000000": "memory of its own", "connect --depth=0": "from 1 to",
		"--mode=telepathy": "no mode", "--rate=fast": "no rate", "--format=xml": "format", "--provider=nothing": "nothing", "--provider=iwarp --param=color=red": "color",
		"--provider=ibv:absent0": "ibv", "--repeats=-1": "negative", "--duration=-1s connect": "negative",
		"idle --connections=0": "from 1 to", "idle --connections=20000": "from 1 to", "idle --ia=nothing": "nothing",
	} {
		assert.ErrorContains(t, run(strings.Fields(args), io.Discard), why, args)
	}
}

func TestAnErrorHasAnExitStatusThatScriptsCanTell(t *testing.T) {
	assert.Equal(t, 4, status(fmt.Errorf("%w: no", errUnable)))
	assert.Equal(t, 1, status(errors.New("no")))
	assert.Equal(t, 4, status(errors.Join(errors.New("no"), errUnable)))
}

func TestARunThatCannotAnswerSaysSoFirstAndIsAnError(t *testing.T) {
	log := filepath.Join(t.TempDir(), "run.hlog")
	var out bytes.Buffer
	require.ErrorIs(t, run([]string{"--repeats=1", "--duration=2ms", "--mode=poll,channel", "--rate=closed", "--histograms=" + log}, &out), errUnable)
	assert.True(t, strings.HasPrefix(out.String(), "This machine could not answer: "), out.String())
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(text), "Tag=delivery/channel/closed/64B/1")
}

func TestIdleConnectionsToAnotherProcessAreCounted(t *testing.T) {
	for _, line := range []string{"idle --connections=10 --for=1ms", "idle --streams --connections=10 --for=1ms"} {
		var out bytes.Buffer
		if err := run(strings.Fields(line), &out); err != nil {
			require.ErrorIs(t, err, errUnable)
		}
		for _, end := range []string{"connecting", "accepting"} {
			assert.Regexp(t, end+` +\| +10 \|`, out.String(), line)
		}
	}
}

func TestIdleConnectionsAreSaidFirstToBeDisturbedOrNot(t *testing.T) {
	for others, want := range map[bool]string{false: "This machine could answer: ", true: "This machine could not answer: other programs "} {
		var out bytes.Buffer
		watch := func() host.Disturbed { return func(time.Duration) bool { return others } }
		err := runWith(run, watch, strings.Fields("idle --streams --ia=loop --connections=2 --for=1ms"), &out)
		assert.Equal(t, others, errors.Is(err, errUnable), "%v", err)
		assert.True(t, strings.HasPrefix(out.String(), want), out.String())
		assert.Contains(t, out.String(), "both ends")
	}
}

func benchmark(b *testing.B, cfg evd.Config, shared bool, make func(*rig) workload) {
	r := newRig(cfg, shared)
	defer r.close()
	run := make(r)
	run(64)
	b.ReportAllocs()
	b.ResetTimer()
	run(b.N)
}

func BenchmarkDelivery(b *testing.B) {
	for _, m := range []struct {
		name string
		cfg  evd.Config
		load func(*rig) workload
	}{
		{"poll", evd.Config{}, pairPoll},
		{"poll16", evd.Config{}, pairBatch},
		{"wait", evd.Config{}, pairWait},
		{"chan", evd.Config{Mode: evd.ModeChannel}, pairChannel},
		{"batch", evd.Config{Mode: evd.ModeBatch, BatchMin: 32, BatchMax: 32}, pairBatches},
		{"oneshot", evd.Config{Mode: evd.ModeChannel}, pairOneShot},
	} {
		b.Run(fmt.Sprintf("mode=%s/size=%d", m.name, messageSize), func(b *testing.B) {
			benchmark(b, m.cfg, true, m.load)
		})
	}
	b.Run(fmt.Sprintf("mode=conn/size=%d", messageSize), func(b *testing.B) {
		r := newConnRig()
		defer r.close()
		run := pairConn(r)
		run(64)
		b.ReportAllocs()
		b.ResetTimer()
		run(b.N)
		b.StopTimer()
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	b.Run("mode=poll/size=64", func(b *testing.B) {
		benchmark(b, evd.Config{}, false, tripPoll)
	})
	b.Run("mode=chan/size=64", func(b *testing.B) {
		benchmark(b, evd.Config{Mode: evd.ModeChannel}, false, tripChannel)
	})
}
