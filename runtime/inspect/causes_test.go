package inspect

import (
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
	list := []Trouble{
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
