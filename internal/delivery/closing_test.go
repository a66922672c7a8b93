package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/event"
)

func TestAFunctionMayCloseItsDispatcher(t *testing.T) {
	for name, on := range map[string]event.Number{"on an event": event.DTOCompletion, "on the last event": lastOne.Number} {
		t.Run(name, func(t *testing.T) {
			var d *Dispatcher
			var got []event.Number
			d = makeDispatcher(Config{Way: Func, Func: func(ev event.Event) {
				got = append(got, ev.Number)
				if ev.Number == on {
					assert.NoError(t, d.Close())
				}
			}})
			d.EndWith(lastOne)
			done := make(chan error, 1)
			go func() {
				d.Main().Put(dto(1))
				done <- d.Close()
			}()
			select {
			case err := <-done:
				require.NoError(t, err)
				assert.Equal(t, []event.Number{event.DTOCompletion, lastOne.Number}, got)
			case <-time.After(time.Minute):
				t.Fatal("Close waits for itself")
			}
		})
	}
}
