package inspect

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw/event"
	dat "godat/runtime"
)

// replica is a row that may miss a node, and volume one that may know why.
type replica struct{ Addr, Says string }

func (r replica) Trouble(time.Duration) string { return r.Says }
func (r replica) Misses() string               { return r.Addr }

type volume struct{ Name, Refuses string }

func (v volume) Trouble(time.Duration) string { return v.Refuses }

func TestALineThatSaysWhyAPeerIsMissedStandsBeforeTheOneThatMissesIt(t *testing.T) {
	r := newRig(t, 0, dat.ConnConfig{})
	_, err := r.ia.Report("replicas", func() []any {
		return []any{replica{"10.0.0.1:7001", "nothing is heard of its node"}, replica{"10.0.0.2:7001", "nothing is heard of its node"}}
	})
	require.NoError(t, err)
	_, err = r.ia.Report("volumes", func() []any {
		return []any{
			volume{"a", "the disk is nearly full"},
			volume{"b", "refuses whoever comes from 10.0.0.2: the certificate is of another volume"},
		}
	})
	require.NoError(t, err)
	var order []string
	for _, t := range r.ask("?format=json").Troubles {
		order = append(order, t.Name)
	}
	assert.Equal(t, []string{"a", "b", "10.0.0.1:7001", "10.0.0.2:7001"}, order)
}

func TestACauseOfAnyRankStandsBeforeTheSilenceItExplains(t *testing.T) {
	const at = "10.0.0.2:7001"
	list := []trouble{
		{Kind: "rpc clients", Name: at, Text: "4 calls missed the deadline", rank: felt, misses: at},
		{Kind: "no consumer", Name: "here", Text: "this program's loop sleeps"},
		{Kind: "silent peer", Name: "other", Text: "the peer 10.0.0.2:7002 has not answered", misses: "10.0.0.2:7002"},
		{Kind: "peer", Name: "c", Text: "the peer " + at + " has stopped", misses: at},
		{Kind: "failed", Name: "l", Text: "attempts to connect to " + at + " failed: the certificate has expired", rank: 2},
	}
	causesFirst(list)
	var order []string
	for _, t := range list {
		order = append(order, t.Kind)
	}
	assert.Equal(t, []string{"rpc clients", "no consumer", "silent peer", "failed", "peer"}, order)
}

// caller is a row of a client or a server, and of connections.
type caller struct {
	Name, Says, With string
	Why              bool
}

func (c caller) Trouble(time.Duration) string                  { return c.Says }
func (c caller) Connections() (address string, explained bool) { return c.With, c.Why }

// linesOf are the lines of a snapshot with rows, and with ends of connections and a listener that refuses.
func linesOf(reports map[string][]row, ends ...ep.EndSnapshot) (lines []string) {
	const at = "10.0.0.2:7001"
	l := dat.ListenerSnapshot{PointSnapshot: ep.PointSnapshot{Name: "Listener(" + at + ")", Rejected: 3}}
	now := &seen{Snapshot: dat.Snapshot{At: time.Now(), Listeners: []dat.ListenerSnapshot{l}, LastEnds: ends, Reports: reports}}
	for i := range ends {
		ends[i].At = now.At
	}
	for _, t := range troubles(now, &seen{Snapshot: dat.Snapshot{At: now.At.Add(-time.Second)}}) {
		lines = append(lines, t.Head+": "+t.Text)
	}
	return lines
}

func TestATroubleWithConnectionsIsOneLineWithTheirEnds(t *testing.T) {
	const at, other = "10.0.0.2:7001", "10.0.0.3:7001"
	cause := &ep.CauseSnapshot{Layer: "TCP", Text: "it was cut"}
	end := func(i int, remote, name string) ep.EndSnapshot {
		return ep.EndSnapshot{Name: fmt.Sprint(i), Owner: fmt.Sprintf("%s (dial %d)", remote, i), Remote: remote, Event: name, Cause: cause}
	}
	var ends []ep.EndSnapshot
	for i := range 9 {
		ends = append(ends, end(i, at, event.Broken.String()))
	}
	lines := linesOf(map[string][]row{"rpc clients": {caller{Name: at, Says: "4 calls lost the connection", With: at}}}, ends...)
	require.Len(t, lines, 2, "%q", lines)
	assert.Contains(t, lines[0], "Listener(", "of another end")
	assert.Regexp(t, `^rpc client to 10.0.0.2:7001: 9 connections to 10.0.0.2:7001 ended within a minute, the last .*it was cut.*; 4 calls lost the connection$`, lines[1])

	reset := end(9, at, event.Broken.String())
	reset.Cause = &ep.CauseSnapshot{Layer: "TCP", Text: "it was reset"}
	lines = linesOf(map[string][]row{"rpc clients": {caller{Name: at, Says: "no connection: it was reset; 4 calls lost the connection", With: at}}}, append(ends[:9:9], reset)...)
	require.Len(t, lines, 2, "%q", lines)
	assert.Regexp(t, `^rpc client to 10.0.0.2:7001: the connection 10.0.0.2:7001 \(dial 9\) ended .*: it was reset; no connection; 4 calls lost the connection$`, lines[1], "the last end, and no reason twice")

	lines = linesOf(map[string][]row{"rpc clients": {caller{Name: other, Says: "4 calls lost the connection", With: other}}}, append(ends[:1:1], end(1, other, event.Broken.String()))...)
	require.Len(t, lines, 3, "%q", lines)
	assert.Regexp(t, `^rpc client to 10.0.0.3:7001: the connection 10.0.0.3:7001 \(dial 1\) .*it was cut.*; 4 calls`, lines[1])
	assert.Contains(t, lines[2], "10.0.0.2:7001 (dial 0): ", "of another peer")

	lines = linesOf(map[string][]row{"rpc clients": {caller{Name: at, Says: "the server speaks Greek", With: at, Why: true}}}, end(0, at, event.PeerRejected.String()))
	assert.Equal(t, []string{"rpc client to 10.0.0.2:7001: the server speaks Greek"}, lines)
	lines = linesOf(map[string][]row{"rpc servers": {caller{Name: at, Says: "clients speak Greek", With: at, Why: true}}})
	assert.Equal(t, []string{"rpc server on 10.0.0.2:7001: clients speak Greek"}, lines)
}

func TestAProcessWithoutDescriptorsStandsBeforeThePeersThatItTurnsAway(t *testing.T) {
	list := []trouble{{Kind: "descriptors", Text: "3 peers turned away"}, {Kind: "process descriptors", Text: "255 of 256", rank: 1}}
	causesFirst(list)
	assert.Equal(t, "process descriptors", list[0].Kind)
}

func TestATextNamesAnAddressByItsHostAndPortOrByTheHostAlone(t *testing.T) {
	for text, address := range map[string]string{
		"from 10.0.0.1:70: no":   "10.0.0.1:70",
		"from 10.0.0.1: no":      "10.0.0.1:70",
		"from 10.0.0.1":          "10.0.0.1:70",
		"db7 refuses":            "db7:70",
		"at [::1]:70 nobody is":  "[::1]:70",
		"at ::1, nobody is":      "[::1]:70",
		"110.0.0.1:9 10.0.0.1:7": "10.0.0.1:7",
	} {
		assert.True(t, names(text, address), "%s: %s", text, address)
	}
	for text, address := range map[string]string{
		"from 10.0.0.1:71: no": "10.0.0.1:70",
		"from 10.0.0.1:701":    "10.0.0.1:70",
		"from 110.0.0.1:70":    "10.0.0.1:70",
		"from 10.0.0.11":       "10.0.0.1:70",
		"db77 refuses":         "db7:70",
		"at [::1]:71":          "[::1]:70",
		"nobody":               "",
		"":                     "db7:70",
	} {
		assert.False(t, names(text, address), "%s: %s", text, address)
	}
}

// slow is a row about a peer that knows what is wrong there, or about this end.
type slow struct {
	Name, Says string
	peers      []string
}

func (s slow) Trouble(time.Duration) string   { return s.Says }
func (s slow) Causes() (is bool, of []string) { return true, s.peers }

func TestARowThatKnowsTheCauseStandsBeforeWhatUsersFeelAndForThePeersLines(t *testing.T) {
	const at, other = "10.0.0.2:7001", "10.0.0.3:7001"
	rows := []any{slow{"node 2", "its disk is slow", []string{at, "10.0.0.2:40000"}}, slow{"node 3", "", []string{other}}, slow{"here", "the disk here is slow", nil}}
	s := &seen{Snapshot: dat.Snapshot{Reports: map[string][]any{"nodes": rows, "rpc clients": {felts(at), felts(other)}, "rpc servers": {felts("10.0.0.1:7001")}}}}
	s.LastEnds = []ep.EndSnapshot{
		{Event: event.Broken.String(), Name: "10.0.0.2:40000", Remote: "10.0.0.2:40000"},
		{Event: event.Unreachable.String(), Name: at, Remote: at},
		{Event: event.Unreachable.String(), Name: other, Remote: other},
	}
	var order []string
	for _, t := range troubles(s, nil) {
		order = append(order, t.Show+" "+t.Name)
	}
	assert.Equal(t, []string{"nodes here", "nodes node 2", "rpc clients " + other, "rpc servers 10.0.0.1:7001", "last ends " + other}, order)
}

// felts is a row of what callers feel.
type felts string

func (f felts) String() string               { return string(f) }
func (f felts) Trouble(time.Duration) string { return "calls are late" }
