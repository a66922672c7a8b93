package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/owner"
	"godat/mem"
)

func TestABindAllocatesNothing(t *testing.T) {
	if owner.Enabled {
		return // the race build's checks allocate
	}
	for _, device := range []string{"loop", "iwarp"} {
		t.Run(device, func(t *testing.T) {
			p := connect(t, open(t, device), evd.Config{QLen: 64})
			for range 2 {
				ev, _, err := p.events.Wait(context.Background(), 1)
				require.NoError(t, err)
				require.Equal(t, event.Established, ev.Number)
			}
			w, err := p.pz.NewRMR()
			require.NoError(t, err)
			to := mem.Binding{Segment: p.mem.Segment(0, 8), Privileges: hw.RemoteRead}
			bind := func() {
				if _, err := p.b.PostBind(1, 0, w, to); err != nil {
					t.Error(err)
				}
				if ev, _, err := p.events.Wait(context.Background(), 1); err != nil || ev.Number != event.BindCompletion {
					t.Error(ev, err)
				}
			}
			for range 100 { // until the queue keeps binds, and keys are used again
				bind()
			}
			assert.Zero(t, testing.AllocsPerRun(500, bind))
		})
	}
}
