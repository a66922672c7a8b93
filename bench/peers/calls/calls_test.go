package calls

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/ends"
)

// TestMain is, with these words, a program that has a study and the ends of its rows.
func TestMain(m *testing.M) {
	exit := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "end" {
		fmt.Fprintln(os.Stderr, "an end")
		exit(serve(os.Stdin, os.Stdout, func() { os.Exit(1) }, testRows()))
	}
	if len(os.Args) > 1 && os.Args[1] == "rpc" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		exit(Study(ctx, os.Args[2], os.Stdout, anEnd()))
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil { // or each end takes a second to end
		exit(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

func anEnd() []string { return []string{os.Args[0], "end"} }

// testRows are all rows, and some that don't do what they say.
func testRows() []Row {
	liar := func(name string, list Row, serve func(w *work) (server, error)) Row {
		list.Name, list.serve, list.dial = name, serve, dialNetRPC
		return list
	}
	short := func(w *work) (server, error) { return serveShort(w, w) }
	idle := func(w *work) (server, error) { return serveShort(w, newWork(w.most)) }
	return append(rows(),
		liar("drops deadlines", Row{Deadline: true}, serveNetRPC),
		liar("has no deadlines, and says so", Row{NoLimit: true}, serveNetRPC),
		liar("has deadlines, and says no", Row{NoLimit: true, Deadline: true}, serveNetRPC),
		liar("answers another size", Row{}, short),
		liar("counts elsewhere", Row{NoLimit: true}, idle))
}

// ShortCalls answer gets with a byte too few.
type ShortCalls struct{ w, counts *work }

// Put answers right.
func (c *ShortCalls) Put(body []byte, answer *uint64) error {
	*answer = c.counts.put(look(body), false)
	return nil
}

// Get answers wrong.
func (c *ShortCalls) Get(request []byte, answer *[]byte) error {
	size, err := c.counts.get(request, false)
	*answer = c.w.body[:size-1]
	return err
}

func serveShort(w, counts *work) (server, error) {
	ln, err := ends.Listen()
	if err != nil {
		return nil, err
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Calls", &ShortCalls{w, counts}); err != nil {
		return nil, err
	}
	return &netServer{ln, ends.Each(ln, func(conn net.Conn) { server.ServeConn(conn) })}, nil
}

func rowOf(t *testing.T, name string) Row {
	t.Helper()
	for _, row := range testRows() {
		if row.Name == name {
			return row
		}
	}
	require.Fail(t, "no row", name)
	return Row{}
}

// measure measures a row once.
func measure(t *testing.T, row Row, kind Kind) (turn, error) {
	t.Helper()
	plan := []group{{Kind: kind, Callers: 3, Enough: 4}}
	p, err := open(t.Context(), row, anEnd(), plan)
	require.NoError(t, err)
	got, err := p.turn(plan, 10*time.Second)
	if err != nil {
		p.Kill()
		return got, err
	}
	return got, p.close()
}

func TestEachRowProvesWhatItRan(t *testing.T) {
	for _, row := range rows() {
		for _, kind := range []Kind{{8, false}, {64, false}, {64, true}, {inside, true}, {inside + 1, false}, {inside + 1, true}, {64 << 10, true}, {1 << 20, false}, {1 << 20, true}} {
			got, err := measure(t, row, kind)
			require.NoError(t, err, "%s, %v", row.Name, kind)
			assert.EqualValues(t, 3*4, got.server.Calls, "%s, %v", row.Name, kind)
			assert.Equal(t, 3*4*kind.sent(), got.server.In, "%s, %v", row.Name, kind)
			assert.Equal(t, 3*4*kind.taken(), got.client.In, "%s, %v", row.Name, kind)
		}
	}
}

func TestARowThatDoesNotRunWhatItSaysIsRefused(t *testing.T) {
	_, err := measure(t, rowOf(t, "has no deadlines, and says so"), Kind{Size: 64})
	require.NoError(t, err)
	for name, want := range map[string]string{
		"drops deadlines":            "the server counted",
		"has deadlines, and says no": "the server counted",
		"answers another size":       errAnswer.Error(),
		"counts elsewhere":           "the server counted",
	} {
		_, err := measure(t, rowOf(t, name), Kind{64, name == "answers another size"})
		assert.ErrorContains(t, err, want, name)
	}
}

func TestEachCountIsCompared(t *testing.T) {
	plan := []group{{Kind: Kind{Size: 64}, Callers: 1}, {Kind: Kind{100, true}, Callers: 1}}
	right := func() turn {
		return turn{
			groups: []called{{Calls: 3}, {Calls: 2}},
			client: tally{Calls: 5, In: 3*8 + 2*100, Out: 3*64 + 2*8, Deadlines: 5},
			server: tally{Calls: 5, In: 3*64 + 2*8, Out: 3*8 + 2*100, Deadlines: 5},
		}
	}
	require.NoError(t, right().prove(Row{Deadline: true}, plan))
	for i, spoil := range []func(*turn){
		func(t *turn) { t.groups[1].Calls = 0 }, func(t *turn) { t.groups[0].Calls++ },
		func(t *turn) { t.client.Calls-- }, func(t *turn) { t.client.In-- }, func(t *turn) { t.client.Out++ }, func(t *turn) { t.client.Deadlines-- },
		func(t *turn) { t.server.Calls++ }, func(t *turn) { t.server.In-- }, func(t *turn) { t.server.Out++ }, func(t *turn) { t.server.Deadlines-- },
	} {
		spoiled := right()
		spoil(&spoiled)
		assert.Error(t, spoiled.prove(Row{Deadline: true}, plan), "%d", i)
	}
	require.Error(t, right().prove(Row{}, plan), "the server knows deadlines that the row denies")
	require.Error(t, right().prove(Row{NoLimit: true}, plan), "the client has deadlines that the row denies")
}

func TestADeadlineThatIsNotTheCallsIsNone(t *testing.T) {
	assert.False(t, hasDeadline(context.Background()))
	for wait, want := range map[time.Duration]bool{limit: true, time.Second: true, 2 * limit: false} {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		assert.Equal(t, want, hasDeadline(ctx), wait)
		cancel()
	}
}

func TestAnAnswerIsThatOfItsCall(t *testing.T) {
	body := newBody(100)
	assert.True(t, look(body).isAnswer(100))
	assert.False(t, look(body[:99]).isAnswer(100))
	blank(body)
	assert.False(t, look(body).isAnswer(100))
	a, b := newBody(64), newBody(64)
	b[7]++
	assert.NotEqual(t, look(a).stamp(), look(b).stamp(), "another call")
	assert.NotEqual(t, look(a).stamp(), look(newBody(65)).stamp(), "another length")
}

func TestSmallCallsAreMeasuredBesideLargeOnes(t *testing.T) {
	plan := []group{{Kind: Kind{Size: 64}, Callers: 1, Pause: time.Microsecond, Enough: 5}, {Kind: Kind{1 << 20, true}, Callers: 2}}
	for _, name := range []string{overIWARP, tunedGRPC} {
		p, err := open(t.Context(), rowOf(t, name), anEnd(), plan)
		require.NoError(t, err)
		alone, err := p.turn(plan[:1], time.Minute)
		require.NoError(t, err)
		assert.EqualValues(t, 5, alone.server.Calls)
		beside, err := p.turn(plan, time.Minute)
		require.NoError(t, err)
		assert.EqualValues(t, 5, beside.groups[0].Calls)
		assert.Positive(t, beside.groups[1].Calls)
		require.NoError(t, p.close())
	}
}

func TestAnEndSaysWhatItDoesNotUnderstand(t *testing.T) {
	var out strings.Builder
	in := strings.NewReader(`{"Do":"dance"}{"Do":"serve","Row":"none"}{"Do":"close"}`)
	require.NoError(t, serve(in, &out, func() {}, nil))
	assert.Contains(t, out.String(), `what is \"dance\"`)
	assert.Contains(t, out.String(), `no row \"none\"`)
}
