package evd

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each of those who find too few events has the device looked at in its own way, and
// finds what that brought.
func TestWhoFindsTooLittleHasTheDeviceLookedAt(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	buf := make([]Event, 1)
	dequeue := func(t *testing.T, d *Dispatcher) {
		n, err := d.Dequeue(buf)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		assert.EqualValues(t, 7, buf[0].Cookie)
	}
	for name, c := range map[string]struct {
		how    Look
		config func(*Config)
		look   func(*testing.T, *Dispatcher)
	}{
		"dequeue": {LookNow, nil, dequeue},
		"dequeue for a CNO": {LookAndLeave, func(cfg *Config) {
			var err error
			cfg.CNO, err = NewCNO(CNOConfig{})
			require.NoError(t, err)
		}, dequeue},
		"wait": {LookAndLeave, nil, func(t *testing.T, d *Dispatcher) {
			ev, _, err := d.Wait(over, 1)
			require.NoError(t, err)
			assert.EqualValues(t, 7, ev.Cookie)
		}},
		"iterate": {LookAndLeave, nil, func(t *testing.T, d *Dispatcher) {
			for ev := range d.Events(background) {
				assert.EqualValues(t, 7, ev.Cookie)
				break
			}
		}},
		"reserve": {LookElsewhere, nil, func(t *testing.T, d *Dispatcher) {
			assert.False(t, d.Main().Reserve(1))
			dequeue(t, d)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{QLen: 1}
			if c.config != nil {
				c.config(&cfg)
			}
			d := newDispatcher(t, cfg)
			require.True(t, d.Main().Reserve(1))
			var asked []Look
			d.SetStir(func(how Look) {
				asked = append(asked, how)
				if len(asked) == 1 {
					d.Main().Put(dto(7), false)
					d.Main().Flush()
				}
			})
			c.look(t, d)
			assert.Equal(t, []Look{c.how}, asked)
			d.SetStir(nil)
			n, err := d.Dequeue(buf)
			require.NoError(t, err)
			assert.Zero(t, n)
			assert.Len(t, asked, 1)
		})
	}
}
