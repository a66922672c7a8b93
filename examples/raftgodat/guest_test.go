//go:build guest

package raftgodat

import (
	"os"
	"testing"

	_ "godat/hw/ibv"
	dat "godat/runtime"
)

// adapters has the device of the guest that hw/ibv/test-guest.sh boots.
var adapters = map[string]func(t *testing.T) (*dat.IA, error){
	os.Getenv("GODAT_GUEST_DEVICE"): func(t *testing.T) (*dat.IA, error) {
		return dat.Open(t.Context(), "ibv:"+os.Getenv("GODAT_GUEST_DEVICE"))
	},
}
