package rpc

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/event"
	dat "godat/runtime"
)

// lately389 is a minute in which 389 answers came.
var lately389 = Minute{Answers: 389, over: 40 * time.Second}

func TestATroubleOfAClientSaysTheOneCauseThatItsCountsShow(t *testing.T) {
	for text, row := range map[string]ClientSnapshot{
		"no connection: the server has gone":                        {Down: "the server has gone"},
		"no connection after 1 failed attempt: the server has gone": {Down: "the server has gone", Attempts: 1},
		"the server speaks version 9 of it (no connection after 44 failed attempts); 3 calls missed the deadline of 10 s within the last minute; 2 callers wait for a connection, the first for 7 s": {
			Down: serverSpeaks + "version 9 of it", Attempts: 44, Callers: 2, CallersAge: 7 * time.Second, Minute: Minute{CallEnds: CallEnds{Late: 3}, deadline: 10 * time.Second},
		},
		"1 call or cancel waits for the server, which has taken no message for 2 s: ": {Flow: Flow{Waiting: 1, WaitingAge: 2002 * time.Millisecond}},
		"no answer comes from the server: 2 calls wait for answers, the oldest, of method 7, for 1 min 05 s; its page says": {
			Calls: 2, OldestMethod: 7, OldestAge: 65 * time.Second,
		},
		"a handler of method 9 hangs at the server, or all of the server has stopped since: 1 call, of method 9, has waited 40 s for its answer, while 389 answers came within the last 40 s; look at the server's page": {
			Calls: 1, OldestMethod: 9, OldestAge: 40 * time.Second, Minute: lately389,
		},
		"the server works, but too slowly for so many calls: 60 calls wait for answers, the oldest, of method 5, for 6 s, while 389 answers came within the last 40 s, so that each takes about 6.17 s; look at the server's page": {
			Calls: 60, OldestMethod: 5, OldestAge: 6 * time.Second, Minute: lately389,
		},
		"this client's Config.Calls allows 2 calls at a time, and a call takes about 205 ms, so 9.7 a second are made: 46 callers wait for a place, the first for 7 s; raise Config.Calls": {
			Calls: 2, Of: 2, ownCalls: 2, serverCalls: 16, Callers: 46, CallersAge: 7 * time.Second, Minute: lately389,
		},
		"the server's Config.Calls allows 1 call at a time: 1 caller waits for a place, the first for 7 s; raise Config.Calls": {
			Of: 1, ownCalls: 2, serverCalls: 1, Callers: 1, CallersAge: 7 * time.Second,
		},
		"Config.Calls of both ends allows 2 calls at a time, and a call takes about 40 s, so 0.05 a second are made: 1 caller waits for a place, the first for 7 s; the server's page says why calls take so long": {
			Calls: 2, Of: 2, Callers: 1, CallersAge: 7 * time.Second, Minute: Minute{Answers: 2, over: 40 * time.Second},
		},
		"5 calls missed the deadline of 1 s within the last minute, while 389 answers came": {
			Minute: Minute{CallEnds: CallEnds{Late: 5}, deadline: time.Second, Answers: 389},
		},
		"no answer comes from the server: 1 call missed the deadline within the last minute; its page": {Minute: Minute{CallEnds: CallEnds{Late: 1}}},
		"1 call was refused within the last minute; the last time, 95 ms ago, the server said: \"busy\"": {
			Minute: Minute{Refused: 1, last: "busy", lastAge: 95 * time.Millisecond},
		},
	} {
		assert.True(t, strings.HasPrefix(row.Trouble(time.Second), text), "%q and not %q", row.Trouble(time.Second), text)
	}
}

func TestDialsThatAServerRefusesAreOneTroubleOfTheirProgram(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{Conns: 1})
		require.NoError(t, err)
		first := dial(t, ia, s, Config{})
		for range 3 {
			_, err = Dial(within(t), ia, s.Addr(), Config{})
			require.ErrorIs(t, err, &Error{Code: CodeFull})
		}
		of := reported[refusalRow](t, ia, "rpc refusals")
		require.Len(t, of, 1)
		assert.Equal(t, s.Addr(), of[0].Server)
		assert.EqualValues(t, 3, of[0].Refused)
		assert.Contains(t, of[0].Trouble(time.Second), "the server has no place for another connection (its Config.Conns, or its host has no more memory or queue pairs): it refused 3 attempts within the last minute")
		assert.Contains(t, s.Snapshot().Trouble(time.Second), "this server's Config.Conns allows 1 connection at a time: 3 further ones were refused within the last minute")
		address, explained := s.Snapshot().Connections()
		assert.Equal(t, s.Addr(), address)
		assert.True(t, explained)

		other := hello{calls: 1, receives: 4, message: 1}.encode()
		other[5], other[21] = 9, 9
		_, err = ia.Dial(within(t), s.Addr(), dat.ConnConfig{Private: other})
		require.ErrorIs(t, err, event.Error(event.PeerRejected))
		assert.Contains(t, s.Snapshot().Trouble(time.Second), "1 client was refused within the last minute: the last speaks version 9 of the protocol, and this server "+versions(oldest, newest)+": the client is the newer one; give both ends one release")
		require.NoError(t, errors.Join(first.Close(), s.Close()))
	})
}

func TestATroubleOfAServerSaysTheOneCauseThatItsCountsShow(t *testing.T) {
	minute := Minute{Answers: 400, over: 40 * time.Second}
	for text, row := range map[string]dat.Troubled{
		"1 answer waits for the client, which has taken no message for 2 h 05 min: ": servedRow{Flow: Flow{Waiting: 1, WaitingAge: 125 * time.Minute}},
		"3 answers wait for the client, which has taken no message for 2 s: ":        servedRow{Flow: Flow{Waiting: 3, WaitingAge: 2 * time.Second}},
		"this program takes no requests, since it neither runs Serve nor reads Requests: 1 request waits for a handler, for 2 s": ServerSnapshot{
			Requests: 1, Untaken: 1, UntakenAge: 2 * time.Second,
		},
		"this program takes no requests: 2 requests wait for a handler, the oldest for 2 s": ServerSnapshot{Requests: 2, Untaken: 2, UntakenAge: 2 * time.Second, fed: true},
		"this program takes no requests: 8 requests wait for a handler, the oldest for 2 s": ServerSnapshot{
			Requests: 8, Untaken: 8, UntakenAge: 2 * time.Second, Workers: 2, QuietAge: 2 * time.Second, Takes: 200 * time.Millisecond,
		},
		"the handlers are too few: all 2 handlers are busy, a request takes about 200 ms, and 10 a second are answered; 9 requests wait for a handler, the oldest for 2 s; ": ServerSnapshot{ // which have just answered
			Requests: 9, Untaken: 9, UntakenAge: 2 * time.Second, Workers: 2, QuietAge: 1, Takes: 200 * time.Millisecond, Minute: minute,
		},
		"all 2 handlers are blocked: none has answered for 8 s, and the oldest request, of method 9, has been with one for 9 s; 1 request waits for a handler, for 2 s; ": ServerSnapshot{
			Requests: 3, Untaken: 1, UntakenAge: 2 * time.Second, Workers: 2, OldestAge: 9 * time.Second, OldestMethod: 9, QuietAge: 8 * time.Second, Takes: time.Millisecond,
		},
		"the handlers are slow: method 2 takes about 3.6 s, so that all 4 handlers are busy, and 10 a second are answered; 8 requests wait for a handler, the oldest for 7 s; ": ServerSnapshot{
			Requests: 12, Untaken: 8, UntakenAge: 7 * time.Second, Workers: 4, OldestAge: 3 * time.Second, OldestMethod: 2, QuietAge: time.Second, Takes: 3600 * time.Millisecond, Minute: minute,
		},
		"one client, c, asks for more than the handlers can do: 8 of 10 requests that wait are its, the oldest for 2 s; all 2 handlers are busy, a request takes about 200 ms, and 10 a second are answered; ": ServerSnapshot{
			Conns: 2, Requests: 12, Untaken: 10, UntakenAge: 2 * time.Second, Workers: 2, QuietAge: 1, Takes: 200 * time.Millisecond, Minute: minute, most: 8, client: "c",
		},
		"the handlers are too few: the only handler is busy, a request takes about 200 ms, and 10 a second are answered; 11 requests wait for a handler, the oldest for 2 s; give Serve more workers": ServerSnapshot{
			Conns: 2, Requests: 12, Untaken: 11, UntakenAge: 2 * time.Second, Workers: 1, QuietAge: 1, Takes: 200 * time.Millisecond, Minute: minute, most: 8, client: "c",
		},
		"a handler of method 9 hangs: it has had a request of the client c (connection 2) for 40 s, while 400 answers were given within the last 40 s; ": ServerSnapshot{
			Requests: 1, OldestAge: 40 * time.Second, OldestMethod: 9, OldestClient: "c (connection 2)", QuietAge: 100 * time.Millisecond, Minute: minute,
		},
		"a handler of method 9 does not return: it has had a request of the client d for 40 s, and nothing was answered meanwhile; ": ServerSnapshot{ // all answers came before it
			Requests: 1, OldestAge: 40 * time.Second, OldestMethod: 9, OldestClient: "d", QuietAge: 39 * time.Second, Minute: minute,
		},
		"a handler of method 9 does not return: it has had a request of the client c for 40 s, and nothing was answered meanwhile; ": ServerSnapshot{
			Requests: 1, OldestAge: 40 * time.Second, OldestMethod: 9, OldestClient: "c",
		},
		"the handlers are slow: method 2 takes about 3 s; 2 have a request, the oldest for 2 s; ": ServerSnapshot{
			Requests: 2, OldestAge: 2 * time.Second, OldestMethod: 2, Takes: 3 * time.Second, Minute: minute,
		},
		"this server's Config.Conns allows 8 connections at a time: 920 further ones were refused within the last minute; 380 connections were made for 400 answers, so clients connect anew for each call: ": ServerSnapshot{
			places: 8, Minute: Minute{full: 920, connected: 380, Answers: 400},
		},
		"this server's Config.Conns allows 1 connection at a time: 1 further one was refused within the last minute; raise Config.Conns": ServerSnapshot{
			places: 1, Minute: Minute{full: 1, connected: 1, Answers: 400},
		},
		"2 clients were refused within the last minute: the last speaks Greek": ServerSnapshot{Minute: Minute{foreigners: 2, foreign: "Greek"}},
	} {
		assert.True(t, strings.HasPrefix(row.Trouble(time.Second), text), "%q and not %q", row.Trouble(time.Second), text)
	}
}

// Of a server that has answered for hours, at a first look.
func TestErrorsAreToldAtAFirstLookToo(t *testing.T) {
	m := Minute{Answers: 1_000_000, over: 100 * time.Minute, Failures: []FailureCount{{Code: "failed", Count: 9_000}}}
	assert.True(t, m.fails())
	m.Failures[0].Count = 3
	assert.False(t, m.fails())
}

// A page has a line of it for each row.
func TestOfManyTroublesTheFirstAndWhatFitsAreTold(t *testing.T) {
	assert.Empty(t, inALine(nil))
	assert.Equal(t, "a; b", inALine([]string{"a", "b"}))
	first := strings.Repeat("a", lineLength-3)
	assert.Equal(t, first+"; b; and 1 further trouble", inALine([]string{first, strings.Repeat("c", 4), "b"}))
	assert.Equal(t, first+first+"; and 2 further troubles", inALine([]string{first + first, "b", "c"}), "the first, whatever its length")
}
