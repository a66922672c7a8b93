package iwarp

import (
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// A goroutine that runs later than its own deadline has done nothing with the socket. What the
// peer must still hear, such as a farewell, gets its time again.
func TestAGoroutineThatCameTooLateForItsDeadlineGetsAnother(t *testing.T) {
	const limit = time.Second
	for name, c := range map[string]struct {
		took []time.Duration // by each call, until it fails for the deadline; the one behind succeeds
		want int
	}{
		"in time":              {nil, 1},
		"for want of a peer":   {[]time.Duration{limit, limit}, 1},
		"too late, and then":   {[]time.Duration{2 * limit}, 2},
		"too late, then slow":  {[]time.Duration{2 * limit, limit, limit}, 2},
		"too late again, ever": {[]time.Duration{2 * limit, 9 * limit, 2 * limit, 2 * limit}, lateTries},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				var deadline time.Time
				set := func(at time.Time) error { deadline = at; return nil }
				inTime(limit, set, func() error {
					assert.Equal(t, time.Now().Add(limit), deadline)
					calls++
					if calls > len(c.took) {
						return nil
					}
					time.Sleep(c.took[calls-1])
					return os.ErrDeadlineExceeded
				})
				assert.Equal(t, c.want, calls)
			})
		})
	}
}

// A look at the peer's pulse that comes late says that this process is busy, and nothing of
// the peer.
func TestALookThatComesLateDoesNotCount(t *testing.T) {
	c := connections(newNode(t, New(Config{}), nil).peer())[0]
	r := &c.recv
	c.Dead = true // there is no socket whose deadline could be set
	defer func() { c.Dead = false }()
	c.agreed.extended = true
	c.reads.init(1)
	c.reads.push(read{})
	r.pulseAfter, r.silent = time.Hour/looks, looks-2
	r.own.Acquire()
	defer r.own.Release()
	for range 2 * looks {
		c.readAt = time.Now().Add(-time.Hour / looks)
		require.NoError(t, r.checkPulse())
	}
	c.readAt = time.Now()
	require.Error(t, r.checkPulse(), "it came in time, and the peer has not answered")
}

// The system of a peer that has left resets the connection if something comes behind its end.
func TestAResetBehindAFarewellIsAnOrderlyEnd(t *testing.T) {
	for farewelled, want := range map[bool]hw.Reason{false: hw.ReasonBroken, true: hw.ReasonPeer} {
		b := newNode(t, New(Config{}), noCRC).peer()
		s, _ := accepted(t, b, ours())
		s.write(rtrFPDU)
		b.awaitUp()
		if farewelled {
			s.write(wire.AppendFPDU(nil, false, farewell()))
		}
		b.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled}) // which the peer does not read
		assert.Equal(t, hw.StatusSuccess, b.sent(0).Status)
		r := &connections(b)[0].recv
		require.Eventually(t, func() bool { return !farewelled || r.hasFarewell() }, patience, tick)
		require.NoError(t, s.conn.(*net.TCPConn).SetLinger(0))
		require.NoError(t, s.conn.Close())
		b.awaitDown()
		assert.Equal(t, want, b.down)
	}
}

// hasFarewell reports whether a receiver that waits has got the peer's farewell.
func (r *receiver) hasFarewell() bool {
	if !r.right.TryAcquire() {
		return false
	}
	defer r.right.Give()
	return r.place.farewell
}
