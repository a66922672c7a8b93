package delivery

import (
	"testing"
	"testing/synctest"
	"time"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func asyncNode(cookie uint64) *AsyncNode {
	return &AsyncNode{Event: event.Event{Number: event.AsyncEPBroken, Cookie: cookie, Data: event.ReasonOther}}
}

func TestAsyncErrorsAreLatched(t *testing.T) {
	d := newDispatcher(t, Config{})
	a, b := asyncNode(1), asyncNode(2)
	d.PutAsync(a)
	d.PutAsync(b)
	d.PutAsync(a)
	assert.Equal(t, list(1, 2), drain(t, d))
	assert.Empty(t, drain(t, d))
	d.PutAsync(a)
	assert.Equal(t, list(1), drain(t, d), "again after it was delivered")
}

func TestAsyncErrorsNeedNoPlace(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 1})
	put(t, d.Main(), 1)
	for c := range uint64(100) {
		d.PutAsync(asyncNode(100 + c))
	}
	require.False(t, d.Main().Reserve(1))
	got := drain(t, d)
	require.Len(t, got, 101)
	assert.EqualValues(t, 100, got[0])
	assert.EqualValues(t, 1, got[100])
}

func TestAsyncErrorWakesAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		var nmore int
		woken := false
		go func() {
			_, nmore, _ = waitOne(d, t.Context(), 2)
			woken = true
		}()
		synctest.Wait()
		d.PutAsync(asyncNode(1))
		synctest.Wait()
		assert.False(t, woken, "one is too few")
		put(t, d.Main(), 2)
		synctest.Wait()
		assert.True(t, woken)
		assert.Equal(t, 1, nmore)
	})
}

func TestAsyncErrorsFindAFullChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{QLen: 4, Way: Channel})
		putSilent(t, d.Main(), 1000)
		require.True(t, d.Main().Reserve(3+ofMany.slack())) // no event uses these
		const n = 5 * asyncRoom
		for c := range uint64(n) {
			d.PutAsync(asyncNode(c))
		}
		assert.Len(t, d.C(), 1+asyncRoom)
		assert.Equal(t, uint64(1000), (<-d.C()).Cookie, "what was held goes first")
		// The other errors follow as the channel gets room, though no producer
		// comes by.
		var got []uint64
		for range n {
			time.Sleep(2 * pumpInterval)
			got = append(got, received(d.C())...)
		}
		for i, c := range got {
			require.EqualValues(t, i, c)
		}
		assert.Len(t, got, n)
		time.Sleep(2 * pumpInterval)
		p := &d.main.channel.pump
		p.mu.Lock()
		assert.False(t, p.running, "the goroutine has ended")
		p.mu.Unlock()
		d.Main().Release(3 + ofMany.slack())
	})
}

func TestCloseEndsTheWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{QLen: 1, Way: Channel})
		require.True(t, d.Main().Reserve(1+ofMany.slack()))
		for c := range uint64(asyncRoom + 1) {
			d.PutAsync(asyncNode(c))
		}
		require.NoError(t, d.Close())
		assert.Len(t, received(d.C()), asyncRoom)
		assert.False(t, closed(d.C()))
		d.Main().Release(1 + ofMany.slack())
		assert.True(t, closed(d.C()))
	})
}
