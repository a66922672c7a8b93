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

	"godat/bench/lane"
	"godat/bench/mode"
	"godat/bench/report"
	"godat/bench/stats"
	dat "godat/runtime"
)

// The pool library runs two goroutines of its own from the start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == tied { // a child of a test's
		main()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

func TestAChildEndsWithTheProgramThatStartedIt(t *testing.T) {
	cmd, stdin, err := child([]string{"serve", "--provider=iwarp:127.0.0.1", "--port=0"})
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	guard := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, "serving on port")
	require.NoError(t, stdin.Close())
	_ = cmd.Wait()
	assert.True(t, guard.Stop(), "it lives")
	assert.Equal(t, 1, cmd.ProcessState.ExitCode())
}

func TestAChildSaysHowItEnds(t *testing.T) {
	err := process([]string{"nosuch"}, io.Discard)
	require.ErrorIs(t, err, errUsage)
	assert.EqualError(t, err, "unexpected argument nosuch; --help lists the commands and their flags")
	assert.NoError(t, process([]string{"--help"}, io.Discard))
}

// quick is a contest that shows that everything runs.
func quick(procs int) contest {
	return contest{repeats: 1, slice: time.Millisecond, procs: procs, connections: 50, messages: 200}
}

func TestEveryTableHasItsRowsAndNoHoles(t *testing.T) {
	var out bytes.Buffer
	delivery(&out, quick(2))
	streams(&out, quick(2))
	for _, want := range []string{"pair, poll", "pair, Conn", "round trip, channel", "net.Pipe", "stream over loop"} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "NaN")
}

// The bounds are the project's promise: whoever changes one changes this table, too.
func TestTheTargetsHaveTheirBounds(t *testing.T) {
	promised := [2]map[string][]string{
		{
			"T1": {"≤ 1529", "≤ 880", "≤ 2181", "≤ 2212"}, "T3": {"≤ 2.00", "≥ 10.00"}, "T4": {"≤ 1.15", "≤ 1.60"}, "T7": {"≤ 0.00"}, "T8": {""},
			"T10": {"≥ 0.88", "≥ 0.95"}, "T12": {"≥ 1.00", "≥ 0.50"}, "T13": {"≤ 1.20", "≤ 3.00"}, "T15": {"≤ 1.50", "≤ 10.00", "≤ 2.00"},
			"T16": {"≤ 7.00", "≤ 16.00"}, "T17": {"≤ 2.00", "≤ 5.00", "≤ 0.00"}, "T18": {"≤ 50.00", "≥ 0.95"},
		},
		{
			"T4": {"≤ 1.80"}, "T9": {"≥ 30.00", "≤ 10.00"}, "T10": {"≥ 0.88", "≥ 0.95"}, "T12": {"≥ 1.20", ""}, "T13": {"≤ 1.25", "≤ 3.00"},
			"T15": {"≤ 1.50", "≤ 10.00", "≤ 2.00"},
		},
	}
	for i, want := range promised {
		if testing.Short() && i == 1 {
			continue // what two processors have besides is the pinned poller, by go test
		}
		measured := measureTargets(quick(i+1), known()...)
		bounds := map[string][]string{}
		for _, got := range measured {
			o := outcome{target: got}
			if aim := o.aim(); !slices.Contains(bounds[got.id], aim) {
				bounds[got.id] = append(bounds[got.id], aim)
			}
		}
		assert.Equal(t, want, bounds)
		var out bytes.Buffer
		var list outcomes
		list.add(measured)
		list.print(&out, i+1)
		assert.Equal(t, len(measured), strings.Count(out.String(), "\n| T"), "a row each")
		assert.NotContains(t, out.String(), "NaN")
	}
}

func TestOnlyTheTargetsThatAreNamedAreMeasured(t *testing.T) {
	var ids []string
	for _, got := range measureTargets(quick(1), "T4", "T8") {
		ids = append(ids, got.id)
	}
	slices.Sort(ids)
	assert.Equal(t, []string{"T4", "T8"}, slices.Compact(ids))
}

// ran is the report of a command line. One repeat is too few to answer from.
func ran(t *testing.T, args ...string) (r report.Report) {
	t.Helper()
	var out bytes.Buffer
	require.ErrorIs(t, run(append([]string{"--repeats=1", "--duration=2ms"}, args...), &out), errUnable)
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
	if testing.Short() {
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

func TestEachCommandOfRatiosRuns(t *testing.T) {
	for _, line := range []string{"ratios"} { // TestEveryTableHasItsRowsAndNoHoles runs what is behind the others
		var out bytes.Buffer
		require.ErrorIs(t, run(append(strings.Fields(line), "--repeats=1", "--slice=1ms"), &out), errUnable)
		assert.Contains(t, out.String(), "1 repeats")
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	for args, why := range map[string]string{
		"--size=0": "from 1 to", "--size=-1": "from 1 to", "--depth=-1": "from 1 to", "--depth=100000": "from 1 to",
		"scale --conns=0": "from 1 to", "--producers=0": "from 1 to", "--producers=2 --rate=max --size=1000000000": "memory of its own", "connect --depth=0": "from 1 to",
		"--mode=telepathy": "no mode", "--rate=fast": "no rate", "--format=xml": "format", "--provider=nothing": "nothing", "--provider=iwarp --param=color=red": "color",
		"--provider=ibv:absent0": "ibv", "--repeats=-1": "negative", "--duration=-1s ratios": "negative",
		"idle --connections=0": "from 1 to", "idle --connections=20000": "from 1 to", "idle --ia=nothing --peer": "nothing",
	} {
		assert.ErrorContains(t, run(strings.Fields(args), io.Discard), why, args)
	}
}

func TestPairsOfRunsAreCompared(t *testing.T) {
	p50 := 100.0
	runs := 0
	c := command{again: func(args []string, out io.Writer) error {
		assert.Equal(t, []string{"--repeats=7", "latency", "--depth=2", "--format=json"}, args)
		runs++
		row := func(name string, ns float64) report.Row {
			at := stats.Estimate{Median: ns, Low: 0.99 * ns, High: 1.01 * ns, Repeats: 7}
			return report.Row{Name: name, Latency: []report.Percentile{{Percent: 50, NS: ns, Repeats: at}}, PerSecond: at}
		}
		p50 += 10
		rows := []report.Row{row("steady", 100), row("rising", p50), {Name: "refused", Refused: "no"}}
		return json.NewEncoder(out).Encode(report.Report{Rows: rows})
	}}
	c.Repeats = 7
	var out bytes.Buffer
	require.NoError(t, agree(&c, &out, 3, []string{"latency", "--depth=2"}))
	assert.Equal(t, 6, runs)
	assert.Regexp(t, `steady .* 3 of 3 .* 3 of 3 .* –`, out.String())
	assert.Regexp(t, `rising .* 0 of 3 .* 0 of 3 .* –`, out.String())
	assert.Regexp(t, `refused .* – .* – .* –`, out.String())
	assert.Contains(t, out.String(), "Of 4 figures, 2 agreed within their intervals in all pairs")
	assert.Contains(t, out.String(), "in 6 of 12 comparisons (50.0 %)")
}

func TestATargetThatAnyRunMissesIsAnError(t *testing.T) {
	sure := func(values ...float64) (list []stats.Estimate) {
		for _, v := range values {
			list = append(list, exactly(v))
		}
		return list
	}
	const could, couldNot = "This machine could answer: ", "This machine could not answer: "
	for name, c := range map[string]struct {
		got   []stats.Estimate
		first string
		says  string
		err   error
	}{
		"met in each run":             {sure(1, 2, 1.5), could + "1 of 1 targets are met.", "met in all 3", nil},
		"missed in one":               {sure(1, 2.5, 1.5), could + "0 of 1 targets are met.", "MISSED in 1 of 3", errMissed},
		"met in the only":             {sure(2), could + "1 of 1 targets are met.", "met", nil},
		"missed in the only":          {sure(3), could + "0 of 1 targets are met.", "MISSED", errMissed},
		"met by too few repeats":      {[]stats.Estimate{stats.Of([]float64{1, 1, 1, 1, 1})}, couldNot + "1 of 1 targets have too few undisturbed repeats.", "not told: too few undisturbed repeats", errUnable},
		"met once by too few repeats": {append(sure(1), stats.Of([]float64{1})), couldNot + "1 of 1 targets have too few undisturbed repeats.", "not told: too few undisturbed repeats", errUnable},
		"missed by enough repeats":    {[]stats.Estimate{stats.Of([]float64{3, 3, 3, 3, 3, 4})}, could + "0 of 1 targets are met.", "MISSED", errMissed},
	} {
		t.Run(name, func(t *testing.T) {
			run := 0
			measure := func(x contest) []target {
				if x.procs > 1 {
					return nil
				}
				run++
				return []target{{"T0", "it / the other", c.got[run-1], false, 2}}
			}
			var out bytes.Buffer
			require.ErrorIs(t, judge(&command{}, &out, len(c.got), measure), c.err)
			assert.Equal(t, c.first, strings.Split(out.String(), "\n")[0])
			assert.Contains(t, out.String(), " "+c.says+" ")
			if name == "missed in one" {
				assert.Contains(t, out.String(), "1.00 – 2.50")
			}
		})
	}
}

func TestNoTargetThatIsMeasuredIsNoTargetThatIsMet(t *testing.T) {
	nothing := func(contest) []target { return nil }
	require.ErrorIs(t, judge(&command{}, io.Discard, 1, nothing), errUnable)
	require.ErrorContains(t, judge(&command{Repeats: -1}, io.Discard, 1, nothing), "-1 repeats")
	require.ErrorContains(t, judge(&command{}, io.Discard, 0, nothing), "0 runs")
}

func TestAnErrorHasAnExitStatusThatScriptsCanTell(t *testing.T) {
	assert.Equal(t, 4, status(fmt.Errorf("%w: no", errUnable)))
	assert.Equal(t, 1, status(errors.New("no")))
	assert.Equal(t, 4, status(errors.Join(errors.New("no"), errUnable)))
}

// A saved run says again whether the machine could answer, and has its histograms.
func TestARunThatCannotAnswerSaysSoFirstAndIsAnError(t *testing.T) {
	saved, log, page := filepath.Join(t.TempDir(), "run.json"), filepath.Join(t.TempDir(), "run.hlog"), filepath.Join(t.TempDir(), "run.html")
	var out bytes.Buffer
	require.ErrorIs(t, run([]string{"--repeats=1", "--duration=2ms", "--mode=poll,channel", "--rate=closed", "--format=json", "--histograms=" + log, "--html=" + page}, &out), errUnable)
	require.NoError(t, os.WriteFile(saved, out.Bytes(), 0o600))
	out.Reset()
	require.ErrorIs(t, run([]string{"show", saved}, &out), errUnable)
	assert.True(t, strings.HasPrefix(out.String(), "This machine could not answer: "), out.String())
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(text), "Tag=delivery/channel/closed/64B/1")
	text, err = os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), "This machine could not answer: ")
}

func TestTheFiguresOfThePinnedPollerAreRead(t *testing.T) {
	const output = "goos: linux\nBenchmarkPinned/path=naive-2 \t2000\t 200000 ns/op\t 30000 p50-ns\t 90000 p99-ns\n" +
		"BenchmarkPinned/path=pinned \t2000\t 200000 ns/op\t 500.5 p50-ns\t 900 p99-ns\nBenchmarkPinned/path=pinned \t2000\t 1 ns/op\t 600 p50-ns\t 900 p99-ns\nPASS\n"
	assert.Equal(t, map[string][]float64{"naive": {30000}, "pinned": {500.5, 600}}, pinnedFigures(output, "p50-ns"))
	assert.InDelta(t, 30000/500.5, ratios([]float64{30000}, []float64{500.5, 600}).Median, 1e-9)
}

func TestIdleConnectionsAreCounted(t *testing.T) {
	const n = 10
	port := make(chan uint64, 1)
	server, client := newCrowd("iwarp:127.0.0.1", n), newCrowd("iwarp:127.0.0.1", n)
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.serve(n, func(p uint64) { port <- p })
	}()
	client.visit("127.0.0.1", <-port, n)
	<-served
	i := client.rest(time.Millisecond)
	assert.Equal(t, n, i.Connections)
	assert.Positive(t, i.Added.Goroutines)
	assert.Len(t, i.row("client"), 8)
	check(client.ia.Close())
	check(server.ia.Close())
}

func TestARepeatWithADisturbedAnchorIsDropped(t *testing.T) {
	r := result{perOp: map[string][]time.Duration{
		"anchor": {10, 10, 100},
		"other":  {20, 22, 20},
	}}
	assert.InDelta(t, 2.1, r.ratio("other", "anchor").Median, 1e-9)
	assert.InDelta(t, (1/2.0+1/2.2)/2, r.speed("other", "anchor").Median, 1e-9)
	assert.Equal(t, 2, r.speed("other", "anchor").Repeats)
}

func benchmark(b *testing.B, cfg dat.DispatcherConfig, shared bool, workload func(*rig) contestant) {
	r := newRig(cfg, shared)
	defer r.close()
	c := workload(r)
	c.run(64)
	b.ReportAllocs()
	b.ResetTimer()
	c.run(b.N)
}

func BenchmarkDelivery(b *testing.B) {
	for _, m := range []struct {
		name string
		cfg  dat.DispatcherConfig
		load func(*rig) contestant
	}{
		{"poll", dat.DispatcherConfig{}, pairPoll},
		{"poll16", dat.DispatcherConfig{}, pairBatch},
		{"wait", dat.DispatcherConfig{}, pairWait},
		{"chan", dat.DispatcherConfig{Mode: dat.ModeChannel}, pairChannel},
		{"batch", dat.DispatcherConfig{Mode: dat.ModeBatch, BatchMin: 32, BatchMax: 32}, pairBatches},
		{"oneshot", dat.DispatcherConfig{Mode: dat.ModeChannel}, pairOneShot},
	} {
		b.Run(fmt.Sprintf("mode=%s/size=%d", m.name, messageSize), func(b *testing.B) {
			benchmark(b, m.cfg, true, m.load)
		})
	}
	b.Run(fmt.Sprintf("mode=conn/size=%d", messageSize), func(b *testing.B) {
		r := newConnRig()
		defer r.close()
		c := pairConn(r)
		c.run(64)
		b.ReportAllocs()
		b.ResetTimer()
		c.run(b.N)
		b.StopTimer()
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	b.Run("mode=poll/size=64", func(b *testing.B) {
		benchmark(b, dat.DispatcherConfig{}, false, tripPoll)
	})
	b.Run("mode=chan/size=64", func(b *testing.B) {
		benchmark(b, dat.DispatcherConfig{Mode: dat.ModeChannel}, false, tripChannel)
	})
}

func BenchmarkBulk(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			benchmark(b, dat.DispatcherConfig{}, true, func(r *rig) contestant { return bulkWrites(r, size, 1) })
		})
	}
}
