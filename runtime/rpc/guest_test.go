//go:build guest

package rpc

import (
	"os"
	"syscall"

	_ "godat/hw/ibv"
)

// adapters has the device of the guest that hw/ibv/test-guest.sh boots.
var adapters = []string{"ibv:" + os.Getenv("GODAT_GUEST_DEVICE")}

// slow says that a connection takes long to make: in the guest, whose processors are emulated.
const slow = true

// followers is 1, since each server takes as long as its clients take to connect to it.
const followers = 1

// mappings are those that a source may have when it is mapped for reading alone: the guest's
// Linux 6.1 refuses to pin a shared one.
var mappings = map[string]int{"private": syscall.MAP_PRIVATE}
