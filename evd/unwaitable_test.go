package evd

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

func TestAnUnwaitableDispatcherIsDequeuedOnly(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	d := withCNO(t, c)
	require.NoError(t, d.SetUnwaitable())
	require.NoError(t, d.SetUnwaitable(), "again it has no effect")
	p, err := d.Query()
	require.NoError(t, err)
	assert.Equal(t, StateEnabled|StateUnwaitable|ConfigThreshold, p.State)
	put(t, d.inner.Main(), 1, 2, 3)
	for _, threshold := range []int{1, 2, 4} {
		_, _, err = d.Wait(background, threshold)
		isError(t, err, hw.InvalidState, hw.StateEVDUnwaitable, threshold)
	}
	_, _, err = d.Wait(background, 9)
	isError(t, err, hw.InvalidParameter, hw.Arg3)
	for range d.Events(background) {
		t.Error("an iterator waits")
	}
	assert.Same(t, d, triggered(t, c), "the CNO goes on")
	buf := make([]event.Event, 1)
	n, err := d.Dequeue(buf)
	require.NoError(t, err)
	assert.Equal(t, list(1), cookies(buf[:n]))

	require.NoError(t, d.ClearUnwaitable())
	require.NoError(t, d.ClearUnwaitable())
	ev, nmore, err := d.Wait(background, 1)
	require.NoError(t, err)
	assert.EqualValues(t, 2, ev.Cookie, "events are kept")
	assert.Equal(t, 1, nmore)
}

func TestSetUnwaitableWakesTheWaiter(t *testing.T) {
	for name, c := range map[string]*CNO{"without a CNO": nil, "with a CNO": newCNO(t, CNOConfig{})} {
		synctest.Test(t, func(t *testing.T) {
			d := newDispatcher(t, Config{})
			if c != nil {
				var err error
				c, err = NewCNO(CNOConfig{})
				require.NoError(t, err)
				require.NoError(t, d.ModifyCNO(c))
			}
			var err error
			waited, ended := false, false
			go func() {
				_, _, err = d.Wait(context.Background(), 2)
				waited = true
			}()
			synctest.Wait()
			go func() { // waits for its turn
				for range d.Events(context.Background()) {
					t.Error("an event")
				}
				ended = true
			}()
			put(t, d.inner.Main(), 1)
			synctest.Wait()
			assert.False(t, waited)
			require.NoError(t, d.SetUnwaitable())
			synctest.Wait()
			assert.True(t, waited, name)
			isError(t, err, hw.InvalidState, hw.StateEVDUnwaitable, name)
			assert.True(t, ended, name)
			assert.Equal(t, list(1), drain(t, d), "nothing was taken")
			require.NoError(t, d.Close())
		})
	}
}
