package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/lane"
)

// The pool library runs two goroutines of its own from the start.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// carry posts n messages from another goroutine, never more than depth at a time, and
// takes them.
func carry(t *testing.T, l lane.Lane, n, depth int) {
	t.Helper()
	room, posted := make(chan struct{}, depth), make(chan struct{})
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

func TestEveryLaneCarriesAllMessagesInOrder(t *testing.T) {
	for _, of := range lanes() {
		name := of.Name + ", one way"
		if of.RoundTrip {
			name = of.Name + ", there and back"
		}
		for _, size := range []int{1, 64, 100_000} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, size), func(t *testing.T) {
				l, err := of.Open(size, 4)
				require.NoError(t, err)
				carry(t, l, 32, 4)
				carry(t, l, 2*l.Slots(), 1)
				require.NoError(t, l.Close())
			})
		}
	}
}

func TestEveryLaneSaysWhatItDoes(t *testing.T) {
	names := map[string]int{}
	for _, l := range lanes() {
		assert.NotEmpty(t, l.Does, l.Name)
		names[l.Name]++
	}
	assert.LessOrEqual(t, names["gRPC stream"], 2, "a name is that of two lanes, one of each kind")
	assert.Contains(t, names, "gRPC call over godat's streams over iwarp")
	assert.Contains(t, names, "QUIC stream")
}

func TestAMessageOfAnotherSizeIsAnError(t *testing.T) {
	m := newMessage(64)
	slot, err := slotOf(m, 64)
	require.NoError(t, err)
	assert.Zero(t, slot)
	_, err = slotOf(m, 65)
	assert.ErrorContains(t, err, "65 bytes came with 64")
	_, err = slotOf(newMessage(1), 1)
	assert.NoError(t, err, "a message has room for its slot at least")
}
