package rpc

import (
	"errors"
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
			Minute:     Minute{Failures: []FailureCount{{Code: "CodeUnknown", Count: 1}}, last: "no", Answers: 2},
			Connection: s.Addr() + " (dial 1)", ownCalls: 3, serverCalls: 5,
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
		of := s.Snapshot()
		assert.Regexp(t, `^loop:\d+ \(connection \d+\)$`, of.OldestClient)
		assert.Equal(t, ServerSnapshot{
			Address: s.Addr(), Conns: 1, Requests: 3, Untaken: 2, Answered: Answered{Answers: 2, Failures: 1}, Minute: Minute{Answers: 2, over: time.Minute},
			OldestAge: time.Minute, OldestMethod: 3, OldestClient: of.OldestClient, QuietAge: time.Minute, fed: true, places: defaultConns,
		}, of)
		served := reported[servedRow](t, ia, "rpc connections")
		require.Len(t, served, 1)
		assert.Equal(t, 3, served[0].Requests)
		assert.Equal(t, 2, served[0].Untaken)
		time.Sleep(time.Second)
		served = reported[servedRow](t, ia, "rpc connections")
		assert.EqualValues(t, 3, served[0].OldestMethod)
		assert.Equal(t, 61*time.Second, served[0].OldestAge)
		assert.Empty(t, served[0].Trouble(time.Second), "the server says so")
		assert.Equal(t, "the only handler is blocked: none has answered for 1 min 01 s, and the oldest request, of method 3, has been with one for 1 min 01 s; 2 requests wait for a handler, the oldest for 1 s; "+whatHolds, s.Snapshot().Trouble(time.Second))
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

// What a Close waits for shows on the page only as long as its row does.
func TestACloseThatDoesNotReturnIsATrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia, s, c := pair(t)
		s.loans.all.Add(1)
		c.loans.all.Add(1)
		closed := make(chan error)
		go func() { closed <- c.Close() }()
		go func() { closed <- s.Close() }()
		synctest.Wait()
		said := func() (texts []string) {
			for _, row := range reported[ClientSnapshot](t, ia, "rpc clients") {
				texts = append(texts, row.Trouble(time.Second))
			}
			for _, row := range reported[ServerSnapshot](t, ia, "rpc servers") {
				texts = append(texts, row.Trouble(time.Second))
			}
			return texts
		}
		assert.Equal(t, []string{"", ""}, said())
		time.Sleep(3 * time.Second)
		text := "its Close has not returned for 3 s; /debug/pprof/goroutine?debug=1 shows what it waits for"
		assert.Equal(t, []string{text, text}, said())
		s.loans.all.Done()
		c.loans.all.Done()
		require.NoError(t, errors.Join(<-closed, <-closed))
		assert.Empty(t, said())
		require.NoError(t, ia.Close())
	})
}

// A table whose rows change places at each look can't be read.
func TestAServersConnectionsAreListedInTheirOrder(t *testing.T) {
	ia := open(t, "loop")
	s := serve(t, ia, Config{}, 1, echo)
	for range 8 {
		dial(t, ia, s, Config{})
	}
	require.Eventually(t, func() bool { return s.Snapshot().Conns == 8 }, time.Minute, time.Millisecond)
	var ids []int
	for _, row := range reported[servedRow](t, ia, "rpc connections") {
		var id int
		_, err := fmt.Sscanf(row.Client[strings.Index(row.Client, "(connection "):], "(connection %d)", &id)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	assert.Len(t, ids, 8)
	assert.IsIncreasing(t, ids)
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
