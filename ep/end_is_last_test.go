package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// breaker is a queue pair that calls the test when it is broken: the state has changed
// already, and posts that passed their check before may still take tickets.
type breaker struct {
	hw.QP
	meddle func()
}

func (b *breaker) Break(orderly bool) {
	b.meddle()
	b.QP.Break(orderly)
}

func TestTheFlushOfALatePostComesBeforeAnEndThatIsLast(t *testing.T) {
	for _, last := range []bool{true, false} {
		r := newRig(t)
		all := r.dispatcher(evd.ModeQueue, 256)
		a := r.endpointOf(Config{PZ: r.pz, Recv: all, Request: all, Conn: all, EndIsLast: last})
		b := r.endpoint(nil)
		require.NoError(t, a.Connect(ConnectConfig{Qual: r.psp.Qual()}))
		require.NoError(t, RequestOf(r.next(r.cr)).Accept(b, nil))
		require.Equal(t, event.Established, r.next(all).Number)
		var late *slow
		a.box.SetQP(&breaker{a.box.QP(), func() {
			ticket, ok, mine := a.box.Inside().Claim(&a.box.Requests)
			require.True(t, ok)
			require.False(t, mine)
			late = &slow{a, &a.box.Requests, ticket}
		}})
		require.NoError(t, a.Disconnect(Abrupt))
		if last {
			r.none(all)
			late.end(r)
			assert.Equal(t, uint64(2), r.next(all).Cookie)
		}
		assert.Equal(t, event.Disconnected, r.next(all).Number)
		if !last {
			late.end(r)
			assert.Equal(t, uint64(2), r.next(all).Cookie, "as DAT says")
		}
		r.finish(a, all)
	}
}

func TestNobodyPostsBehindAnEndThatIsLastUntilReset(t *testing.T) {
	r := newRig(t)
	all := r.dispatcher(evd.ModeQueue, 256)
	a := r.endpointOf(Config{PZ: r.pz, Recv: all, Request: all, Conn: all, EndIsLast: true})
	for range 2 {
		b := r.endpoint(nil)
		require.NoError(t, a.PostRecv(1, 0, r.lmr.Segment(0, 8)))
		require.NoError(t, a.Connect(ConnectConfig{Qual: r.psp.Qual()}))
		require.NoError(t, RequestOf(r.next(r.cr)).Accept(b, nil))
		require.Equal(t, event.Established, r.next(all).Number)
		require.NoError(t, a.PostRDMAWrite(2, 0, r.lmr.Remote(0, 8), r.lmr.Segment(0, 8)))
		require.Equal(t, uint64(2), r.next(all).Cookie)
		require.NoError(t, a.Disconnect(Abrupt))
		require.Equal(t, hw.StatusFlushed, r.next(all).Status)
		require.Equal(t, event.Disconnected, r.next(all).Number)
		for _, q := range []*line.Queue{&a.box.Requests, &a.box.Recvs} { // by a post that passed its check before
			_, ok, mine := a.box.Inside().Claim(q)
			assert.False(t, ok)
			assert.False(t, mine)
		}
		requireDisconnected(t, a.box.Inside().NoTicket())
		requireDisconnected(t, a.PostSend(3, 0))
		requireDisconnected(t, a.PostRecv(3, 0, r.lmr.Segment(0, 8)))
		_, err := a.PostBatch([]DTO{{Op: hw.OpWrite, Cookie: 3}, {Op: hw.OpWrite, Cookie: 4}})
		requireDisconnected(t, err)
		r.none(all)
		require.NoError(t, a.Reset())
	}
	r.finish(a, all)
}

func requireDisconnected(t *testing.T, err error) {
	t.Helper()
	var code *hw.Error
	require.ErrorAs(t, err, &code)
	require.Equal(t, [2]any{hw.InvalidState, hw.StateEPDisconnected}, [2]any{code.Type, code.Sub}, "%v", err)
}
