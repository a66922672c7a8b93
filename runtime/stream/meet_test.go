package stream

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/internal/yield"
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
		return c, func() bool { return c.line.flow.in.produced.Load() != c.line.flow.in.consumed.Load() }, func() {
				produced++
				slot := c.line.flow.in.slots[c.line.flow.in.received.Load()%messages*slotSize:]
				copy(slot, encode(message{produced: produced, granted: messages}, "b"))
				c.line.arrive(int(c.line.flow.in.received.Load() % messages))
			}, func() {
				c.line.flow.in.consumed.Store(c.line.flow.in.produced.Load())
				c.line.flow.in.reposted.Store(c.line.flow.in.received.Load())
				c.line.flow.out.toldConsumed.Store(c.line.flow.in.consumed.Load())
				c.line.flow.out.toldGranted.Store(messages + c.line.flow.in.received.Load())
			}
	}
	announces := false
	for name, set := range map[string]func() (c *Conn, w *waiter, ready func() bool, happen, again func()){
		"a message": func() (*Conn, *waiter, func() bool, func(), func()) {
			c, ready, happen, again := message()
			return c, &c.line.reader, ready, happen, again
		},
		"a message, for a Read that announces": func() (*Conn, *waiter, func() bool, func(), func()) {
			announces = true
			c, ready, happen, again := message()
			return c, &c.line.reader, ready, happen, again
		},
		"a completed send": func() (*Conn, *waiter, func() bool, func(), func()) {
			c := bareConn(leastRing)
			c.line.flow.out.granted.Store(1 << 40)
			full := func() { c.line.flow.out.sent.Store(c.line.flow.out.completed.Load() + messages) }
			full()
			return c, &c.line.writer, func() bool { return c.line.flow.credits() > reportCredit }, func() { c.line.sent((c.line.flow.out.completed.Load() + 3) % messages) }, full
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
			assert.Nil(t, c.line.ended.Load())
		})
	}
}

// A Read that has no credit for its report, and the credit that comes at the same time, do not
// miss each other: one of the two finds the report due.
func TestAReportIsDueForTheReadOrForTheCreditThatComes(t *testing.T) {
	rounds := 200_000
	if testing.Short() {
		rounds /= 20
	}
	for name, comes := range map[string]func(c *Conn){
		"granted": func(c *Conn) {
			f := &c.line.flow
			slot := int(f.in.received.Load() % messages)
			copy(f.in.slots[slot*slotSize:], encode(message{produced: f.in.produced.Load(), granted: f.out.granted.Load() + 1}, ""))
			c.line.arrive(slot)
		},
		"completed": func(c *Conn) {
			completed := c.line.flow.out.completed.Load()
			c.line.flow.out.upTo[completed%messages] = 0
			c.line.sent(completed % messages)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := bareConn(leastRing)
			f := &c.line.flow
			f.in.produced.Store(1 << 40)
			lacking := func() { // one credit, which a report does not take
				f.in.reposted.Store(f.in.received.Load())
				f.out.toldGranted.Store(messages + f.in.received.Load())
				f.out.toldConsumed.Store(f.in.consumed.Load())
				if name == "granted" {
					f.out.sent.Store(f.out.granted.Load() - 2)
					f.out.completed.Store(f.out.sent.Load())
				} else {
					f.out.sent.Store(f.out.completed.Load() + messages - 2)
					f.out.granted.Store(1 << 40)
				}
				c.line.owed.Store(false)
			}
			lacking()
			var came atomic.Int64
			round, missed := int64(0), 0
			read := func() {
				due := f.take(leastRing / 2)
				round++
				yield.Until(func() bool { return came.Load() == round })
				if !due && !c.line.owed.Load() {
					missed++
				}
				lacking()
			}
			require.True(t, yield.Meet(rounds, 30*time.Second, func() {
				comes(c)
				came.Add(1)
			}, read))
			assert.Zero(t, missed, "rounds in which nobody made the report")
			assert.Nil(t, c.line.ended.Load())
		})
	}
}

func TestADialWhoseConnectionEndsInOrderBeforeItIsUpFails(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) { // nobody accepts
		cfg := r.cfg
		require.NoError(t, cfg.complete())
		c, err := newConn(use{ia: r.ia}, &cfg)
		require.NoError(t, err)
		require.NoError(t, c.line.endpoint.CommonConnect(r.ln.Addr().String(), ep.ConnectConfig{Private: c.line.flow.hello()}))
		require.NoError(t, c.line.endpoint.Disconnect(ep.Abrupt))
		require.ErrorIs(t, c.line.established(t.Context()), io.ErrUnexpectedEOF)
		require.NoError(t, c.line.free())
	})
}
