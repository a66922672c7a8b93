package delivery

import (
	"testing"
	"testing/synctest"
	"time"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ask puts n requests, whose cookies begin at 1000.
func ask(d *Dispatcher, n int) {
	for c := range uint64(n) {
		d.PutRequest(&AsyncNode{Event: event.Event{Number: event.ConnectionRequest, Cookie: 1000 + c}})
	}
}

// Strangers cause requests. However many requests wait, posts get the places that
// the program asked for, and every event arrives, each kind in its order.
func TestRequestsTakeNoPlaceFromCompletions(t *testing.T) {
	const qlen, strangers = 4, 5 * asyncRoom
	for _, mode := range allModes {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := make(chan event.Event, 2*strangers)
				begin := make(chan struct{})
				d := newDispatcher(t, Config{Way: mode, QLen: qlen, Callback: func(evs []event.Event) {
					<-begin
					for _, ev := range evs {
						got <- ev
					}
				}})
				ask(d, strangers)
				synctest.Wait()
				require.True(t, d.Main().Reserve(qlen), "the requests took the room")
				for c := range uint64(qlen) {
					d.Main().Put(dto(c))
				}
				d.Main().Flush()
				close(begin)
				if mode != Callback {
					go func() {
						for ev := range d.Events(t.Context()) {
							got <- ev
						}
					}()
				}
				var completions, requests []uint64
				for range qlen + strangers {
					select {
					case ev := <-got:
						if ev.Number == event.ConnectionRequest {
							requests = append(requests, ev.Cookie)
						} else {
							completions = append(completions, ev.Cookie)
						}
					case <-time.After(time.Minute):
						t.Fatalf("%d requests and %d completions came", len(requests), len(completions))
					}
				}
				assert.Equal(t, list(0, 1, 2, 3), completions)
				require.Len(t, requests, strangers)
				for i, c := range requests {
					require.EqualValues(t, 1000+i, c)
				}
			})
		})
	}
}

func TestAFloodOfRequestsLeavesCompletionsTheirTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		buf, each int
		requests  int // how many of the events taken first are requests
	}{
		"one by one": {1, 4, 2},
		"in pairs":   {2, 2, 2},
		"in threes":  {3, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(t, Config{QLen: 8})
			ask(d, 50)
			put(t, d.Main(), 1, 2, 3, 4, 5, 6, 7, 8)
			requests := 0
			buf := make([]event.Event, tc.buf)
			for range tc.each {
				n, err := d.Dequeue(buf)
				require.NoError(t, err)
				require.Equal(t, tc.buf, n, "there is more")
				for _, ev := range buf {
					if ev.Number == event.ConnectionRequest {
						requests++
					}
				}
			}
			assert.Equal(t, tc.requests, requests)
			rest := make([]event.Event, 60) // half of it has no room for all requests
			n, err := d.Dequeue(rest)
			require.NoError(t, err)
			assert.Equal(t, 58-tc.buf*tc.each, n, "a Dequeue that does not fill the array has taken all")
		})
	}
}

// A channel can't tell which events were received. So it holds only a few requests
// at a time, and the others follow.
func TestAChannelHoldsFewRequestsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{QLen: 4, Way: Channel})
		put(t, d.Main(), 1)
		ask(d, 100)
		time.Sleep(3 * pumpInterval)
		assert.Len(t, d.C(), 1+asyncRoom)
		<-d.C()
		<-d.C()
		time.Sleep(3 * pumpInterval)
		assert.Len(t, d.C(), asyncRoom-1, "which ones were received is not known")
		assert.Len(t, received(d.C()), asyncRoom-1)
		time.Sleep(2 * pumpInterval)
		require.Len(t, d.C(), asyncRoom, "all were received if the channel is empty")
		put(t, d.Main(), 2)
		// When as many events were sent and received since, those before were
		// received as well.
		for range ofMany.inFlight + 2*asyncRoom {
			<-d.C()
			put(t, d.Main(), 3)
		}
		require.NotEmpty(t, d.C())
		time.Sleep(2 * pumpInterval)
		assert.Greater(t, len(d.C()), 1+asyncRoom)
	})
}
