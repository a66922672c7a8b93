package target

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
)

// originsOf are the origins of the target's I/O queues.
func (f *fixture) originsOf() (all []Origin) {
	r := &f.target.controllers
	r.mu.Lock()
	defer r.mu.Unlock()
	for q := range r.running {
		if q.asked.QueueID != 0 {
			all = append(all, q.origin())
		}
	}
	return all
}

func TestAnOriginIsAliveUntilItsConnectionHasEnded(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			f := start(t, provider, nil)
			c := f.connect(func(cfg *host.Config) { cfg.Queues = 1 })
			d := f.disk(c, 1)
			_, err := d.WriteAt(make([]byte, 4096), 0)
			require.NoError(t, err)
			all := f.originsOf()
			require.Len(t, all, 1)
			assert.True(t, all[0].Alive(t.Context()), "a command came just now, and nothing comes after it")
			assert.False(t, all[0].Ended())
			stop, done := make(chan struct{}), make(chan error, 1)
			go func() {
				for {
					select {
					case <-stop:
						done <- nil
						return
					default:
					}
					if _, err := d.WriteAt(make([]byte, 16<<10), 0); err != nil {
						done <- err
						return
					}
				}
			}()
			for range 20 {
				assert.True(t, all[0].Alive(t.Context()), "commands come")
			}
			close(stop)
			require.NoError(t, <-done)
			ended, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			assert.False(t, all[0].Alive(ended))
			cancel()
			require.NoError(t, c.Close())
			assert.False(t, all[0].Alive(t.Context()))
			assert.True(t, all[0].Ended())
			assert.True(t, Origin{}.Alive(t.Context()), "no connection")
			assert.False(t, Origin{}.Ended())
		})
	}
}

func TestACommandThatTheNetworkHeldIsNoSignThatItsOriginIsAlive(t *testing.T) {
	f := start(t, "iwarp", nil)
	h := hold(f)
	h.write(1)
	h.lets()
	require.NoError(t, <-h.wrote)
	h.write(2) // sent before the call, as all that comes while the way is shut
	before := h.keeps()
	all := f.originsOf()
	require.Len(t, all, 1)
	alive := make(chan bool, 1)
	h.mu.Lock()
	go func() { alive <- all[0].Alive(t.Context()) }()
	h.hears() // the target asks
	h.mu.Unlock()
	h.letsGo(before)
	require.NoError(t, <-h.wrote)
	_, err := f.disk(f.connect(func(cfg *host.Config) { cfg.ID = [16]byte{9} }), 1).WriteAt(make([]byte, 4096), 0)
	require.NoError(t, err) // the queue has had its time to answer
	require.Empty(t, alive)
	h.set(false)
	assert.True(t, <-alive, "the host answers")
}
