package rpc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// A client that has the answer makes its next call at once. So the answer's place is free before
// the answer goes out: the last place of a server is not refused to the client that had it.
func TestARequestGivesItsPlaceBackBeforeItsClientHears(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		cfg := Config{Conns: 1, Calls: 1}
		s, err := Listen(t.Context(), ia, ":0", cfg)
		require.NoError(t, err)
		c := dial(t, ia, s, cfg)
		answered := called(within(t), c, 1)
		r := s.nextRequest()
		link := &r.from.link
		link.mu.Lock() // nothing is sent
		replied := make(chan error, 1)
		go func() { replied <- r.Reply(nil) }()
		assert.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.taken == 0
		}, time.Minute, time.Millisecond)
		assert.Empty(t, answered)
		link.mu.Unlock()
		require.NoError(t, <-replied)
		require.NoError(t, <-answered)
		require.NoError(t, s.Shutdown(within(t)))
	})
}
