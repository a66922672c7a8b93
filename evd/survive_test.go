package evd

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/event"
)

// endings are the ways in which a callback ends its goroutine but not the process,
// each with the pool in which that happens.
var endings = map[string]struct {
	end    func()
	submit func(func()) error
}{
	"by Goexit":                            {runtime.Goexit, nil},
	"by a panic that the pool recovers":    {func() { panic("recovered") }, recovering},
	"by Goexit, on the program's own pool": {runtime.Goexit, recovering},
}

// recovering is a pool that recovers panics.
func recovering(task func()) error {
	go func() {
		defer func() { _ = recover() }()
		task()
	}()
	return nil
}

func TestADispatcherGoesOnWhenACallbackEndedItsGoroutine(t *testing.T) {
	for name, c := range endings {
		t.Run(name, func(t *testing.T) {
			calls := make(chan uint64, 8)
			d := newDispatcher(t, Config{Mode: ModeCallback, home: home{submit: c.submit}, Callback: func(evs []event.Event) {
				calls <- evs[0].Cookie
				if evs[0].Cookie == 1 {
					c.end()
				}
			}})
			put(t, d.inner.Main(), 1)
			require.EqualValues(t, 1, <-calls)
			put(t, d.inner.Main(), 2)
			assert.EqualValues(t, 2, <-calls)
			assert.NoError(t, d.Close())
		})
	}
}

func TestACNOGoesOnWhenAnAgentEndedItsGoroutine(t *testing.T) {
	for name, c := range endings {
		t.Run(name, func(t *testing.T) {
			calls := make(chan *Dispatcher, 8)
			cno := newCNO(t, CNOConfig{home: home{submit: c.submit}, Agent: func(d *Dispatcher) {
				calls <- d
				c.end()
			}})
			d := withCNO(t, cno)
			put(t, d.inner.Main(), 1)
			require.Same(t, d, <-calls)
			require.NoError(t, cno.ModifyAgent(func(d *Dispatcher) { calls <- d }))
			assert.Same(t, d, <-calls, "the CNO is triggered still")
			assert.NoError(t, d.Close())
			assert.NoError(t, cno.Close())
		})
	}
}
