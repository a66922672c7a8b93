//go:build !guest

package rpc

import (
	"godat/hw"
	"godat/hw/sim"
	"godat/internal/owner"
)

func init() { hw.MustRegister(sim.New(sim.Config{Seed: 3})) }

// adapters are what the tests run on.
var adapters = []string{"loop", "iwarp:127.0.0.1", "sim"}

// slow says that a connection takes long to make: with the race detector.
const slow = owner.Enabled

// followers is how many servers follow the first where clients see one after the other.
const followers = 3
