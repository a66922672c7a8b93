//go:build !race

package rpc

import (
	"testing"

	"github.com/stretchr/testify/assert"

	dat "godat/runtime"
)

func TestACallAllocatesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s := serve(t, ia, Config{}, 1, echo)
		c := dial(t, ia, s, Config{})
		ctx, dst, call := t.Context(), make([]byte, 0, 64), Call{Payload: make([]byte, 64)}
		calls := func() {
			if _, err := c.Call(ctx, call, dst); err != nil {
				t.Error(err)
			}
		}
		assert.Zero(t, testing.AllocsPerRun(500, calls))
		stop, err := ia.MeasureLatency()
		assert.NoError(t, err)
		assert.Zero(t, testing.AllocsPerRun(500, calls), "measured")
		stop()
	})
}
