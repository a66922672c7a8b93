package calls

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/host"
	"godat/bench/stats"
)

// nobodyElse sees nothing that other programs do.
func nobodyElse() host.Disturbed { return func(time.Duration) bool { return false } }

func TestAStudyWritesItsPageAndTheLinesThatQuoteIt(t *testing.T) {
	top := t.TempDir()
	folder := filepath.Join(top, "bench")
	require.NoError(t, os.Mkdir(folder, 0o700))
	for _, name := range []string{top, folder} {
		text := "before\n" + linesBegin + "old\n" + linesEnd + "\nbehind\n"
		require.NoError(t, os.WriteFile(filepath.Join(name, "README.md"), []byte(text), 0o600))
	}
	var out bytes.Buffer
	s := study{out: &out, rows: rows(), command: anEnd(), watch: nobodyElse}
	s.Options = Options{Repeats: 1, Duration: 2 * time.Millisecond, Sizes: []int{64, 65536}, Callers: 2, Large: 65536, Write: folder}
	require.NoError(t, s.check())
	require.NoError(t, s.run(t.Context()))
	page := read(t, folder, "CALLS.md")
	for _, row := range rows() {
		assert.Equal(t, 4, strings.Count(out.String(), "| "+row.Name+" | ")-strings.Count(beyond(out.String(), "A small call"), "| "+row.Name+" | "), row.Name)
		assert.Contains(t, page, "- **"+row.Name+"**: "+row.Options)
	}
	assert.NotContains(t, page, "refused")
	assert.Equal(t, 2, strings.Count(page, "### A small call beside 8 callers of a "))
	lines := read(t, folder, "README.md")
	assert.Regexp(t, `(?s)^before\n`+linesBegin+`.*put of 64 B.*CALLS.md.*`+linesEnd+`\nbehind\n$`, lines)
	assert.NotContains(t, lines, "old\n")
	quoted := read(t, top, "README.md")
	assert.Contains(t, quoted, "| | gRPC, tuned | net/http |\n| --- | ---:| ---:|\n| put of 64 B | ")
	assert.Contains(t, quoted, "(few)", "one repeat has no interval")
	assert.Contains(t, lines, "**Small calls that share a connection with large ones.**")
	assert.Contains(t, lines, "| gRPC, tuned, beside a put of 64 KiB | ")
}

func TestFiguresThatMeanNothingReplaceNone(t *testing.T) {
	busy := measured(onNet, 35)
	busy.disturbed = len(busy.rate)
	for name, c := range map[string]*contender{
		"mean nothing":  busy,
		"it is refused": {Row: Row{Name: onNet}, refused: errors.New("it is refused")},
	} {
		top := t.TempDir()
		p := page{study: &study{Options: Options{Callers: 16, Repeats: 7}}, tables: []table{{Kind{64, false}, []*contender{c}}}}
		require.ErrorContains(t, p.writeAll(filepath.Join(top, "bench")), name)
		entries, err := os.ReadDir(top)
		require.NoError(t, err)
		assert.Empty(t, entries)
	}
}

func TestAPageWhoseMarksAreDamagedIsRefusedBeforeAnythingIsMeasured(t *testing.T) {
	top := t.TempDir()
	folder := filepath.Join(top, "bench")
	require.NoError(t, os.Mkdir(folder, 0o700))
	damaged := linesBegin + "old\n<!-- another part -->\nmore\n" + linesEnd + "\n"
	for _, name := range []string{top, folder} {
		require.NoError(t, os.WriteFile(filepath.Join(name, "README.md"), []byte(damaged), 0o600))
	}
	s := study{Options: Options{Sizes: []int{64}, Callers: 1, Repeats: 1, Duration: 1, Write: folder}, rows: rows()}
	require.ErrorContains(t, s.check(), "put it where the part ends")
	require.Error(t, marks.Quote(filepath.Join(top, "README.md"), "new"))
	assert.Equal(t, damaged, read(t, top, "README.md"))
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	return string(text)
}

func beyond(text, word string) string {
	_, after, _ := strings.Cut(text, word)
	return after
}

// measured is a contender with the same figure in each repeat.
func measured(name string, processor float64) *contender {
	c := &contender{Row: Row{Name: name}}
	for range 7 {
		c.processor, c.rate = append(c.processor, processor), append(c.rate, 1e9/processor)
		c.p50, c.p99 = append(c.p50, processor), append(c.p99, processor)
	}
	return c
}

func TestTheConclusionSaysWhereToTakeSomethingElse(t *testing.T) {
	p := page{study: &study{Options: Options{Callers: 16, Repeats: 7}}, tables: []table{
		{Kind{64, false}, []*contender{measured(overIWARP, 70), measured(tunedGRPC, 100), measured(plainHTTP, 140), measured(onNet, 35)}},
		{Kind{64, true}, []*contender{measured(overIWARP, 100), measured(tunedGRPC, 100), measured(plainHTTP, 50), measured(onNet, 50)}},
		{Kind{1 << 20, true}, []*contender{measured(overIWARP, 90), {Row: Row{Name: tunedGRPC}, refused: errors.New("no")}}},
	}}
	text := p.conclusion()
	assert.Contains(t, text, "beside "+tunedGRPC+": more for none; equal, as far as the interval tells, for get of 64 B (1.00); less for put of 64 B (0.70).")
	assert.Contains(t, text, "beside "+onNet+": more for put of 64 B (2.00), get of 64 B (2.00); equal, as far as the interval tells, for none; less for none.")
	assert.Equal(t, "Processor time of a call over iwarp, as a multiple of what the software that heads the column takes for the same call (`go run ./bench rpc`: both ends, two processes, memory registered once, 16 callers). A put of 64 KiB sends that much with its request, and a get receives it with its answer. "+
		"Each figure is the median of the ratios of 7 repeats; in brackets is its 95 % interval.\n\n"+
		"| | gRPC, tuned | net/http |\n| --- | ---:| ---:|\n| put of 64 B | 0.70 (0.70–0.70) | 0.50 (0.50–0.50) |\n| get of 64 B | 1.00 (1.00–1.00) | 2.00 (2.00–2.00) |\n| get of 1 MiB | – | – |\n\n"+
		"If the interval includes 1, this run found no difference; if it lies above 1, the other takes less. A plain server on package net takes less for each of these calls. "+
		"[bench/CALLS.md](bench/CALLS.md) says for which calls to take something else.", p.quoted())
	p.tables[1].contenders[3] = measured(onNet, 100)
	assert.Contains(t, p.quoted(), " A plain server on package net takes less for put of 64 B (2.00). ")
	assert.Contains(t, p.summary(), "| put of 64 B | 0.70 (0.70–0.70); 1.43 |")
	require.ErrorContains(t, p.refused(), "gRPC, tuned, get of 1 MiB: no")
	require.NoError(t, p.busy())
	for _, t := range p.tables {
		for _, c := range t.contenders {
			c.disturbed = len(c.rate)
		}
	}
	require.ErrorIs(t, p.busy(), ErrBusy)
}

func TestFewRepeatsAreSaid(t *testing.T) {
	assert.Equal(t, "1.00 (1.00–1.00)", ratio(stats.Of([]float64{1, 1, 1, 1, 1, 1, 1})))
	assert.Equal(t, "1.00 (few)", ratio(stats.Of([]float64{1, 1})))
	assert.Equal(t, "1µs (few)", duration([]float64{1000}))
}

func TestAPercentileNeedsCalls(t *testing.T) {
	assert.Equal(t, "–", tail([]float64{5}, []float64{299}))
	assert.Equal(t, "5ns (few)", tail([]float64{5}, []float64{300}))
}

func TestARowThatIsRefusedIsAnErrorAndOthersGoOn(t *testing.T) {
	var out bytes.Buffer
	s := study{Options: Options{Sizes: []int{64}, Callers: 2, Repeats: 1, Duration: time.Millisecond, Only: "net/rpc"}, out: &out, command: anEnd(), watch: host.WatchOthers}
	for _, row := range testRows() {
		if row.Name == "net/rpc" {
			s.rows = append(s.rows, row)
		}
		if row.Name == "drops deadlines" {
			row.Name += " in net/rpc" // which no end knows
			s.rows = append(s.rows, row)
		}
	}
	err := s.run(t.Context())
	require.ErrorContains(t, err, "drops deadlines in net/rpc, put of 64 B: ")
	require.NotErrorIs(t, err, ErrBusy)
	assert.Contains(t, out.String(), "| drops deadlines in net/rpc | refused: ")
	assert.Regexp(t, `\| net/rpc \| [0-9.]+.*s \(few\)`, out.String())
}

func TestThreeDigitsAreShown(t *testing.T) {
	for ns, want := range map[float64]string{0: "0s", 999: "999ns", 1234: "1.23µs", 12345: "12.3µs", 1_236_000: "1.24ms", -1: "–"} {
		assert.Equal(t, want, show(ns))
	}
}

func TestArgumentsThatMakeNoSenseAreRefused(t *testing.T) {
	const right = `"Sizes":[64],"Callers":1,"Repeats":1,"Duration":1`
	for _, wrong := range []string{`"Only":"nosuch"`, `"Only":"gRPC","Write":"."`, `"Write":"nowhere"`, `"Repeats":0`, `"Duration":0`, `"Sizes":[1]`, `"Sizes":"x"`, `"Sizes":[70000000]`, `"Callers":0`, `"Callers":2000`, `"Large":-1`, `"Large":80000000`, `more`} {
		assert.ErrorIs(t, Study(t.Context(), "{"+right+","+wrong+"}", new(bytes.Buffer), nil), ErrUsage, wrong)
	}
}
