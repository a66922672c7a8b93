package runtime

import (
	"sync"
	"sync/atomic"
	"testing"

	"godat/ep"
	"godat/hw"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sums are what an adapter has counted, by the objects that it has and those that it had.
type sums struct {
	received, receives, posted, events uint64
}

func (s *sums) take(t *testing.T, ia *IA) {
	now, err := ia.Snapshot()
	require.NoError(t, err)
	*s = sums{}
	queue := func(q *ep.QueueCounts) {
		s.posted += q.Posted
		for _, m := range q.Moved {
			if m.Kind == hw.OpRecv.String() {
				s.receives, s.received = s.receives+m.Operations, s.received+m.Octets
			}
		}
	}
	for i := range now.Conns {
		queue(&now.Conns[i].Endpoint.Requests.QueueCounts)
		queue(&now.Conns[i].Endpoint.Receives.QueueCounts)
	}
	queue(&now.Freed.Requests)
	queue(&now.Freed.Receives)
	for i := range now.Dispatchers {
		s.events += now.Dispatchers[i].Events
	}
	s.events += now.Freed.Dispatchers.Events
}

// watchSums takes snapshots until over is closed. No sum may ever be less than before.
func watchSums(t *testing.T, ia *IA, over *atomic.Bool) {
	var last, now sums
	for !over.Load() {
		now.take(t, ia)
		if now.received < last.received || now.receives < last.receives || now.posted < last.posted || now.events < last.events {
			t.Errorf("%+v after %+v", now, last)
			return
		}
		last = now
	}
}

func TestWhatAnAdapterCountedStaysWhenConnectionsClose(t *testing.T) {
	for provider, rounds := range map[string]int{"loop": 2000, "iwarp": 200} {
		t.Run(provider, func(t *testing.T) {
			if testing.Short() {
				rounds /= 10
			}
			ia := open(t, provider)
			cfg := ConnConfig{Depth: 2, Message: 64, Apart: true}
			l := listen(t, ia, cfg)
			var watched sync.WaitGroup
			var over atomic.Bool
			watched.Go(func() { watchSums(t, ia, &over) })
			for range rounds {
				client, server := join(t, ia, l, cfg)
				say(t, client, "0123456789")
				hear(t, server)
				require.NoError(t, client.Close())
				require.NoError(t, server.Close())
			}
			over.Store(true)
			watched.Wait()
			var all sums
			all.take(t, ia)
			assert.EqualValues(t, rounds, all.receives)
			assert.EqualValues(t, 10*rounds, all.received)
		})
	}
}
