package life

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

// columns are the states of DAT's table, by its abbreviations.
var columns = map[string]State{
	"UNC": Unconnected, "RSV": Reserved, "PAS": PassiveConnectionPending, "ACT": ActiveConnectionPending,
	"TEN": TentativeConnectionPending, "CMP": CompletionPending, "CON": Connected, "DPN": DisconnectPending, "DIS": Disconnected,
	"---": Closed,
}

// calls is DAT's table of what a call does in each state: E is INVALID_STATE, nop has no effect, and any other word is
// the state that follows.
const calls = `
            UNC RSV PAS ACT TEN CMP CON DPN DIS
Connect     ACT  E   E   E   E   E   E   E   E
Pair        ACT  E   E   E   E   E   E   E   E
Accept      CMP  E   E   E   E   E   E   E   E
AcceptOwn    E   E  CMP  E  CMP  E   E   E   E
Disown       E   E  UNC  E  ---  E   E   E   E
Reserve     RSV  E   E   E   E   E   E   E   E
Release      E  UNC  E   E   E   E   E   E   E
Asked        E  PAS  E   E   E   E   E   E   E
Abrupt       E   E   E  DIS  E  DIS DIS DIS nop
Graceful     E   E   E  DIS  E  DIS DPN nop nop
Reset       nop  E   E   E   E   E   E   E  UNC
Close       ---  E   E  ---  E  --- --- --- ---
`

var called = map[string]Input{
	"Connect": InConnect, "Pair": InPair, "Accept": InAccept, "AcceptOwn": InAcceptOwn, "Disown": InDisown, "Reserve": InReserve,
	"Release": InRelease, "Asked": InAsked, "Abrupt": InAbrupt, "Graceful": InGraceful, "Reset": InReset, "Close": InClose,
}

func TestACallDoesInEachStateWhatDATsTableSays(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(calls), "\n")
	heads := strings.Fields(rows[0])
	require.Len(t, rows, len(called)+1)
	for _, row := range rows[1:] {
		cells := strings.Fields(row)
		for i, head := range heads {
			from := columns[head]
			var l Life
			fx := l.Answer(from, called[cells[0]], Detail{})
			switch want := cells[i+1]; want {
			case "E":
				assert.Equal(t, Effects{State: from, Refused: true}, fx, "%s in %v", cells[0], from)
				assert.Zero(t, l, "%s in %v has changed something", cells[0], from)
			case "nop":
				assert.Equal(t, Effects{State: from}, fx, "%s in %v", cells[0], from)
				assert.Zero(t, l, "%s in %v has changed something", cells[0], from)
			default:
				assert.Equal(t, columns[want], fx.State, "%s in %v", cells[0], from)
				assert.True(t, fx.Moved)
			}
			assert.Equal(t, fx.Moved, from.Moves(called[cells[0]]))
		}
	}
}

// entered are the states that an endpoint is ever in.
var entered = slices.Collect(maps.Values(columns))

func TestNothingLeadsOutOfAClosedEndpointOrIntoAStateThatHasNoName(t *testing.T) {
	for in := range NumInputs {
		assert.NotEmpty(t, in.String())
		assert.False(t, Closed.Moves(in), in)
		for s := range numStates {
			var l Life
			if fx := l.Answer(s, in, Detail{}); fx.Moved {
				assert.Contains(t, entered, s, "%v moves it", in)
				assert.Contains(t, entered, fx.State, "%v in %v", in, s)
			}
		}
	}
}

// What is under way has an end, whoever brings it: the peer, the program, the device or the clock.
func TestWhatIsUnderWayEnds(t *testing.T) {
	for _, s := range []State{ActiveConnectionPending, CompletionPending, Connected, DisconnectPending} {
		for _, in := range []Input{InDown, InAbrupt, InFailure, InOverrun} {
			l := Life{places: Places}
			fx := l.Answer(s, in, Detail{Why: hw.ReasonBroken})
			assert.Equal(t, Disconnected, fx.State, "%v in %v", in, s)
			assert.NotNil(t, fx.Cause, "%v in %v has no cause", in, s)
			assert.Contains(t, []Line{EndOrderly, Abort}, fx.Line)
			assert.Zero(t, fx.Event, "the end is announced behind what is flushed")
			assert.False(t, l.Over())
			end := l.Flushed(fx.State)
			assert.NotZero(t, end.Event, "%v in %v is not announced", in, s)
			assert.True(t, end.Deliver)
			assert.True(t, end.Over)
			assert.True(t, l.Over())
			assert.Equal(t, Places-1, end.Release)
			assert.Equal(t, Effects{State: Disconnected}, l.Flushed(Disconnected), "it is announced once")
		}
	}
}

// A connection takes as many places as it reserved, whatever happens to it, and gives back the others.
func TestAConnectionUsesThePlacesThatItReserved(t *testing.T) {
	for _, begin := range []Input{InConnect, InAccept} {
		for _, up := range []bool{false, true} {
			for in := InEstablished; in < NumInputs; in++ {
				var l Life
				s, taken := l.Answer(Unconnected, begin, Detail{}).State, 0
				if up {
					fx := l.Answer(s, InEstablished, Detail{})
					require.Equal(t, event.Established, fx.Event)
					s, taken = fx.State, 1
				}
				fx := l.Answer(s, in, Detail{})
				if fx.Deliver {
					taken++
				}
				if fx.State != Disconnected && fx.State != Closed {
					continue
				}
				end := l.Flushed(fx.State)
				if end.Deliver {
					taken++
				}
				assert.Equal(t, Places, taken+end.Release, "%v, and then %v", begin, in)
			}
		}
	}
}

func TestAClosedEndpointAnnouncesNothing(t *testing.T) {
	l := Life{places: Places}
	s := l.Answer(Connected, InAbrupt, Detail{}).State
	s = l.Answer(s, InClose, Detail{}).State
	fx := l.Flushed(s)
	assert.Zero(t, fx.Event)
	assert.Equal(t, Places, fx.Release)
	assert.True(t, fx.Over)
}

func TestAnAlarmThatIsLateSaysNothing(t *testing.T) {
	for _, c := range []struct {
		late, limit string
		want        bool
	}{
		{"0s", "1s", false},
		{"500ms", "1s", false},
		{"501ms", "1s", true},
		{"2s", "10s", false},
		{"2501ms", "10s", true},
	} {
		assert.Equal(t, c.want, TooLate(span(t, c.late), span(t, c.limit)), "%s of %s", c.late, c.limit)
	}
}
