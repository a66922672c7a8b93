package delivery

import (
	"context"
	"slices"
	"testing"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each caller that finds too few events polls the device with its own hint, and
// finds the event that the poll delivered.
func TestACallerThatFindsTooFewEventsPollsTheDevice(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	buf := make([]event.Event, 1)
	dequeue := func(t *testing.T, d *Dispatcher) {
		n, err := d.Dequeue(buf)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		assert.EqualValues(t, 7, buf[0].Cookie)
	}
	for name, c := range map[string]struct {
		how    PollHint
		config func(*Dispatcher)
		look   func(*testing.T, *Dispatcher)
	}{
		"dequeue":           {PollNow, nil, dequeue},
		"dequeue for a CNO": {PollBeforeSleep, func(d *Dispatcher) { d.Consumer().SetNotifier(func() {}) }, dequeue},
		"wait": {PollBeforeSleep, nil, func(t *testing.T, d *Dispatcher) {
			ev, _, err := waitOne(d, over, 1)
			require.NoError(t, err)
			assert.EqualValues(t, 7, ev.Cookie)
		}},
		"iterate": {PollBeforeSleep, nil, func(t *testing.T, d *Dispatcher) {
			for ev := range d.Events(background) {
				assert.EqualValues(t, 7, ev.Cookie)
				break
			}
		}},
		"reserve": {PollElsewhere, nil, func(t *testing.T, d *Dispatcher) {
			assert.False(t, d.Main().Reserve(1))
			dequeue(t, d)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(t, Config{QLen: 1})
			if c.config != nil {
				c.config(d)
			}
			require.True(t, d.Main().Reserve(1))
			var asked []PollHint
			d.Consumer().SetPollDevice(func(how PollHint) {
				asked = append(asked, how)
				if len(asked) == 1 {
					d.Main().Put(dto(7))
					d.Main().Flush()
				}
			})
			c.look(t, d)
			assert.Equal(t, []PollHint{c.how}, asked)
			d.Consumer().SetPollDevice(nil)
			n, err := d.Dequeue(buf)
			require.NoError(t, err)
			assert.Zero(t, n)
			assert.Len(t, asked, 1)
		})
	}
}

// The event of the last poll ends the wait without a sleep.
func TestAWaitPollsTheDeviceEachTimeThatItLooks(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 1})
	require.True(t, d.Main().Reserve(1))
	want := append([]PollHint{PollBeforeSleep}, slices.Repeat([]PollHint{PollAgain}, spins)...)
	var asked []PollHint
	d.Consumer().SetPollDevice(func(how PollHint) {
		if asked = append(asked, how); len(asked) == len(want) {
			d.Main().Put(dto(7))
			d.Main().Flush()
		}
	})
	ev, _, err := waitOne(d, background, 1)
	require.NoError(t, err)
	assert.EqualValues(t, 7, ev.Cookie)
	assert.Equal(t, want, asked)
	assert.Zero(t, d.Consumer().sleeps.Load())
}
