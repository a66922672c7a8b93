package runtime

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/sim"
)

// zeroAttributes are the attributes that may be zero, with what a zero says. Every
// provider fills in all others.
var zeroAttributes = map[string]string{
	"IA.TransportAttr":              "no transport has any that DAT has no field for",
	"IA.VendorAttr":                 "no vendor has",
	"Provider.IOVOwnership":         "the consumer's is number 0",
	"Provider.QoS":                  "best effort is number 0",
	"Provider.PZSupport":            "unique is number 0",
	"Provider.Multipath":            "no provider has more than one path to a peer",
	"Provider.HA":                   "no adapter takes the place of another",
	"Provider.HALoadBalancing":      "so they share no load",
	"Provider.SRQPZDifference":      "an endpoint is of its shared receive queue's zone",
	"Provider.LMRSyncRequired":      "memory needs no sync",
	"Provider.SignalSafe":           "Go programs make no calls from signal handlers",
	"Provider.ContextExposure":      "transports but iWARP keep the sink of a read to themselves",
	"Provider.WriteForReadRequired": "a provider whose transport needs RemoteWrite for the sink of a read adds it",
}

func TestEveryAttributeIsFilledIn(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []Option
		zeros map[string]string // in addition to zeroAttributes
		set   string            // the one of zeroAttributes that is not zero
	}{
		"loop":  {},
		"iwarp": {set: "Provider.ContextExposure"},
		"sim": {
			opts: []Option{WithProvider(sim.New(sim.Config{}))},
			zeros: map[string]string{
				"IA.MaxRMRs":             "it has no windows",
				"IA.MaxRMRTargetAddress": "so they have no address",
				"IA.ZeroBased":           "and none from zero",
				"IA.Extension":           "it has no operations of an extension",
				"IA.ExtensionVersion":    "nor a version of one",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := open(t, name, c.opts...).Query()
			require.NoError(t, err)
			want := maps.Clone(zeroAttributes)
			delete(want, c.set)
			maps.Copy(want, c.zeros)
			found := map[string]bool{}
			zeroFields(reflect.ValueOf(q.IA), "IA", found)
			zeroFields(reflect.ValueOf(q.Provider), "Provider", found)
			assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(found)))
		})
	}
}

// zeroFields finds the fields of a struct that are zero.
func zeroFields(v reflect.Value, name string, found map[string]bool) {
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			found[name+"."+v.Type().Field(i).Name] = true
		}
	}
}
