//go:build guest

package ibv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// caller is a queue pair that asks for a connection in vain.
type caller struct {
	qp      hw.QP
	refused chan hw.Reason
	private []byte
	cause   *hw.Cause
}

// Established implements [hw.Facts].
func (c *caller) Established(hw.ConnInfo) { c.refused <- hw.ReasonNone }

// Refused implements [hw.Facts].
func (c *caller) Refused(why hw.Reason, private []byte, cause *hw.Cause) {
	c.private, c.cause = private, cause
	c.refused <- why
}

// Down implements [hw.Facts].
func (c *caller) Down(hw.Reason, *hw.Cause) {}

// A listener's close takes nothing from the requests that it has handed out: each peer still
// gets the reason for which it is refused.
func TestACrowdThatWaitsIsToldWhyAfterItsListenerHasClosed(t *testing.T) {
	const crowd = 128
	b := &bench{t: t, cqDepth: 4 * crowd}
	e := b.open(nil, nil)
	b.ends[0] = e
	requests := make(chan hw.Request, crowd)
	l, err := e.dev.Listen(hw.ListenConfig{Backlog: crowd, OnRequest: func(r hw.Request) bool { requests <- r; return true }})
	require.NoError(t, err)
	var callers [crowd]*caller
	for i := range callers {
		c := &caller{refused: make(chan hw.Reason, 1)}
		c.qp, err = e.dev.NewQP(hw.QPConfig{
			Zone: e.zone, SendCQ: e.cq, RecvCQ: e.cq, Facts: c, SendDepth: 1, RecvDepth: 1,
			SendSegments: 1, RecvSegments: 1, SendEnd: sendEnd, RecvEnd: recvEnd,
		})
		require.NoError(t, err)
		require.NoError(t, c.qp.Connect(hw.ConnectConfig{Addr: e.dev.Attr().Address, Qual: l.Qual(), Timeout: patience}))
		callers[i] = c
	}
	var waiting []hw.Request
	for range crowd {
		waiting = append(waiting, awaited(t, "a request", requests))
	}
	require.NoError(t, l.Close())
	begin := time.Now()
	for _, r := range waiting {
		require.NoError(t, r.Reject([]byte("closing")))
	}
	for _, c := range callers {
		assert.Equal(t, hw.ReasonPeerRejected, awaited(t, "Refused", c.refused))
		require.GreaterOrEqual(t, len(c.private), len("closing"))
		assert.Equal(t, "closing", string(c.private[:len("closing")]))
		if assert.NotNil(t, c.cause) {
			assert.NotNil(t, c.cause.Local)
		}
	}
	t.Log(time.Since(begin))
	for _, c := range callers {
		c.qp.Break(false)
		e.completion(sendEnd)
		e.completion(recvEnd)
		require.NoError(t, c.qp.Close())
	}
	e.leave()
}
