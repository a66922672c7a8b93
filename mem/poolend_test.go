package mem

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/yield"
)

// onEachEnd runs a test for each thing that may end a pool.
func onEachEnd(t *testing.T, cfg BufferPoolConfig, test func(t *testing.T, p *BufferPool, end func())) {
	for name, end := range map[string]func(p *BufferPool){
		"its own":       func(p *BufferPool) { _ = p.Close() },
		"its adapter's": func(p *BufferPool) { _ = p.lmr.pz.domain.Close() },
		"both": func(p *BufferPool) {
			_ = p.Close()
			_ = p.lmr.pz.domain.Close()
		},
	} {
		for _, debug := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s Debug=%v", name, debug), func(t *testing.T) {
				cfg.Debug = debug
				p := newTestPool(t, cfg)
				test(t, p, func() { end(p) })
				require.NoError(t, p.lmr.pz.domain.Close())
				assert.Zero(t, p.lmr.pz.domain.Stats().Mapped, "the last buffer frees the memory")
			})
		}
	}
}

func mapped(p *BufferPool) int { return p.lmr.pz.domain.Stats().Mapped }

func TestAClosedPoolHasNoBuffers(t *testing.T) {
	onEachEnd(t, BufferPoolConfig{Count: 1, Size: 8}, func(t *testing.T, p *BufferPool, end func()) {
		end()
		assert.Nil(t, p.Get())
		assert.Nil(t, p.get(true))
		assert.Zero(t, mapped(p), "nobody has one")
		end()
	})
}

func TestABufferIsItsHoldersUntilItIsPutWhateverEnds(t *testing.T) {
	onEachEnd(t, BufferPoolConfig{Count: 3, Size: 4096}, func(t *testing.T, p *BufferPool, end func()) {
		a, b := p.Get(), p.Get()
		copy(a.Resize(4096), "before")
		slice := a.Bytes()
		end()
		withoutFaults(t, func() {
			assert.Equal(t, "before", string(a.Resize(6)))
			n, err := a.Write([]byte(" and after"))
			require.NoError(t, err)
			assert.Equal(t, 10, n)
			slice[4095] = 1
			a.Lend()
			a.Return(16)
			assert.Equal(t, "before and after", string(a.Bytes()))
			a.Put()
			assert.NotZero(t, mapped(p), "b is with its holder")
			b.Resize(4096)[4095] = 1
			b.Put()
		})
		assert.Zero(t, mapped(p))
		withoutFaults(t, func() {
			for _, gone := range []*Buffer{a, b} {
				gone.Put()
				if p.watch == nil {
					gone.Lend()
				}
				gone.Return(1)
				assert.Nil(t, gone.Bytes())
				assert.Empty(t, gone.Resize(0))
				n, err := gone.Write([]byte("late"))
				requireCode(t, err, hw.InvalidHandle, hw.HandleLMR)
				assert.Zero(t, n)
			}
		})
		assert.Panics(t, func() { a.Resize(1) })
	})
}

func TestABufferThatItsHolderLentIsStillTheHolders(t *testing.T) {
	onEachEnd(t, BufferPoolConfig{Count: 1, Size: 4096}, func(t *testing.T, p *BufferPool, end func()) {
		b := p.Get()
		slice := b.Resize(4096)
		b.Lend()
		end()
		withoutFaults(t, func() {
			slice[0] = 1
			b.Return(1)
			assert.Equal(t, []byte{1}, b.Bytes())
			b.Put()
		})
	})
}

// The operations of a connection have ended when its pool does.
func TestABufferThatAnOperationHadIsNobodysBehindTheEnd(t *testing.T) {
	onEachEnd(t, BufferPoolConfig{Count: 2, Size: 8}, func(t *testing.T, p *BufferPool, end func()) {
		p.setApart(1)
		var tags [2]uint64
		require.Equal(t, 2, Own{p}.LendAll(0, tags[:]))
		end()
		assert.Zero(t, mapped(p))
		for _, tag := range tags {
			b := p.At(int(uint32(tag)))
			assert.False(t, Own{}.TakeBack(b, tag, 8), "a message that comes late is not the program's")
			assert.False(t, Own{}.PutBack(b, tag))
			assert.False(t, p.watch == nil && b.Bytes() != nil)
		}
	})
}

// Whatever a call is about to do with a buffer when the pool ends, the memory is freed once,
// and not before the last buffer is back.
func TestTheLastBufferFreesTheMemoryBesideTheEnd(t *testing.T) {
	calls := map[string]func(p *BufferPool, b *Buffer, tag uint64){
		"put": func(_ *BufferPool, b *Buffer, _ uint64) { b.Put() },
		"get and put": func(p *BufferPool, b *Buffer, _ uint64) {
			b.Put()
			if b = p.get(false); b != nil {
				b.Resize(8)[0] = 1
				b.Put()
			}
		},
		"get apart and put": func(p *BufferPool, b *Buffer, _ uint64) {
			b.Put()
			if b = p.Get(); b != nil {
				b.Resize(8)[0] = 1
				b.Put()
			}
		},
		"lend and free": func(p *BufferPool, b *Buffer, _ uint64) {
			b.Put()
			var tags [2]uint64
			for _, tag := range tags[:(Own{p}).LendAll(0, tags[:])] {
				(Own{}).PutBack(p.At(int(uint32(tag))), tag)
			}
		},
		"take the message": func(p *BufferPool, b *Buffer, tag uint64) {
			b.Put()
			if b = p.At(int(uint32(tag))); (Own{}).TakeBack(b, tag, 8) {
				b.Bytes()[0] = 1
				b.Put()
			}
		},
		"wait while one is free": func(p *BufferPool, b *Buffer, _ uint64) {
			b.Put()
			if b, err := p.waited("", <-p.queueUp(false)); err == nil {
				b.Put()
			}
		},
		"wait": func(p *BufferPool, b *Buffer, _ uint64) {
			w := p.queueUp(false)
			b.Put()
			if b, err := p.waited("", <-w); err == nil {
				b.Resize(8)[0] = 1
				b.Put()
			}
		},
	}
	for name, call := range calls {
		both := func(t *testing.T, endsFirst bool) {
			yield.Interleave(func() (first, second, check func()) {
				p := newTestPool(t, BufferPoolConfig{Count: 3, Size: 8})
				p.setApart(1)
				var tags [1]uint64
				require.Equal(t, 1, Own{p}.LendAll(0, tags[:]))
				b := p.get(false)
				first = func() { withoutFaults(t, func() { call(p, b, tags[0]) }) }
				second = func() { assert.NoError(t, p.Close()) }
				if endsFirst {
					first, second = second, first
				}
				return first, second, func() {
					assert.Zero(t, mapped(p))
					assert.EqualValues(t, 3, p.back.Load())
				}
			})
		}
		t.Run(name+" beside the end", func(t *testing.T) { both(t, false) })
		t.Run("the end beside "+name, func(t *testing.T) { both(t, true) })
	}
}

// A connection sets buffers apart when it is being made, and its adapter may close meanwhile.
func TestBuffersThatAreSetApartBesideTheEndAreCounted(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		p := newTestPool(t, BufferPoolConfig{Count: 3, Size: 8})
		return func() { p.setApart(2) }, func() { assert.NoError(t, p.Close()) }, func() { assert.Zero(t, mapped(p)) }
	})
}

func TestAPoolCountsWhatTheProgramHasAndTellsOfWhatComesBack(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 5, Size: 8})
	p.setApart(2)
	var tags [1]uint64
	require.Equal(t, 1, Own{p}.LendAll(0, tags[:]), "an operation has it")
	own, lent, apart, sent := p.get(false), p.get(false), p.Get(), p.Get()
	lent.Lend()
	tag, ok := Own{}.Lend(sent)
	require.True(t, ok)
	returns := Own{p}.Returns()
	assert.Equal(t, returns, Own{p}.Returns(), "one for all")
	have := p.Snapshot()
	assert.Equal(t, [2]int{3, 1}, [2]int{have.Held, have.Sending})
	for n, b := range []*Buffer{apart, own, lent} {
		require.Empty(t, returns)
		if b == lent {
			b.Return(0)
		}
		b.Put()
		<-returns
		have = p.Snapshot()
		assert.Equal(t, [2]int{2 - n, 1}, [2]int{have.Held, have.Sending})
	}
	require.True(t, Own{}.PutBack(sent, tag))
	<-returns
	have = p.Snapshot()
	assert.Equal(t, [2]int{}, [2]int{have.Held, have.Sending})
	p.Get().Put()
	p.Get().Put()
	assert.Len(t, returns, 1, "nobody has taken the last one")
	require.NoError(t, p.Close())
}
