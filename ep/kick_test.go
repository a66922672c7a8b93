package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/token"
)

// kicked is a queue pair that notes whether the endpoint's token is held at each Kick and LookAgain.
type kicked struct {
	hw.Direct
	box  *mailbox
	held []bool
}

func (k *kicked) LookAgain() {
	k.held = append(k.held, k.box.token.Load()&token.Held != 0)
	k.Direct.LookAgain()
}

func (k *kicked) Kick() {
	k.held = append(k.held, k.box.token.Load()&token.Held != 0)
	k.Direct.Kick()
}

// RecvOne stores by no locked instruction. The swap that releases the token publishes
// what it has stored, before Kick looks for a send that waits.
func TestAReceiveKicksTheDeviceWhenItHasReleasedTheToken(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	k := &kicked{Direct: b.box.direct, box: &b.box}
	b.box.direct = k
	require.NoError(t, a.PostSend(1, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, b.PostRecv(2, 0, r.lmr.Segment(8, 8)))
	assert.Equal(t, []bool{false}, k.held)
	for range 2 {
		require.NoError(t, r.next(r.dto).Err())
	}
	b.box.direct = k.Direct
}

// PostOne releases the device's pipe by no locked instruction, so the same holds for
// LookAgain. A request that the device leaves alone goes another way, and needs no look.
func TestARequestLooksAtTheDeviceAgainWhenItHasReleasedTheToken(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	k := &kicked{Direct: a.box.direct, box: &a.box}
	a.box.direct = k
	require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(8, 8)))
	require.NoError(t, a.PostSend(2, 0, r.lmr.Segment(0, 8)))
	assert.Equal(t, []bool{false}, k.held)
	require.NoError(t, a.PostSend(3, 0, r.lmr.Segment(0, 8)), "it waits for a receive")
	assert.Len(t, k.held, 1)
	require.NoError(t, b.PostRecv(4, 0, r.lmr.Segment(8, 8)))
	for range 4 {
		require.NoError(t, r.next(r.dto).Err())
	}
	a.box.direct = k.Direct
}
