package runtime

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// hooks notes the calls of a program's hooks.
type hooks struct {
	mu   sync.Mutex
	up   map[*Conn]int
	ends map[*Conn][]Event
}

func (h *hooks) config() ConnConfig {
	h.up, h.ends = make(map[*Conn]int), make(map[*Conn][]Event)
	return ConnConfig{
		Established: func(c *Conn) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.up[c]++
		},
		Ended: func(c *Conn, ev Event) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ends[c] = append(h.ends[c], ev)
		},
	}
}

// of returns how often a connection was up, and its ends.
func (h *hooks) of(c *Conn) (up int, ends []Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.up[c], h.ends[c]
}

func TestHooksHearOnceOfTheBeginningAndTheEndOfEachConnection(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, ia *IA, client, server *Conn){
		"the peer closes": func(t *testing.T, _ *IA, client, server *Conn) {
			require.NoError(t, client.Close())
			require.True(t, nextEvent(t, server.Events()).Ended())
			require.NoError(t, server.Close())
		},
		"the adapter closes": func(t *testing.T, ia *IA, _, _ *Conn) { require.NoError(t, ia.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			ia := open(t, "loop")
			var h hooks
			_, client, server := both(t, ia, h.config())
			for _, c := range []*Conn{client, server} {
				up, ends := h.of(c)
				assert.Equal(t, 1, up)
				assert.Empty(t, ends)
			}
			leave(t, ia, client, server)
			closed := 0 // the end that the adapter's close meets first
			for _, c := range []*Conn{client, server} {
				_, ends := h.of(c)
				require.Len(t, ends, 1, "before the program closes the connection itself")
				_ = c.Close()
				up, ends := h.of(c)
				assert.Equal(t, 1, up)
				require.Len(t, ends, 1)
				assert.Equal(t, c.Endpoint, ends[0].Source)
				if ends[0].Number == Closed {
					closed++
				} else {
					assert.True(t, ends[0].Ended())
				}
			}
			assert.Equal(t, name == "the adapter closes", closed > 0)
		})
	}
}

func TestAHookThatPanicsIsLoggedAndHarmsNothing(t *testing.T) {
	core, logs := observer.New(zap.ErrorLevel)
	ia := open(t, "loop", WithLogger(zap.New(core)))
	_, client, server := both(t, ia, ConnConfig{
		Established: func(*Conn) { panic("up") },
		Ended:       func(*Conn, Event) { panic("down") },
	})
	say(t, client, "a")
	assert.Equal(t, "a", hear(t, server))
	require.NoError(t, client.Close())
	require.True(t, nextEvent(t, server.Events()).Ended())
	require.Eventually(t, func() bool { return logs.FilterMessage("a hook panicked").Len() == 4 }, patience, time.Millisecond)
}
