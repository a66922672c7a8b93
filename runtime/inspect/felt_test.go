package inspect

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

func TestAFirstLookIsNoAllClear(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		for range 2 {
			body := r.get("").Body.String()
			assert.Contains(t, body, "This is a first look")
			assert.Contains(t, body, "<title>first look")
			assert.NotContains(t, body, "Nothing is wrong")
			time.Sleep(leastAge)
			body = r.get("").Body.String()
			assert.Contains(t, body, "Nothing is wrong")
			assert.NotContains(t, body, "first look")
			time.Sleep(unseen + time.Second) // nobody looks, and nothing is known of that time
		}
		var said struct{ FirstLook string }
		r.askFor("?format=json", &said)
		assert.Equal(t, firstLook, said.FirstLook)
	})
}

func TestWhatWasTurnedAwayIsToldForAMinuteThoughNothingGrows(t *testing.T) {
	at := time.Now()
	look := func(after time.Duration, rejected, refused uint64) *seen {
		l := dat.ListenerSnapshot{PointSnapshot: ep.PointSnapshot{Name: "L", Rejected: rejected}}
		d := evd.DispatcherSnapshot{Name: "D", QLen: 8, Refused: refused}
		return &seen{Snapshot: dat.Snapshot{At: at.Add(after), Listeners: []dat.ListenerSnapshot{l}, Dispatchers: []evd.DispatcherSnapshot{d}}}
	}
	last := look(0, 1, 1)
	troubles(last, last)
	for after := time.Second; after <= 59*time.Second; after += time.Second {
		now := look(after, 1+min(2, uint64(after/time.Second)), 3)
		list := troubles(now, last)
		require.Len(t, list, 2, "after %v", after)
		assert.Contains(t, list[0].Text, fmt.Sprint(min(2, uint64(after/time.Second)))+" peer")
		assert.Contains(t, list[1].Text, "2 posts were refused lately")
		last = now
	}
	now := look(62*time.Second, 3, 3)
	assert.Empty(t, troubles(now, last))
	assert.Empty(t, now.recent, "what is over is forgotten")
}

func TestTheFirstLineIsWhatAUserFeels(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		s, err := rpc.Listen(r.t.Context(), r.ia, ":0", rpc.Config{})
		require.NoError(t, err)
		c, err := rpc.Dial(r.t.Context(), r.ia, s.Addr(), rpc.Config{})
		require.NoError(t, err)
		raw, err := r.ln.Dial(r.ln.Addr(), nil) // which nobody accepts: a cause
		require.NoError(t, err)
		r.get("")
		for range 4 {
			ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
			_, err := c.Call(ctx, rpc.Call{Method: 1}, nil)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			synctest.Wait()
		}
		list := r.ask("?format=json").Troubles
		require.GreaterOrEqual(t, len(list), 2)
		assert.Equal(t, "rpc clients", list[0].Kind)
		assert.Contains(t, list[0].Text, "4 calls missed the deadline")
		assert.Contains(t, r.kinds(), "no consumer")
		require.NoError(t, raw.Close())
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
	})
}
