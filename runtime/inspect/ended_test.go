package inspect

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

const leftWithout = "TCP: the stream ended without a farewell: the peer's process was killed or has crashed, or something cut the connection: its page tells, found here (a to b)"

// ended is what an adapter saw of its peers.
type ended struct{ *seen }

func newEnded() ended { return ended{&seen{Snapshot: dat.Snapshot{At: time.Now()}}} }

func (e ended) end(owner, remote string, event event.Number, age time.Duration, cause string) {
	e.LastEnds = append(e.LastEnds, ep.EndSnapshot{Owner: owner, Remote: remote, Event: event.String(), At: e.At.Add(-age), Cause: &ep.CauseSnapshot{Text: cause}})
	e.Ends = append(e.Ends, ep.EndCount{Count: 1})
}

func (e ended) conn(name, remote string, age time.Duration) *ep.EndpointSnapshot {
	e.Conns = append(e.Conns, dat.ConnSnapshot{ID: uint64(len(e.Conns)), Name: name, Endpoint: ep.EndpointSnapshot{
		State: connected, Remote: remote, Connected: e.At.Add(-age),
	}})
	return &e.Conns[len(e.Conns)-1].Endpoint
}

func (e ended) texts() (texts []string) {
	for _, t := range troubles(e.seen, nil) {
		texts = append(texts, t.Name+": "+t.Text)
	}
	return texts
}

func TestAttemptsThatFailedAreNoTroubleOnceThePeerIsConnected(t *testing.T) {
	e := newEnded()
	for i := range 61 {
		e.end(fmt.Sprintf("s:1 (dial %d)", i), "s:1", event.NonPeerRejected, time.Duration(79-i)*time.Second, "it hung up")
	}
	assert.Len(t, e.texts(), 1)
	e.conn("s:1 (dial 3)", "relay:9", time.Minute)
	e.conn("other:1 (dial 70)", "relay:9", 9*time.Second)
	assert.Len(t, e.texts(), 1, "neither is younger and its own")
	e.conn("s:1 (dial 72)", "relay:9", 9*time.Second)
	assert.Empty(t, e.texts())
	e.end("s:1 (dial 73)", "s:1", event.NonPeerRejected, time.Second, "it hung up")
	require.Len(t, e.texts(), 1, "they go on")
	assert.Contains(t, e.texts()[0], "attempts to connect to s:1 failed within a minute, the last 1 s ago")
}

func TestAConnectionThatBrokeIsTakenBackWhenThePeerConnectsAgain(t *testing.T) {
	e := newEnded()
	e.end("s:1 (dial 1)", "s:1", event.Broken, 20*time.Second, leftWithout)
	e.end("10.0.0.9:4001", "10.0.0.9:4001", event.Broken, 20*time.Second, leftWithout)
	e.end("10.0.0.9:4002", "10.0.0.9:4002", event.Broken, 20*time.Second, leftWithout)
	require.Len(t, e.texts(), 2, "those of a host are one line")
	assert.Contains(t, e.texts()[0], "2 connections from 10.0.0.9 ended within a minute, the last 20 s ago with BROKEN: TCP: the stream ended without a farewell: the peer's process was killed")
	e.conn("s:1 (dial 2)", "s:1", 10*time.Second)
	e.conn("10.0.0.9:4003", "10.0.0.9:4003", 10*time.Second)
	require.Len(t, e.texts(), 1)
	assert.Contains(t, e.texts()[0], "from 10.0.0.9", "one of two has come again")
	e.conn("10.0.0.9:4004", "10.0.0.9:4004", 10*time.Second)
	assert.Empty(t, e.texts())
}

func TestConnectionsThatBreakAgainAndAgainAreOneLineThatBlamesNoProcess(t *testing.T) {
	e := newEnded()
	for i := range 40 {
		e.end(fmt.Sprintf("s:1 (dial %d)", i), "s:1", event.Broken, time.Duration(41-i)*time.Second, leftWithout)
		from := fmt.Sprintf("10.0.0.9:%d", 4000+i)
		e.end(from, from, event.Broken, time.Duration(41-i)*time.Second, leftWithout)
	}
	e.conn("s:1 (dial 41)", "s:1", time.Second)
	e.conn("10.0.0.9:5000", "10.0.0.9:5000", time.Second)
	texts := e.texts()
	require.Len(t, texts, 2)
	for _, text := range texts {
		assert.Contains(t, text, "40 connections ")
		assert.Contains(t, text, "connected again since, so its program or something between cuts the connection")
		assert.NotContains(t, text, "killed")
		assert.Less(t, len(text), 260)
	}
	e.Conns = nil
	for range 30 {
		e.At = e.At.Add(time.Second)
		assert.Len(t, e.texts(), 2, "it is told for a while")
	}
}

func TestWhatHappenedToOnePeerIsOneLine(t *testing.T) {
	e := newEnded()
	e.end("s:1 (dial 1)", "relay:9", event.Broken, 28*time.Second, leftWithout)
	e.end("s:1 (dial 2)", "s:1", event.NonPeerRejected, 5*time.Second, "nothing listens there, found here (to s:1)")
	e.end("s:1 (dial 3)", "s:1", event.NonPeerRejected, 4*time.Second, "nothing listens there, found here (to s:1)")
	assert.Equal(t, []string{"s:1 (dial 3): 2 attempts to connect to s:1 failed within a minute, the last 4 s ago with NON_PEER_REJECTED: nothing listens there; before that, 1 connection to it broke, the last 28 s ago"}, e.texts())

	e = newEnded()
	e.conn("s:1 (dial 1)", "relay:9", time.Minute).Silence = 8 * time.Second
	e.end("s:1 (dial 2)", "s:1", event.TimedOut, 5*time.Second, "no answer")
	e.end("s:1 (dial 3)", "s:1", event.TimedOut, 4*time.Second, "no answer")
	e.end("s:2 (dial 4)", "s:2", event.TimedOut, 4*time.Second, "no answer")
	texts := e.texts()
	require.Len(t, texts, 2)
	assert.Contains(t, texts[0]+texts[1], "s:1 (dial 1): the peer relay:9 has not answered for 8 s: ")
	assert.Contains(t, texts[0]+texts[1], "; 2 attempts to connect to it anew failed within a minute")
	assert.Contains(t, texts[0]+texts[1], "s:2 (dial 4): an attempt to connect failed")
}

func TestAnEndForWantOfAReceiveIsNotToldBesideItsCause(t *testing.T) {
	e := newEnded()
	e.LastEnds = append(e.LastEnds, ep.EndSnapshot{Owner: "p:1", Remote: "p:1", Event: event.Broken.String(), At: e.At, Cause: &ep.CauseSnapshot{
		Layer: "DAT", Code: int(hw.StatusReceiverNotReady), Text: "DAT: the peer's SEND ended, found by the peer",
	}})
	require.Len(t, e.texts(), 1)
	e.Dispatchers = []evd.DispatcherSnapshot{{Name: "D", Owner: "L", QLen: 9, Queued: 3, OldestAge: time.Minute}}
	require.Len(t, e.texts(), 1)
	assert.Contains(t, e.texts()[0], "L: this program does not take")
}

func TestASilentPeersLineSaysWhatTCPKnows(t *testing.T) {
	for says, set := range map[string]func(*ep.EndpointSnapshot){
		"TCP acknowledges, so its process is stopped or stuck, or, if its page answers,":    func(e *ep.EndpointSnapshot) { e.PeerAcknowledges = true },
		"TCP acknowledges nothing: the network between is cut, or its host is down; if its": func(e *ep.EndpointSnapshot) { e.PeerLost = true },
		"its process is stopped or stuck, or its host or the network between is gone; if":   func(*ep.EndpointSnapshot) {},
	} {
		e := newEnded()
		c := e.conn("a", "b:1", time.Minute)
		c.Silence = 8 * time.Second
		set(c)
		require.Len(t, e.texts(), 1)
		assert.Contains(t, e.texts()[0], "the peer b:1 has not answered for 8 s: "+says)
		assert.Less(t, len(e.texts()[0]), 200)
	}
}

func TestAttemptsThatTheAdapterHasForgottenAreCounted(t *testing.T) {
	e, before := newEnded(), newEnded()
	count := func(n uint64) []ep.EndCount {
		return []ep.EndCount{{Event: event.NonPeerRejected.String(), Layer: "TCP", Code: 104, Count: n}, {Event: event.Disconnected.String(), Count: 9}}
	}
	for i := range 64 {
		e.end(fmt.Sprintf("s:1 (dial %d)", 936+i), "s:1", event.NonPeerRejected, time.Duration(64-i)*100*time.Millisecond, "reset")
	}
	before.Ends, e.Ends = count(100), count(1020)
	text := func() string {
		list := troubles(e.seen, before.seen)
		require.Len(t, list, 1)
		return list[0].Text
	}
	assert.Contains(t, text(), "920 attempts to connect to s:1 failed")
	e.LastEnds[0].Owner, e.LastEnds[0].Remote = "s:2 (dial 936)", "s:2"
	list := troubles(e.seen, before.seen)
	require.Len(t, list, 2)
	assert.Contains(t, list[0].Text, "at least 63 attempts to connect to s:1", "the count is of both")
}

func TestAListenerSaysWhoRefusedItsPeers(t *testing.T) {
	look := func(rejected, noPlace, accepted uint64, taken int) *seen {
		l := dat.ListenerSnapshot{PointSnapshot: ep.PointSnapshot{Name: "L", Rejected: rejected, Accepted: accepted}, Conns: 8, Taken: taken, NoPlace: noPlace}
		return &seen{Snapshot: dat.Snapshot{At: time.Now(), Listeners: []dat.ListenerSnapshot{l}}}
	}
	for text, now := range map[string]*seen{
		"7 peers were refused within the last minute: all 8 places for connections (ConnConfig.Conns) were taken; see why":                                                   look(8, 8, 9, 8),
		"7 peers were refused within the last minute: all 8 places (ConnConfig.Conns) were taken; 1\u202f520 more were accepted meanwhile, so peers connect again and again": look(8, 8, 1529, 8),
		"7 peers were refused within the last minute: this program rejected them, or Accept told it what was lacking":                                                        look(8, 1, 9, 6),
	} {
		list := troubles(now, look(1, 1, 9, 8))
		require.Len(t, list, 1)
		assert.Contains(t, list[0].Text, text)
	}
}
