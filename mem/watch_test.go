package mem

import (
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/door"
)

// withoutFaults runs f, and fails the test if f touches unmapped memory, which
// otherwise ends the process.
func withoutFaults(t *testing.T, f func()) {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	assert.NotPanics(t, f)
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
