package ep

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/door"
)

func TestAnEndpointIsFoundByItsQueuePairWhileItIsOpen(t *testing.T) {
	r := newRig(t)
	a, b := r.endpoint(nil), r.endpoint(nil)
	assert.Same(t, a, r.adapter.OfQP(a.box.QP()))
	assert.Same(t, b, r.adapter.OfQP(b.box.QP()))
	assert.Nil(t, r.adapter.OfQP(nil))
	require.NoError(t, a.Close())
	assert.Nil(t, r.adapter.OfQP(a.box.QP()))
	assert.Same(t, b, r.adapter.OfQP(b.box.QP()))
}

// noQPs is a device that has no queue pair left.
type noQPs struct{ hw.Device }

func (noQPs) NewQP(hw.QPConfig) (hw.QP, error) { return nil, errors.New("none left") }

func TestAnEndpointWithoutAQueuePairLeavesNothing(t *testing.T) {
	r := newRig(t)
	a := NewAdapter(door.Key{}, AdapterConfig{Device: noQPs{r.adapter.cfg.Device}})
	_, err := a.NewEndpoint(Config{PZ: r.pz})
	require.ErrorContains(t, err, "none left")
	assert.Zero(t, a.Len())
	assert.Empty(t, a.qps.list())
	require.NoError(t, a.Close())
}

func TestEndpointsMayComeAndGoWhileTheyAreLookedFor(t *testing.T) {
	r := newRig(t)
	kept := r.endpoint(nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				e := r.endpoint(nil)
				assert.Same(t, e, r.adapter.OfQP(e.box.QP()))
				assert.Same(t, kept, r.adapter.OfQP(kept.box.QP()))
				assert.NoError(t, e.Close())
			}
		})
	}
	wg.Wait()
	assert.Len(t, r.adapter.qps.list(), 1)
}
