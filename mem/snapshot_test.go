package mem

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/yield"
)

func TestASnapshotSaysWhoHasEachBufferOfAPool(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 6, Size: 8, Debug: true})
	p.setApart(3)
	var tags [2]uint64
	require.Equal(t, 2, Own{p}.LendAll(0, tags[:]))
	held, sent := p.get(false), p.Get()
	_, ok := Own{}.Lend(sent)
	require.True(t, ok)
	s := p.Snapshot()
	require.Len(t, s.Holders, 1)
	assert.Contains(t, s.Holders[0].Call, "TestASnapshotSaysWhoHasEachBufferOfAPool")
	assert.Equal(t, 1, s.Holders[0].Buffers)
	s.Holders = nil
	assert.Equal(t, PoolSnapshot{Name: p.String(), Buffers: 6, Size: 8, Free: 2, Held: 1, Sending: 1, Posted: 2}, s)
	d := p.lmr.pz.domain
	assert.Len(t, d.Pools(nil), 1)
	assert.Empty(t, d.Pools(map[*BufferPool]bool{p: true}))
	held.Put()
	require.NoError(t, p.Close())
	assert.Empty(t, d.Pools(nil))
}

func TestASnapshotSaysForHowLongABufferHasBeenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, BufferPoolConfig{Count: 3, Size: 8})
		age := func() time.Duration { return p.Snapshot().HeldAge }
		assert.Zero(t, age())
		first := p.Get()
		assert.Zero(t, age(), "no snapshot has seen it before")
		time.Sleep(time.Minute)
		assert.Equal(t, time.Minute, age())
		second := p.Get()
		time.Sleep(time.Minute)
		assert.Equal(t, 2*time.Minute, age(), "the oldest counts")
		first.Put()
		assert.Zero(t, age(), "of the second one, which the snapshot before did not see")
		first = p.Get()
		time.Sleep(time.Second)
		first.Put()
		first = p.Get() // the same buffer, in another turn
		assert.Equal(t, time.Second, age())
		second.Put()
		assert.Zero(t, age())
		first.Put()
		assert.Zero(t, age())
		require.NoError(t, p.Close())
	})
}

// A program that takes a buffer before it gives its last one back has one all the time.
func TestAProgramThatExchangesBuffersHasOneInUse(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 4, Size: 8})
	for name, give := range map[string]func(b *Buffer){
		"put":  (*Buffer).Put,
		"sent": func(b *Buffer) { tag, _ := Own{}.Lend(b); Own{}.PutBack(b, tag) },
	} {
		yield.Interleave(func() (first, second, check func()) {
			low, high := p.Get(), p.Get()
			if low.Index() > high.Index() {
				low, high = high, low
			}
			low.Put()
			inUse := 0
			return func() {
					held, sending := Own{p}.InUse()
					inUse = held + sending
				}, func() {
					require.Same(t, low, p.Get())
					give(high)
				}, func() {
					require.NotZero(t, inUse, name)
					low.Put()
					held, sending := Own{p}.InUse()
					require.Zero(t, held+sending)
				}
		})
	}
	require.NoError(t, p.Close())
}
