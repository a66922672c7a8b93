package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
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

// PostOne leaves it to LookAgain to see what others have asked of the device meanwhile (Own).
// So the endpoint calls it after each release of its token, whoever held that for what.
func TestTheEndpointLooksAtTheDeviceAgainWheneverItHasReleasedTheToken(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	k := &kicked{Direct: a.box.direct, box: &a.box}
	a.box.direct = k
	seg := r.lmr.Segment(0, 8)
	for name, call := range map[string]func() error{
		"a request that the device takes at once": func() error { return a.PostSend(1, 0, seg) },
		"a receive": func() error { return a.PostRecv(1, 0, seg) },
		"a batch": func() error {
			_, err := a.PostBatch([]DTO{{Op: hw.OpSend, Segment: seg}, {Op: hw.OpSend, Segment: seg}})
			return err
		},
		"a batch of receives": func() error { _, err := a.PostRecvBatch([]DTO{{Segment: seg}, {Segment: seg}}); return err },
		"a step":              func() error { a.box.kickStep(); return nil },
	} {
		for range 2 {
			require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(8, 8)))
		}
		k.held = nil
		require.NoError(t, call(), name)
		assert.NotEmpty(t, k.held, name)
		assert.NotContains(t, k.held, true, name)
	}
	for range 4 {
		require.NoError(t, a.PostSend(1, 0, seg))
	}
	k.held = nil
	require.NoError(t, a.PostSend(1, 0, seg), "it waits for a receive")
	assert.NotEmpty(t, k.held)
	assert.NotContains(t, k.held, true)
	a.box.direct = k.Direct
}

// A worker that finds work without end releases the token now and then, and looks at the
// device.
func TestAWorkerLooksAtTheDeviceBetweenBudgets(t *testing.T) {
	r := newRig(t)
	const posts = pauseEvery * budget
	d := r.dispatcher(evd.ModeQueue, posts)
	attr := &Attr{MaxRequestDTOs: posts}
	a, b := r.endpointOf(Config{PZ: r.pz, Recv: d, Request: d, Conn: r.conn, Attr: attr}), r.endpoint(nil)
	r.connect(a, b)
	k := &kicked{Direct: a.box.direct, box: &a.box}
	a.box.direct = k
	require.True(t, a.box.token.TakeOrKick())
	for range posts {
		require.NoError(t, a.PostSend(1, 0, r.lmr.Segment(0, 8)))
	}
	a.box.run(true)
	assert.Equal(t, []bool{false, false}, k.held)
	a.box.direct = k.Direct
}
