package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/hw"
	"godat/internal/token"
)

// kicked is a queue pair that notes whether the endpoint's token is held at each Kick.
type kicked struct {
	hw.Runner
	box  *line.Mailbox
	held []bool
}

func (k *kicked) Kick() {
	k.held = append(k.held, k.box.Token.Load()&token.Held != 0)
	k.Runner.Kick()
}

// RecvRun stores by no locked instruction. The swap that releases the token publishes
// what it has stored, before Kick looks for a send that waits.
func TestAReceiveKicksTheDeviceWhenItHasReleasedTheToken(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	k := &kicked{Runner: runner(b), box: &b.box}
	b.box.SetQP(k)
	seg := r.lmr.Segment(0, 8)
	for name, call := range map[string]func() error{
		"a receive":           func() error { return b.PostRecv(1, 0, seg) },
		"a batch of receives": func() error { _, err := b.PostRecvBatch([]DTO{{Segment: seg}, {Segment: seg}}); return err },
	} {
		for range 2 {
			require.NoError(t, a.PostSend(1, 0, seg))
		}
		k.held = nil
		require.NoError(t, call(), name)
		assert.Equal(t, []bool{false}, k.held, name)
	}
	r.takeEvents(r.dto, 6)
	b.box.SetQP(k.Runner)
}
