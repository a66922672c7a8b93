package lane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/mode"
)

// The pool library runs two goroutines of its own from the start.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// carry posts n messages from another goroutine, never more than depth at a time, and
// takes them.
func carry(t *testing.T, l Lane, n, depth int) {
	t.Helper()
	room := make(chan struct{}, depth)
	posted := make(chan struct{})
	go func() {
		defer close(posted)
		for i := range n {
			room <- struct{}{}
			assert.NoError(t, l.Post(i%l.Slots()))
		}
	}()
	var taken int
	require.NoError(t, l.Take(func(slot int) bool {
		assert.Equal(t, taken%l.Slots(), slot)
		taken++
		<-room
		return taken < n
	}))
	assert.Equal(t, n, taken)
	<-posted
}

func TestEveryModeCarriesAllMessagesInOrder(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		for _, m := range mode.All() {
			t.Run(provider+"/"+m.Name, func(t *testing.T) {
				l, err := NewEndpoints(Config{Provider: provider, Mode: m, Size: 64, Depth: 4})
				require.NoError(t, err)
				carry(t, l, 96, 4)
				carry(t, l, 8, 4) // from slot 0 again
				require.NoError(t, l.Close())
			})
		}
	}
}

func TestEveryAnchorCarriesAllMessagesInOrder(t *testing.T) {
	for _, a := range Anchors() {
		t.Run(a.Name, func(t *testing.T) {
			l, err := a.Open(64, 4)
			require.NoError(t, err)
			carry(t, l, 96, 4)
			carry(t, l, 8, 4)
			require.NoError(t, l.Close())
		})
	}
}

func TestAProviderThatIsNotThereIsAnError(t *testing.T) {
	_, err := NewEndpoints(Config{Provider: "nothing", Mode: mode.Poll, Size: 64, Depth: 4})
	assert.Error(t, err)
}

func TestAConnectionIsFullWhenItsBuffersAre(t *testing.T) {
	l, err := NewTCP(64, 16)
	require.NoError(t, err)
	assert.False(t, l.PostBlocks(16))
	assert.True(t, l.PostBlocks(1<<20))
	require.NoError(t, l.Close())
}
