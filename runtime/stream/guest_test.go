//go:build guest

package stream

import (
	"os"

	_ "godat/hw/ibv"
)

// adapters has the device of the guest that hw/ibv/test-guest.sh boots.
var adapters = []string{"ibv:" + os.Getenv("GODAT_GUEST_DEVICE")}
