package life

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/hw"
)

var update = flag.Bool("update", false, "write the answers of the lives anew")

// A life in testdata is read line by line: "# " comments, a line without a blank before it is an input with its
// detail, and the line below, which is indented, is what was answered.
func TestALifeIsAnsweredAsItsTranscriptSays(t *testing.T) {
	files, err := filepath.Glob("testdata/*.life")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 8)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".life"), func(t *testing.T) {
			kept, err := os.ReadFile(file)
			require.NoError(t, err)
			lived := transcript(t, string(kept))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(lived), 0o600))
				return
			}
			require.Equal(t, strings.ReplaceAll(string(kept), "\r\n", "\n"), lived)
		})
	}
}

// transcript answers the inputs of a life anew.
func transcript(t *testing.T, kept string) string {
	var (
		out strings.Builder
		l   Life
		s   State
	)
	for line := range strings.Lines(kept) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "\t"):
			continue // an answer
		case line == "" || strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		fx := Effects{}
		switch words[0] {
		case "new":
			l, s = Life{}, stateNamed(t, words[1])
			continue
		case "flushed":
			fx = l.Flushed(s)
		default:
			in, known := inputs[words[0]]
			require.True(t, known, line)
			fx = l.Answer(s, in, detail(t, words[1:]))
		}
		s = fx.State
		fmt.Fprintf(&out, "\t%s\n", answer(fx))
	}
	return out.String()
}

// inputs are the words for inputs in a life.
var inputs = map[string]Input{
	"connect": InConnect, "pair": InPair, "accept": InAccept, "accept-own": InAcceptOwn, "reserve": InReserve, "release": InRelease,
	"asked": InAsked, "disown": InDisown, "established": InEstablished, "first-data": InFirstData, "refused": InRefused, "down": InDown,
	"drained": InDrained, "timeout": InTimeout, "disconnect": InAbrupt, "graceful": InGraceful, "reset": InReset,
	"failure": InFailure, "overrun": InOverrun, "close": InClose,
}

// reasons are the provider's.
var reasons = map[string]hw.Reason{
	"why=peer": hw.ReasonPeer, "why=broken": hw.ReasonBroken, "why=rejected": hw.ReasonPeerRejected,
	"why=unreachable": hw.ReasonUnreachable, "why=timeout": hw.ReasonTimeout, "why=none": hw.ReasonNone,
}

// detail reads what comes with an input: why=…, a limit, or the peer's private data in quotes.
func detail(t *testing.T, words []string) (d Detail) {
	for _, w := range words {
		why, isReason := reasons[w]
		switch {
		case isReason:
			d.Why = why
		case w[0] == '"':
			text, err := strconv.Unquote(w)
			require.NoError(t, err)
			d.Private = []byte(text)
		case w == "error":
			d.Err = errors.New("no memory")
		default:
			d.Limit = span(t, w)
		}
	}
	return d
}

func span(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

func stateNamed(t *testing.T, name string) State {
	for s, text := range stateText {
		if text == name {
			return State(s)
		}
	}
	t.Fatalf("no state %s", name)
	return 0
}

var lineText = map[Line]string{
	LetThrough: "let completions through", Drain: "drain", EndOrderly: "end the queues in order", Abort: "end the queues",
}

// answer is what is to be done, in words and in order.
func answer(fx Effects) string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(fx.Refused, "refused in %v", fx.State)
	add(!fx.Refused && !fx.Moved && fx.Event == 0 && !fx.Over && fx.Release == 0, "nothing")
	add(fx.Moved, "%v", fx.State)
	add(fx.GaveUp, "note that it was given up")
	add(fx.Alarm > 0, "alarm in %v", fx.Alarm)
	add(fx.Cause != nil, "unless the device says why: %v", fx.Cause)
	add(fx.Event != 0, "tell %v", fx.Event)
	add(fx.Event != 0 && !fx.Deliver, "of which nobody hears")
	add(fx.Passive, "as the end that accepted")
	add(fx.Private != nil, "with %q", fx.Private)
	add(fx.Line != Stay, "%s", lineText[fx.Line])
	add(fx.Release > 0, "give back %d", fx.Release)
	add(fx.Over, "it is over")
	return strings.Join(parts, "; ")
}
