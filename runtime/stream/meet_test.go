package stream

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/yield"
	dat "godat/runtime"
)

// What arrives, or leaves its slot, and a call that begins to wait at the same time do not
// miss each other, though most counters are stored without a locked instruction.
func TestACallThatWaitsMissesNothingThatComes(t *testing.T) {
	rounds := 200_000
	if testing.Short() {
		rounds /= 20
	}
	message := func() (c *Conn, ready func() bool, happen, again func()) {
		c = bareConn(leastRing)
		var produced uint64
		return c, func() bool { return c.in.produced.Load() != c.in.consumed.Load() }, func() {
				produced++
				slot := c.in.slots[c.in.received.Load()%messages*slotSize:]
				copy(slot, encode(message{produced: produced, granted: messages}, "b"))
				c.arrive(int(c.in.received.Load() % messages))
			}, func() {
				c.in.consumed.Store(c.in.produced.Load())
				c.in.reposted.Store(c.in.received.Load())
				c.out.toldConsumed.Store(c.in.consumed.Load())
				c.out.toldGranted.Store(messages + c.in.received.Load())
			}
	}
	announces := false
	for name, set := range map[string]func() (c *Conn, w *waiter, ready func() bool, happen, again func()){
		"a message": func() (*Conn, *waiter, func() bool, func(), func()) {
			c, ready, happen, again := message()
			return c, &c.reader, ready, happen, again
		},
		"a message, for a Read that announces": func() (*Conn, *waiter, func() bool, func(), func()) {
			announces = true
			c, ready, happen, again := message()
			return c, &c.reader, ready, happen, again
		},
		"a completed send": func() (*Conn, *waiter, func() bool, func(), func()) {
			c := bareConn(leastRing)
			c.out.granted.Store(1 << 40)
			full := func() { c.out.sent.Store(c.out.completed.Load() + messages) }
			full()
			return c, &c.writer, func() bool { return c.credits() > reportCredit }, func() { c.sent((c.out.completed.Load() + 3) % messages) }, full
		},
	} {
		t.Run(name, func(t *testing.T) {
			announces = false
			c, w, ready, happen, again := set()
			w.wake = make(chan struct{}, 1)
			waits := func() { // sleep, but that it spins
				select {
				case <-w.wake: // of the last round
				default:
				}
				if announces {
					c.lockReading(true, true)
				} else {
					w.waiting.Store(1)
				}
				if !ready() {
					yield.Until(func() bool { return len(w.wake) > 0 })
				}
				if announces {
					c.endRead()
				} else {
					w.withdraw()
				}
				yield.Until(ready)
				again()
			}
			assert.True(t, yield.Meet(rounds, 30*time.Second, happen, waits), "a wake-up was lost")
			assert.Nil(t, c.ended.Load())
		})
	}
}

func TestADialWhoseConnectionEndsInOrderBeforeItIsUpFails(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) { // nobody accepts
		cfg := r.cfg
		require.NoError(t, cfg.complete())
		c, err := newConn(r.ia, &cfg)
		require.NoError(t, err)
		require.NoError(t, c.endpoint.CommonConnect(r.ln.Addr().String(), dat.ConnectConfig{Private: c.hello()}))
		require.NoError(t, c.endpoint.Disconnect(dat.Abrupt))
		require.ErrorIs(t, c.established(t.Context()), io.ErrUnexpectedEOF)
		require.NoError(t, c.free())
	})
}
