package stream

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// spend writes short messages until the end has no credit for a report. The peer's sending is
// held meanwhile, so that it grants nothing.
func spend(t *testing.T, c *Conn) {
	for c.line.flow.credits() > reportCredit {
		_, err := c.Write([]byte{1})
		require.NoError(t, err)
	}
}

func returnsInTime(t *testing.T, done <-chan error, what string) {
	t.Helper()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "a Write still waits", what)
	}
}

// A reader that has emptied the ring has no credit to report it. Its program makes no call any
// more; the peer's Write goes on all the same when the credit comes.
func TestAReportThatFindsNoCreditIsMadeWhenOneComes(t *testing.T) {
	onEachWith(t, Config{Ring: leastRing}, func(t *testing.T, r *rig) {
		a, b := r.pair()
		done := make(chan error, 1)
		go func() {
			_, err := b.Write(make([]byte, 2*leastRing))
			done <- err
		}()
		filled := func() bool { return a.line.flow.in.produced.Load() == leastRing }
		require.Eventually(t, filled, time.Minute, time.Millisecond)
		b.line.sending.Lock()
		spend(t, a)
		n, err := a.Read(make([]byte, leastRing))
		require.NoError(t, err)
		assert.Equal(t, leastRing, n)
		assert.False(t, a.line.flow.reportDue(), "there is no credit")
		b.line.sending.Unlock()
		returnsInTime(t, done, "the peer has read all, and its program is busy elsewhere")
	})
}

// The program of one end is in no call. The other end's short Writes do not wait for it as long
// as its ring has room for them, though each takes a receive.
func TestShortWritesDoNotWaitForACallOfThePeer(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		a, b := r.pair()
		const writes = 20 * messages
		done := make(chan error, 1)
		go func() {
			for i := range writes {
				if _, err := b.Write([]byte{byte(i)}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		returnsInTime(t, done, "the peer's ring has room")
		got := make([]byte, writes)
		_, err := io.ReadFull(a, got)
		require.NoError(t, err)
		for i := range got {
			require.Equal(t, byte(i), got[i])
		}
	})
}

// The peer's program has read all that came, and reads no more. A Write of half of Config.Ring does not wait for it,
// however much of what it has read was reported: so two ends may both write before they read.
func TestAWriteOfHalfARingWaitsForNoReadOfAPeerThatHadReadAll(t *testing.T) {
	for _, ring := range []int{leastRing, 4 * leastRing, 16 * leastRing} {
		onEachWith(t, Config{Ring: ring}, func(t *testing.T, r *rig) { writesHalf(t, r, ring) })
	}
}

// writesHalf has connections whose peers have read all, of which they have reported a part, write half a ring.
func writesHalf(t *testing.T, r *rig, ring int) {
	for reported := 0; reported <= leastRing/2; reported += 512 {
		for unreported := 0; unreported < leastRing/2; unreported += 341 {
			a, b := r.pair()
			exchange := func(n int) {
				if n > 0 {
					_, err := a.Write(make([]byte, n))
					require.NoError(t, err)
					_, err = io.ReadFull(b, make([]byte, n))
					require.NoError(t, err)
				}
			}
			exchange(reported)
			_, err := b.Write([]byte{1}) // which reports
			require.NoError(t, err)
			_, err = io.ReadFull(a, make([]byte, 1))
			require.NoError(t, err)
			exchange(unreported)
			done := make(chan error, 1)
			go func() {
				_, err := a.Write(make([]byte, ring/2))
				done <- err
			}()
			returnsInTime(t, done, fmt.Sprintf("%d octets were read and reported, %d were not reported", reported, unreported))
			require.NoError(t, a.Close())
			require.NoError(t, b.Close())
		}
	}
}
