package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/ep"
	"godat/evd"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/inspect/internal/process"
	"godat/runtime/internal/thresholds"
	"godat/runtime/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// world is an adapter with a listener that has two connections, over which messages go.
type world struct {
	t  *testing.T
	ia *dat.IA
	ln *dat.Listener
}

func newWorld(t *testing.T) *world {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ia.Close() })
	ln, err := ia.Listen(t.Context(), "loop:7000", dat.ConnConfig{Conns: 16})
	require.NoError(t, err)
	return &world{t, ia, ln}
}

// talk makes a pair of connections, over which n messages of 10 bytes go.
func (w *world) talk(n int) (client, server *dat.Conn) {
	w.t.Helper()
	client, err := w.ln.Dial(w.ln.Addr(), nil)
	require.NoError(w.t, err)
	server, err = w.ln.Accept(ep.RequestOf(<-w.ln.Requests()), nil)
	require.NoError(w.t, err)
	for up := 0; up < 2; {
		if (<-w.ln.Events()).Number == event.Established { // and no end of an earlier pair
			up++
		}
	}
	for range n {
		require.NoError(w.t, client.SendBytes(make([]byte, 10)))
		server.Release(server.Message(<-w.ln.Events()))
	}
	return client, server
}

// value is the value of a series, which is written as in the text format; -1 if there is none.
func value(t *testing.T, c *Collector, series string) float64 {
	t.Helper()
	registry := client.NewPedanticRegistry() // which looks at each metric
	registry.MustRegister(c)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			if f.GetName()+"{"+strings.Join(labels, ",")+"}" == series {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

func TestTheNamesArePrometheusOwn(t *testing.T) {
	w := newWorld(t)
	w.talk(1)
	s, err := rpc.Listen(t.Context(), w.ia, ":0", rpc.Config{})
	require.NoError(t, err)
	c, err := rpc.Dial(t.Context(), w.ia, s.Addr(), rpc.Config{})
	require.NoError(t, err)
	problems, err := testutil.CollectAndLint(New(w.ia))
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.EqualValues(t, 0, value(t, New(w.ia), fmt.Sprintf(`godat_rpc_client_calls{adapter="loop",server=%q}`, s.Addr())))
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
}

func TestCountersStayWhenWhatTheyCountHasGone(t *testing.T) {
	const received = `godat_moved_bytes_total{adapter="loop",operation="RECEIVE",queue="receives"}`
	w := newWorld(t)
	c := New(w.ia)
	client, server := w.talk(3)
	assert.EqualValues(t, 30, value(t, c, received))
	assert.EqualValues(t, 30, value(t, c, received), "a scrape counts nothing twice")
	assert.EqualValues(t, 2, value(t, c, `godat_endpoints{adapter="loop",owner="connection",state="CONNECTED"}`))
	require.NoError(t, client.Close())
	require.True(t, (<-w.ln.Events()).Ended())
	require.NoError(t, server.Close())
	assert.EqualValues(t, 30, value(t, c, received))
	w.talk(1)
	assert.EqualValues(t, 40, value(t, c, received))
	assert.EqualValues(t, 2, value(t, c, `godat_listener_requests_total{adapter="loop",answer="accepted",listener="Listener(loop:7000)"}`))
}

func TestWhatEndedBeforeTheFirstScrapeIsCounted(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		client, server := w.talk(2)
		require.NoError(t, client.Close())
		require.True(t, (<-w.ln.Events()).Ended())
		require.NoError(t, server.Close())
	}
	c := New(w.ia)
	assert.EqualValues(t, 60, value(t, c, `godat_moved_bytes_total{adapter="loop",operation="RECEIVE",queue="receives"}`))
	assert.EqualValues(t, 6, value(t, c, `godat_operations_total{adapter="loop",operation="SEND",queue="requests"}`))
}

func TestAListenersCountsStayWhenItHasClosed(t *testing.T) {
	w := newWorld(t)
	c := New(w.ia)
	const accepted = `godat_listener_requests_total{adapter="loop",answer="accepted",listener="Listener(loop:7000)"}`
	for round := range 3 {
		w.talk(0)
		w.talk(0)
		assert.EqualValues(t, 2*round+2, value(t, c, accepted))
		require.NoError(t, w.ln.Close())
		assert.EqualValues(t, 2*round+2, value(t, c, accepted), "closed")
		var err error
		w.ln, err = w.ia.Listen(t.Context(), "loop:7000", dat.ConnConfig{Conns: 16})
		require.NoError(t, err)
		assert.EqualValues(t, 2*round+2, value(t, c, accepted), "another one on its address")
	}
	few := testutil.CollectAndCount(c)
	for range 200 {
		ln, err := w.ia.Listen(t.Context(), "", dat.ConnConfig{Conns: 1})
		require.NoError(t, err)
		require.NoError(t, ln.Close())
	}
	assert.LessOrEqual(t, testutil.CollectAndCount(c), few+65*6, "listeners on ports that the device chose make a bounded number of series")
}

func TestTimesStayWhenWhatTookThemHasClosed(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop", dat.WithLatency())
	require.NoError(t, err)
	c, messages := New(ia), 0
	w := &world{t: t, ia: ia}
	for range 3 {
		w.ln, err = ia.Listen(t.Context(), "loop:7000", dat.ConnConfig{Conns: 16})
		require.NoError(t, err)
		w.talk(5)
		messages += 5
		assert.EqualValues(t, messages, value(t, c, `godat_request_duration_seconds{adapter="loop"}`))
		require.NoError(t, w.ln.Close())
		assert.EqualValues(t, messages, value(t, c, `godat_request_duration_seconds{adapter="loop"}`))
	}
	s, err := rpc.Listen(t.Context(), ia, ":0", rpc.Config{Methods: map[uint16]string{3: "sum"}})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(context.Background(), 1, func(*rpc.Request) ([]byte, error) { return nil, nil })
	}()
	for calls := range 3 {
		one, err := rpc.Dial(t.Context(), ia, s.Addr(), rpc.Config{})
		require.NoError(t, err)
		_, err = one.Call(t.Context(), rpc.Call{Method: 3}, nil)
		require.NoError(t, err)
		require.NoError(t, one.Close())
		assert.EqualValues(t, calls+1, value(t, c, fmt.Sprintf(`godat_rpc_call_duration_seconds{adapter="loop",end="client",method="3",server=%q}`, s.Addr())))
		assert.EqualValues(t, calls+1, value(t, c, fmt.Sprintf(`godat_rpc_call_duration_seconds{adapter="loop",end="server",method="sum",server=%q}`, s.Addr())))
	}
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	assert.Empty(t, problems)
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
	require.NoError(t, ia.Close())
}

func TestABucketHasAllTimesUpToItsEnd(t *testing.T) {
	h := evd.NewHistogram()
	for _, took := range []time.Duration{100, 1023, 1024, 5000, time.Millisecond, time.Minute, time.Hour} {
		h.Record(took)
	}
	to := make(chan client.Metric, 1)
	p := &scrape{to: to, label: "loop"}
	p.histogram(requestTimes, []*evd.HistogramSnapshot{nil, h.Snapshot()})
	var m dto.Metric
	require.NoError(t, (<-to).Write(&m))
	got := make(map[float64]uint64)
	for _, b := range m.GetHistogram().GetBucket() {
		got[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	assert.Len(t, got, 14)
	assert.EqualValues(t, 2, got[1024e-9])
	assert.EqualValues(t, 3, got[4096e-9])
	assert.EqualValues(t, 4, got[16384e-9])
	assert.EqualValues(t, 5, got[0.001048576])
	assert.EqualValues(t, 6, got[68.719476736])
	assert.EqualValues(t, 7, m.GetHistogram().GetSampleCount())
	p.histogram(requestTimes, []*evd.HistogramSnapshot{nil})
	assert.Empty(t, to, "nothing was measured")
}

func TestTheProcessIsNamed(t *testing.T) {
	w := newWorld(t)
	c, p := New(w.ia), process.Now()
	assert.EqualValues(t, 1, value(t, c, fmt.Sprintf(`godat_build_info{commit=%q,godat=%q,goversion=%q,module=%q,program=%q,version=%q}`, p.Commit, p.Library, p.Go, p.Module, p.Program, p.Version)))
	assert.EqualValues(t, p.GOMAXPROCS, value(t, c, "godat_process_gomaxprocs{}"))
}

func TestAdaptersOfOneNameHaveLabelsOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	other, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	c := New(other, w.ia, other)
	w.talk(1)
	const received = `godat_moved_bytes_total{adapter="loop#2",operation="RECEIVE",queue="receives"}`
	assert.EqualValues(t, 10, value(t, c, received))
	require.NoError(t, other.Close())
	assert.EqualValues(t, 0, value(t, c, `godat_up{adapter="loop"}`))
	assert.EqualValues(t, 1, value(t, c, `godat_up{adapter="loop#2"}`))
	assert.EqualValues(t, -1, value(t, c, `godat_up{adapter="loop#3"}`), "an adapter given twice is one")
}

func TestConnectionsMakeNoSeries(t *testing.T) {
	w := newWorld(t)
	c := New(w.ia)
	w.talk(1)
	few := testutil.CollectAndCount(c)
	for range 5 {
		w.talk(1)
	}
	assert.Equal(t, few, testutil.CollectAndCount(c))
}

// Ten thousand connections, and as many calls of methods that nobody knows, make the series of two.
func TestTheSeriesOfTenThousandConnectionsAreThoseOfTwo(t *testing.T) {
	connections := 10000
	if testing.Short() {
		connections = 1000
	}
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	s, err := rpc.Listen(t.Context(), ia, ":0", rpc.Config{Calls: 1, Message: 64, Conns: connections + 2})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(context.Background(), 1, func(r *rpc.Request) ([]byte, error) {
			if r.Method() != 1 {
				return nil, &rpc.Error{Code: rpc.CodeUnknown, Text: "no such method"}
			}
			return nil, nil
		})
	}()
	c := New(ia)
	var clients []*rpc.Client
	dial := func(methods ...uint16) {
		one, err := rpc.Dial(t.Context(), ia, s.Addr(), rpc.Config{Calls: 1, Message: 64, Methods: map[uint16]string{1: "1"}})
		require.NoError(t, err)
		for _, method := range methods {
			_, _ = one.Call(t.Context(), rpc.Call{Method: method}, nil)
		}
		clients = append(clients, one)
	}
	// Between states a connection has a series of that state, which goes.
	series := func() int {
		require.Eventually(t, func() bool {
			now, err := ia.Snapshot()
			return err == nil && len(now.Conns) == 2*len(clients) && !slices.ContainsFunc(now.Conns, func(c dat.ConnSnapshot) bool {
				return c.Endpoint.State != ep.Connected.String()
			})
		}, time.Minute, 10*time.Millisecond)
		return testutil.CollectAndCount(c)
	}
	dial(1, 2)
	dial()
	few := series()
	for i := range connections {
		dial(uint16(2 + i))
	}
	assert.Equal(t, few, series())
	assert.Less(t, few, 150)
	for _, one := range clients {
		require.NoError(t, one.Close())
	}
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
	require.NoError(t, ia.Close())
}

func TestAnAdapterThatIsClosedIsDown(t *testing.T) {
	w := newWorld(t)
	c := New(w.ia)
	assert.EqualValues(t, 1, value(t, c, `godat_up{adapter="loop"}`))
	require.NoError(t, w.ia.Close())
	assert.EqualValues(t, 0, value(t, c, `godat_up{adapter="loop"}`))
	assert.Equal(t, testutil.CollectAndCount(New())+1, testutil.CollectAndCount(c), "the process's, and whether the adapter is up")
}

// labels are those of the metrics that a text names, which are there.
func labels(t *testing.T, text string) map[string]bool {
	t.Helper()
	all := map[string]bool{"instance": true} // which Prometheus adds
	for _, name := range regexp.MustCompile(`godat_\w+`).FindAllString(text, -1) {
		found := ""
		name, isBucket := strings.CutSuffix(name, "_bucket")
		all["le"] = all["le"] || isBucket
		for _, d := range described {
			if strings.Contains(d.String(), `"`+name+`"`) {
				found = d.String()
			}
		}
		require.NotEmpty(t, found, name)
		_, list, _ := strings.Cut(strings.TrimRight(found, "}"), "variableLabels: {")
		for label := range strings.SplitSeq(list, ",") {
			all[label] = true
		}
	}
	return all
}

func TestTheRulesNameMetricsThatAreThere(t *testing.T) {
	rules, err := os.ReadFile("docs/alerts.yaml")
	require.NoError(t, err)
	all := strings.Split(string(rules), "- alert: ")
	require.Len(t, all, 25)
	for _, rule := range all[1:] {
		of := labels(t, rule)
		for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(rule, -1) {
			assert.True(t, of[label[1]], "%s in %s", label[1], rule)
		}
	}
}

// The rules' thresholds are the page's: no rule has a number of its own.
func TestARuleAlertsOfWhatThePageCallsATrouble(t *testing.T) {
	rules, err := os.ReadFile("docs/alerts.yaml")
	require.NoError(t, err)
	late := fmt.Sprint(thresholds.Late.Seconds())
	want := map[string][]string{
		"GodatConsumerStopped":  {late, late},
		"GodatPeerStopped":      {late, "0"},
		"GodatCallsUnanswered":  {late, "0"},
		"GodatCallersWait":      {late, late},
		"GodatEventsLost":       {"0", "0"},
		"GodatDeviceErrors":     {"0"},
		"GodatListenerFull":     {"0"},
		"GodatDescriptorsOut":   {"0"},
		"GodatPeersNotAccepted": {"0", "0"},
		"GodatBacklogFull":      {"0"},
		"GodatPeersRefused":     {"0"},
		"GodatConnectionsFail":  {fmt.Sprint(thresholds.ManyBroken)},
		"GodatCallsLost":        {"0"},
		"GodatHandlersSlow":     {late},
		"GodatConnectionsBreak": {fmt.Sprint(thresholds.ManyBroken)},
		"GodatCallsLate":        {"0"},
		"GodatCallsRefused":     {"0"},
		"GodatCallsFail":        {fmt.Sprint(thresholds.ManyFailures), fmt.Sprint(thresholds.FailuresShare)},
		// It grows from each minute to the next, for thresholds.Endless.
		"GodatBuffersOut":           nil,
		"GodatMemoryGrows":          nil,
		"GodatGoroutinesGrow":       {fmt.Sprint(thresholds.ManyGoroutines)},
		"GodatCallsNotUnderstood":   {fmt.Sprint(thresholds.FewFailures), fmt.Sprint(thresholds.FewShare)},
		"GodatDescriptorsNearlyOut": {fmt.Sprint(thresholds.Nearly)},
		"GodatMemoryNearlyOut":      {fmt.Sprint(thresholds.Nearly)},
	}
	numbers, got := regexp.MustCompile(`[=><] ?([0-9.]+)`), make(map[string][]string)
	for _, rule := range regexp.MustCompile(`(?s)alert: (\w+)\n +expr: ([^\n]+)`).FindAllStringSubmatch(string(rules), -1) {
		got[rule[1]] = nil
		for _, n := range numbers.FindAllStringSubmatch(rule[2], -1) {
			got[rule[1]] = append(got[rule[1]], n[1])
		}
		if strings.Contains(rule[2], "_over_time") {
			windows := strings.Count(rule[2], "offset 1m)") - 1 + strings.Count(rule[2], "offset 2m)")
			assert.Equal(t, thresholds.Endless, time.Duration(windows)*time.Minute, "it has grown twice")
		}
	}
	assert.Equal(t, want, got)
	for _, pause := range regexp.MustCompile(`for: (\S+)`).FindAllStringSubmatch(string(rules), -1) {
		assert.Contains(t, []string{"1m", "5m"}, pause[1])
	}
}

func TestTheDashboardShowsMetricsThatAreThere(t *testing.T) {
	text, err := os.ReadFile("docs/dashboard.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			ID          int
			Title, Type string
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	seen := make(map[int]bool)
	for _, p := range board.Panels {
		assert.False(t, seen[p.ID], "two panels %d", p.ID)
		seen[p.ID] = true
		assert.Equal(t, p.Type == "row", p.Targets == nil, p.Title)
		for _, target := range p.Targets {
			require.Contains(t, target.Expr, "godat_")
			of := labels(t, target.Expr)
			for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(target.Expr, -1) {
				for label := range strings.SplitSeq(by[1], ", ") {
					assert.True(t, of[label], "%s of %s", label, p.Title)
				}
			}
			for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				assert.True(t, of[label[1]], "%s of %s", label[1], p.Title)
			}
		}
	}
	for _, d := range described {
		name := regexp.MustCompile(`godat_\w+`).FindString(d.String())
		assert.True(t, strings.Contains(string(text), name+"{") || strings.Contains(string(text), name+"_bucket{"), "each metric is shown: %s", name)
	}
}

func TestTenThousandShortConnectionsOfCallsAreCountedToTheLast(t *testing.T) {
	connections := 10000
	if testing.Short() {
		connections = 1000
	}
	w := newWorld(t)
	s, err := rpc.Listen(t.Context(), w.ia, ":0", rpc.Config{Calls: 1, Message: 64})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(context.Background(), 1, func(*rpc.Request) ([]byte, error) { return nil, nil })
	}()
	c, last := New(w.ia), float64(0)
	calls := fmt.Sprintf(`godat_rpc_client_calls_total{adapter="loop",method="0",result="done",server=%q}`, s.Addr())
	for i := range connections {
		client, err := rpc.Dial(t.Context(), w.ia, s.Addr(), rpc.Config{Calls: 1, Message: 64})
		require.NoError(t, err)
		_, err = client.Call(t.Context(), rpc.Call{}, nil)
		require.NoError(t, err)
		if i%500 == 0 {
			now := value(t, c, calls)
			assert.EqualValues(t, i+1, now)
			assert.Greater(t, now, last)
			last = now
		}
		require.NoError(t, client.Close())
	}
	assert.EqualValues(t, connections, value(t, c, calls))
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
	assert.EqualValues(t, connections, value(t, c, calls))
	assert.EqualValues(t, connections, value(t, c, fmt.Sprintf(`godat_rpc_server_answers_total{adapter="loop",method="0",result="done",server=%q}`, s.Addr())))
}

func TestTheMetricsHaveOwnersAndTheCodesOfAMinute(t *testing.T) {
	w := newWorld(t)
	pz, err := w.ia.NewPZ()
	require.NoError(t, err)
	pool, err := pz.NewBufferPool(mem.BufferPoolConfig{Count: 4, Size: 64})
	require.NoError(t, err)
	kept := pool.Get()
	s, err := rpc.Listen(t.Context(), w.ia, ":0", rpc.Config{Methods: map[uint16]string{1: "get"}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(ctx, 1, func(*rpc.Request) ([]byte, error) { return nil, fmt.Errorf("the disk is full") })
	}()
	c, err := rpc.Dial(t.Context(), w.ia, s.Addr(), rpc.Config{})
	require.NoError(t, err)
	for range 3 {
		_, err = c.Call(t.Context(), rpc.Call{Method: 1}, nil)
		require.Error(t, err)
	}
	for series, want := range map[string]float64{
		`godat_owner_memory_bytes{adapter="loop",owner="%[1]s"}`:                                     4 * 64,
		`godat_owner_buffers_held{adapter="loop",owner="%[1]s"}`:                                     1,
		`godat_rpc_minute_failures{adapter="loop",code="CodeFailed",end="server",server="%[2]s"}`:    3,
		`godat_rpc_minute_failures{adapter="loop",code="CodeFailed",end="client",server="%[2]s"}`:    3,
		`godat_rpc_minute_answers{adapter="loop",end="server",server="%[2]s"}`:                       3,
		`godat_rpc_server_answers_total{adapter="loop",method="get",result="failed",server="%[2]s"}`: 3,
	} {
		name := strings.NewReplacer("%[1]s", pool.String(), "%[2]s", s.Addr()).Replace(series)
		assert.EqualValues(t, want, value(t, New(w.ia), name), name)
	}
	assert.GreaterOrEqual(t, value(t, New(w.ia), fmt.Sprintf(`godat_owner_oldest_buffer_held_age_seconds{adapter="loop",owner=%q}`, pool)), 0.0)
	kept.Put()
	cancel()
	require.NoError(t, <-served)
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.NoError(t, pool.Close())
	require.NoError(t, pz.Close())
}

func TestPollsAreCounted(t *testing.T) {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	d, err := ia.NewDispatcher(evd.Config{QLen: 8})
	require.NoError(t, err)
	c := New(ia)
	before := value(t, c, `godat_consumer_polls_total{adapter="iwarp:127.0.0.1"}`)
	for range 8 {
		_, err := d.Dequeue(make([]event.Event, 1))
		require.NoError(t, err)
	}
	s, err := ia.Snapshot()
	require.NoError(t, err)
	assert.InDelta(t, float64(s.Polls.Consumers)-before, value(t, c, `godat_consumer_polls_total{adapter="iwarp:127.0.0.1"}`), 0)
	assert.InDelta(t, float64(s.Polls.Empty), value(t, c, `godat_polls_total{adapter="iwarp:127.0.0.1",result="empty"}`), 0)
	require.NoError(t, d.Close())

	assert.InDelta(t, -1, value(t, New(newWorld(t).ia), `godat_consumer_polls_total{adapter="loop"}`), 0, "nobody polls loop")
}
