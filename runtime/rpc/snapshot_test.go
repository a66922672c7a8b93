package rpc

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// reported are the rows of a kind in a snapshot of the adapter.
func reported[T any](t *testing.T, ia *dat.IA, kind string) (rows []T) {
	t.Helper()
	s, err := ia.Snapshot()
	require.NoError(t, err)
	for _, row := range s.Reports[kind] {
		rows = append(rows, row.(T))
	}
	return rows
}

func TestASnapshotSaysWhatAClientAndItsServerDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia, err := dat.Open(t.Context(), "loop")
		require.NoError(t, err)
		s, err := Listen(t.Context(), ia, ":0", Config{Calls: 5})
		require.NoError(t, err)
		c, err := Dial(t.Context(), ia, s.Addr(), Config{Calls: 3})
		require.NoError(t, err)
		make := func(method uint16) {
			go func() { _, _ = c.Call(t.Context(), Call{Method: method}, nil) }()
			synctest.Wait()
		}
		make(1)
		require.NoError(t, s.nextRequest().Reply(nil))
		make(2)
		require.NoError(t, s.nextRequest().Fail(CodeUnknown, "no"))
		make(3)
		held := s.nextRequest()
		synctest.Wait()
		first := c.Snapshot()
		assert.Equal(t, ClientSnapshot{
			Server: s.Addr(), Calls: 1, Of: 3, OldestMethod: 3, Flow: Flow{Credits: first.Credits}, Answered: Answered{Answers: 2, Failures: 1},
			Minute: Minute{Failures: []FailureCount{{Code: "CodeUnknown", Count: 1}}, Last: "no", Answers: 2},
		}, first)
		assert.Positive(t, first.Credits)
		assert.Empty(t, first.Trouble(time.Second))
		require.Equal(t, []ClientSnapshot{first}, reported[ClientSnapshot](t, ia, "rpc clients"))
		time.Sleep(time.Minute)
		make(4) // a younger one, in another slot
		make(5)
		now := c.Snapshot()
		assert.Equal(t, time.Minute, now.OldestAge)
		assert.EqualValues(t, 3, now.OldestMethod)
		assert.Equal(t, 3, now.Calls)
		assert.Equal(t, ServerSnapshot{
			Address: s.Addr(), Conns: 1, Requests: 3, Untaken: 2, Answered: Answered{Answers: 2, Failures: 1}, Minute: Minute{Answers: 2},
		}, s.Snapshot())
		served := reported[ServedSnapshot](t, ia, "rpc connections")
		require.Len(t, served, 1)
		assert.Equal(t, 3, served[0].Requests)
		assert.Equal(t, 2, served[0].Untaken)
		time.Sleep(time.Second)
		served = reported[ServedSnapshot](t, ia, "rpc connections")
		assert.EqualValues(t, 3, served[0].OldestMethod)
		assert.Equal(t, "this program took 1 request, of method 3, and has not answered it for 1 min 01 s", served[0].Trouble(time.Second))
		assert.Equal(t, "2 requests wait for a handler, the oldest for 1 s; its handlers are blocked, or too few: they have 1 request, and gave 2 answers lately", s.Snapshot().Trouble(time.Second))
		assert.Equal(t, time.Second, s.Snapshot().UntakenAge)
		second := s.nextRequest()
		synctest.Wait()
		assert.Equal(t, time.Second, s.Snapshot().UntakenAge, "the next one came when the first one did")
		require.NoError(t, held.Reply(nil))
		synctest.Wait()
		assert.Contains(t, []uint16{4, 5}, c.Snapshot().OldestMethod)
		assert.Equal(t, time.Second, c.Snapshot().OldestAge, "since the snapshot before")
		require.NoError(t, second.Reply(nil))
		require.NoError(t, s.nextRequest().Reply(nil))
		synctest.Wait()
		assert.Zero(t, s.Snapshot().UntakenAge)
		assert.Zero(t, c.Snapshot().OldestAge)

		drained := s.drain()
		make(5)
		assert.EqualValues(t, 1, s.Snapshot().Refused)
		<-drained
		require.NoError(t, s.Close())
		synctest.Wait()
		assert.Equal(t, "the connection has ended: "+errLeft.Error(), c.Snapshot().Down)
		require.NoError(t, c.Close())
		assert.Empty(t, reported[ClientSnapshot](t, ia, "rpc clients"))
		assert.Empty(t, reported[ServerSnapshot](t, ia, "rpc servers"))
		require.NoError(t, ia.Close())
	})
}

func TestASnapshotSaysInAFewWordsWhyThereIsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia, err := dat.Open(t.Context(), "loop")
		require.NoError(t, err)
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		address := s.Addr()
		c, err := Dial(t.Context(), ia, address, Config{Redial: time.Second})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		time.Sleep(time.Minute)
		synctest.Wait()
		now := c.Snapshot()
		assert.Equal(t, "nobody listens there", now.Down)
		assert.Greater(t, now.Attempts, 30)
		assert.Equal(t, fmt.Sprintf("no connection after %d failed attempts: nobody listens there", now.Attempts), now.Trouble(time.Second))
		s, err = Listen(t.Context(), ia, address, Config{})
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Empty(t, c.Snapshot().Down)
		assert.Empty(t, c.Snapshot().Trouble(time.Second))
		require.NoError(t, s.Close())
		synctest.Wait()
		assert.Less(t, c.Snapshot().Attempts, 3, "since the last connection")
		require.NoError(t, c.Close())
		require.NoError(t, ia.Close())
	})
}

func TestTroublesOfOneAndOfManyAreSentences(t *testing.T) {
	for text, row := range map[string]dat.Troubled{
		"no connection: the server has gone":                                                                                                                                      ClientSnapshot{Down: "the server has gone"},
		"no connection after 1 failed attempt: the server has gone":                                                                                                               ClientSnapshot{Down: "the server has gone", Attempts: 1},
		"1 call or cancel waits for the server, which has taken no message for 2 s: ":                                                                                             ClientSnapshot{Flow: Flow{Waiting: 1, WaitingAge: 2002 * time.Millisecond}},
		"2 calls wait for answers, the oldest, of method 7, for 1 min 05 s: ":                                                                                                     ClientSnapshot{Calls: 2, OldestMethod: 7, OldestAge: 65 * time.Second},
		"1 answer waits for the client, which has taken no message for 2 h 05 min: ":                                                                                              ServedSnapshot{Flow: Flow{Waiting: 1, WaitingAge: 125 * time.Minute}},
		"3 answers wait for the client, which has taken no message for 2 s: ":                                                                                                     ServedSnapshot{Flow: Flow{Waiting: 3, WaitingAge: 2 * time.Second}},
		"this program took 2 requests and has not answered them, the oldest, of method 7, for 2.5 s":                                                                              ServedSnapshot{Requests: 5, Untaken: 3, OldestMethod: 7, OldestAge: 2500 * time.Millisecond},
		"1 request waits: no handler has taken it for 2 s; its handlers are blocked, or too few":                                                                                  ServerSnapshot{Requests: 1, Untaken: 1, UntakenAge: 2 * time.Second},
		"10 requests wait for a handler, the oldest for 2 s, 8 of them of the client c; its handlers are blocked, or too few":                                                     ServerSnapshot{Conns: 2, Requests: 10, Untaken: 10, UntakenAge: 2 * time.Second, most: 8, client: "c"},
		"11 requests wait for a handler, the oldest for 2 s; its handlers are blocked, or too few":                                                                                ServerSnapshot{Conns: 2, Requests: 11, Untaken: 11, UntakenAge: 2 * time.Second, most: 8, client: "c"},
		"1 call, of method 9, has waited 40 s for its answer: its handler still runs, or the server's program takes no requests; lately 389 answers came; look at its page":       ClientSnapshot{Calls: 1, OldestMethod: 9, OldestAge: 40 * time.Second, Minute: Minute{Answers: 389}},
		"2 calls wait for answers, the oldest, of method 9, for 40 s: its handler still runs, or the server's program takes no requests; lately 0 answers came; look at its page": ClientSnapshot{Calls: 2, OldestMethod: 9, OldestAge: 40 * time.Second},
		"1 request waits: no handler has taken it for 2 s; its handlers are blocked, or too few: they have 4 requests, and gave 71 answers lately":                                ServerSnapshot{Requests: 5, Untaken: 1, UntakenAge: 2 * time.Second, Minute: Minute{Answers: 71}},
		"1 request waits: no handler has taken it for 2 s; its handlers are blocked, or too few: they have 1 request, and gave 0 answers lately":                                  ServerSnapshot{Requests: 2, Untaken: 1, UntakenAge: 2 * time.Second},
	} {
		assert.True(t, strings.HasPrefix(row.Trouble(time.Second), text), "%q and not %q", row.Trouble(time.Second), text)
	}
}

func TestAHandleOfThisPackageNamesItselfInALog(t *testing.T) {
	ia := open(t, "loop")
	s, err := Listen(t.Context(), ia, ":0", Config{})
	require.NoError(t, err)
	c := dial(t, ia, s, Config{})
	called(t.Context(), c, 1)
	r := s.nextRequest()
	assert.Contains(t, r.LogValue().String(), "method 0")
	require.NoError(t, r.Reply(nil))
	assert.Equal(t, "[address="+s.Addr()+"]", s.LogValue().String())
	assert.Equal(t, "[server="+s.Addr()+"]", c.LogValue().String())
	require.NoError(t, s.Close())
	assert.Equal(t, "[address="+s.Addr()+"]", s.LogValue().String())
	assert.Equal(t, "Server("+s.Addr()+")", s.String())
	assert.Equal(t, "Client("+s.Addr()+")", c.String())
	s, c = nil, nil
	assert.Equal(t, "Server(nil)", s.LogValue().String())
	assert.Equal(t, "Client(nil)", c.LogValue().String())
}
