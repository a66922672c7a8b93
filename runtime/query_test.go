package runtime

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/sim"
	"godat/mem"
)

func TestAnAdapterReportsItsAttributes(t *testing.T) {
	ia := open(t, "loop:q")
	attr := ia.Attr()
	assert.Equal(t, "q", attr.Device)
	assert.Equal(t, "q", attr.Address)
	assert.Equal(t, "loop", attr.Provider)
	assert.LessOrEqual(t, attr.MaxMRs, mem.MaxRegions)
	assert.GreaterOrEqual(t, attr.MaxPrivate, 64)
	assert.True(t, attr.Ops.Has(hw.OpRead))
}

// zeroAttributes are the attributes that may be zero, with what a zero says. Every
// provider fills in all others.
var zeroAttributes = map[string]string{
	"ExposesSink": "transports but iWARP keep the sink of a read to themselves",
}

func TestEveryAttributeIsFilledIn(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []Option
		zeros []string // in addition to zeroAttributes
		set   string   // the one of zeroAttributes that is not zero
	}{
		"loop":  {},
		"iwarp": {set: "ExposesSink", zeros: []string{"NotReadyWait", "Strict"}},
		"sim":   {opts: []Option{WithProvider(sim.New(sim.Config{}))}, zeros: []string{"MaxWindows", "ZeroBased", "Strict"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := slices.DeleteFunc(append(slices.Collect(maps.Keys(zeroAttributes)), c.zeros...), func(name string) bool { return name == c.set })
			attr := reflect.ValueOf(open(t, name, c.opts...).Attr())
			var found []string
			for i := range attr.NumField() {
				if attr.Field(i).IsZero() {
					found = append(found, attr.Type().Field(i).Name)
				}
			}
			assert.ElementsMatch(t, want, found)
		})
	}
}

func TestEveryReturnTypeHasItsSentinelHere(t *testing.T) {
	for _, err := range []error{
		hw.ErrAbort, hw.ErrConnQualInUse, hw.ErrInsufficientResources, hw.ErrInternal, hw.ErrInvalidHandle, hw.ErrInvalidParameter,
		hw.ErrInvalidState, hw.ErrLength, hw.ErrModelNotSupported, hw.ErrProviderNotFound, hw.ErrPrivileges, hw.ErrProtection,
		hw.ErrQueueEmpty, hw.ErrQueueFull, hw.ErrTimeout, hw.ErrProviderAlreadyRegistered, hw.ErrProviderInUse, hw.ErrInvalidAddress,
		hw.ErrInterrupted, hw.ErrConnQualUnavailable, hw.ErrCommNotSupported, hw.ErrNotImplemented,
	} {
		var code *hw.Error
		require.ErrorAs(t, err, &code)
		assert.NotZero(t, code.Type)
	}
}
