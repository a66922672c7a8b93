package mem

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/yield"
)

// allApart takes the buffers that are set apart.
func allApart(p *BufferPool) (all []*Buffer) {
	for b := p.Get(); b != nil; b = p.Get() {
		all = append(all, b)
	}
	return all
}

func TestBuffersThatAreSetApartComeBackThere(t *testing.T) {
	const count, apart = 5, 2
	p := newTestPool(t, BufferPoolConfig{Count: count, Size: 8, Debug: true})
	p.setApart(apart)
	for range 3 {
		all := allApart(p)
		require.Len(t, all, apart)
		var others []*Buffer
		for b := p.get(false); b != nil; b = p.get(false) {
			others = append(others, b)
		}
		assert.Len(t, others, count-apart)
		for _, b := range others {
			b.Put()
		}
		assert.Nil(t, p.Get(), "the others do not make it up")
		assert.Empty(t, all[0].Bytes())
		all[0].Put()
		tag, ok := Own{}.Lend(all[1])
		require.True(t, ok)
		require.True(t, Own{}.PutBack(all[1], tag))
	}
	require.NoError(t, p.Close())
	assert.Nil(t, p.Get())
	assert.Nil(t, (*BufferPool)(nil).Get())
}

// Operations may need all buffers. What they took is made up for when they give back any
// buffer.
func TestOperationsGetTheBuffersThatAreSetApartWhenNoOtherIsFree(t *testing.T) {
	const count, apart = 6, 3
	p := newTestPool(t, BufferPoolConfig{Count: count, Size: 8})
	p.setApart(apart)
	one := p.Get()
	var tags [count]uint64
	require.Equal(t, count-1, Own{p}.LendAll(0, tags[:]))
	assert.Nil(t, p.Get())
	give := func(tags ...uint64) {
		for _, tag := range tags {
			b := p.At(int(uint32(tag)))
			require.True(t, Own{}.PutBack(b, tag))
		}
	}
	give(tags[0])
	two := p.Get()
	require.NotNil(t, two)
	assert.Nil(t, p.Get())
	give(tags[1:5]...)
	three := p.Get()
	require.NotNil(t, three)
	assert.Nil(t, p.Get(), "so many, and no more")
	for _, b := range []*Buffer{one, two, three} {
		b.Put()
	}
	assert.Len(t, allApart(p), apart)
	assert.Equal(t, count-apart, Own{p}.LendAll(0, tags[:]))
}

func TestAProgramAndOperationsShareAPool(t *testing.T) {
	const count, apart, rounds = 5, 2, 3000
	p := newTestPool(t, BufferPoolConfig{Count: count, Size: 8})
	p.setApart(apart)
	var (
		has atomic.Int32
		wg  sync.WaitGroup
	)
	for range 3 {
		wg.Go(func() {
			for range rounds {
				if b := p.Get(); b != nil {
					assert.LessOrEqual(t, has.Add(1), int32(apart))
					has.Add(-1)
					b.Put()
				}
			}
		})
		wg.Go(func() {
			var tags [count - 1]uint64
			for range rounds {
				for _, tag := range tags[:(Own{p}).LendAll(0, tags[:])] {
					b := p.At(int(uint32(tag)))
					assert.True(t, Own{}.PutBack(b, tag))
				}
			}
		})
	}
	wg.Wait()
	assert.Len(t, allApart(p), apart)
	var tags [count]uint64
	assert.Equal(t, count-apart, Own{p}.LendAll(0, tags[:]), "none is lost")
}

// A buffer that operations took of those set apart is made up for by the next one that
// they give back, also for a call that waits.
func TestACallWaitsForABufferInPlaceOfOneThatOperationsTook(t *testing.T) {
	const count = 3
	p := newTestPool(t, BufferPoolConfig{Count: count, Size: 8})
	p.setApart(1)
	var tags [count]uint64
	require.Equal(t, count, Own{p}.LendAll(0, tags[:]))
	got := make(chan *Buffer)
	go func() {
		b, _ := p.Wait(soon(t))
		got <- b
	}()
	waiting(t, &p.waiting, 1)
	b := p.At(int(uint32(tags[1])))
	require.True(t, Own{}.PutBack(b, tags[1]))
	require.Same(t, b, <-got)
	b.Put()
	assert.Len(t, allApart(p), 1)
}

// operationsHaveAll has a pool whose only buffer was set apart, and which an operation took.
func operationsHaveAll(t *testing.T) (p *BufferPool, give func()) {
	p = newTestPool(t, BufferPoolConfig{Count: 1, Size: 8})
	p.setApart(1)
	var tags [1]uint64
	require.Equal(t, 1, Own{p}.LendAll(0, tags[:]))
	return p, func() {
		b := p.At(0)
		require.True(t, Own{}.PutBack(b, tags[0]))
	}
}

// A call that begins to wait while operations give the buffer back gets it, at whatever moment.
func TestNoCallWaitsWhileABufferOfOperationsIsFree(t *testing.T) {
	for _, waitsFirst := range []bool{true, false} {
		yield.Interleave(func() (first, second, check func()) {
			p, give := operationsHaveAll(t)
			var w waiter
			first, second = func() { w = p.queueUp(true) }, give
			if !waitsFirst {
				first, second = second, first
			}
			return first, second, func() { require.Len(t, w, 1) }
		})
	}
}

// A call that looks for a buffer, and finds none, takes none from a call that waits.
func TestACallThatFindsNoBufferHidesNoneFromOneThatWaits(t *testing.T) {
	yield.InterleaveTwo(func() (first, second, third, check func()) {
		p, give := operationsHaveAll(t)
		var w waiter
		var b *Buffer
		first = func() { b = p.Get() }
		second = func() { w = p.queueUp(true) }
		return first, second, give, func() {
			if b != nil {
				b.Put()
			}
			require.Len(t, w, 1)
		}
	})
}
