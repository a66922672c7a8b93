//go:build linux && cgo

package ibv

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

func TestAClosedSharedQueueRefusesEachCall(t *testing.T) {
	q := &sharedQueue{cfg: hw.SRQConfig{Depth: 4}, depth: 4, users: users{dev: &device{attr: hw.Attr{MaxSRQDepth: 16}}, closed: true}}
	for name, call := range map[string]func() error{
		"PostRecv": func() error { _, err := q.PostRecv(make([]hw.RecvWR, 1)); return err },
		"Arm":      func() error { return q.Arm(1) },
		"Resize":   func() error { return q.Resize(8) },
		"Close":    q.Close,
	} {
		assert.ErrorIs(t, call(), hw.ErrInvalidHandle, name)
	}
}
