package mem

import (
	"fmt"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/door"
)

// withoutFaults runs f, and fails the test if f touches unmapped memory, which
// otherwise ends the process.
func withoutFaults(t *testing.T, f func()) {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	assert.NotPanics(t, f)
}

func TestABufferPutAfterTheEndOfItsDomainTouchesNoMemory(t *testing.T) {
	for _, debug := range []bool{false, true} {
		t.Run(fmt.Sprintf("Debug=%v", debug), func(t *testing.T) {
			d := NewDomain(door.Key{}, newFakeDevice(), nil)
			pz, err := d.NewPZ()
			require.NoError(t, err)
			p, err := pz.NewBufferPool(BufferPoolConfig{Count: 2, Size: 4096, Debug: debug})
			require.NoError(t, err)
			b := p.Get()
			require.NoError(t, d.Close())
			withoutFaults(t, func() {
				b.Put()
				b.Put()
				assert.True(t, p.Get() == nil, "the memory is gone")
			})
		})
	}
}

func TestAClosedPoolHasNoBuffers(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 1, Size: 8})
	require.NoError(t, p.Close())
	assert.Nil(t, p.Get())
}

func TestAWriteAfterTheEndOfItsDomainTouchesNoMemory(t *testing.T) {
	d := NewDomain(door.Key{}, newFakeDevice(), nil)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	p, err := pz.NewBufferPool(BufferPoolConfig{Count: 1, Size: 4096})
	require.NoError(t, err)
	b := p.Get()
	require.NoError(t, d.Close())
	withoutFaults(t, func() {
		n, err := b.Write([]byte("late"))
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		assert.Zero(t, n)
	})
}

func TestAWatchLeavesMemoryAloneThatWasUnmappedMeanwhile(t *testing.T) {
	d := NewDomain(door.Key{}, newFakeDevice(), nil)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	p, err := pz.NewBufferPool(BufferPoolConfig{Count: 1, Size: 4096, Debug: true})
	require.NoError(t, err)
	b := p.Get()
	require.NoError(t, d.Close())
	withoutFaults(t, func() {
		p.watch.put(b) // as if Put and Get had made their checks before the close
		p.watch.got(b)
	})
}

// TestAWatchedPoolIsUsedBesideItsEnd closes pools and domains while other
// goroutines get and put their buffers, and closes domains while other goroutines
// make pools.
func TestAWatchedPoolIsUsedBesideItsEnd(t *testing.T) {
	for round := range 200 {
		d := NewDomain(door.Key{}, newFakeDevice(), nil)
		pz, err := d.NewPZ()
		require.NoError(t, err)
		cfg := BufferPoolConfig{Count: 4, Size: 16384, Debug: true}
		p, err := pz.NewBufferPool(cfg)
		require.NoError(t, err)
		var wg sync.WaitGroup
		begin := make(chan struct{})
		wg.Go(func() {
			<-begin
			withoutFaults(t, func() {
				for b := p.Get(); b != nil; b = p.Get() {
					b.Put()
				}
			})
		})
		wg.Go(func() {
			<-begin
			withoutFaults(t, func() {
				for {
					if _, err := pz.NewBufferPool(cfg); err != nil {
						return
					}
				}
			})
		})
		wg.Go(func() {
			close(begin)
			if round%2 == 0 {
				_ = p.Close() // its error may name a holder
			}
			assert.NoError(t, d.Close())
		})
		wg.Wait()
	}
}
