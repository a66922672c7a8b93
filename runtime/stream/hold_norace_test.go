//go:build !race

package stream

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests of this file have the clock to themselves: code for the race detector sleeps at
// random places (package yield).

// readers are the ends of a connection whose reader has made large Reads, each promptly
// behind the one before. Its newest report waits for the next Read.
func readers(t *testing.T, r *rig) (client, server *Conn) {
	client, server = r.pair()
	require.True(t, warm(t, client, server))
	for range 3 {
		landed(t, client, server)
	}
	require.Less(t, server.line.flow.out.toldConsumed.Load(), server.line.flow.in.consumed.Load(), "the report waits")
	return client, server
}

// landed has a large Write go straight into a large Read.
func landed(t *testing.T, client, server *Conn) {
	want, p := body(1<<20, 2), make([]byte, 1<<20)
	got := reading(server, p)
	synctest.Wait()
	_, err := client.Write(want)
	require.NoError(t, err)
	require.Equal(t, readOutcome{len(want), nil}, <-got)
	require.Equal(t, want, p)
}

func TestTheOfferOfAReadReportsWhatTheReadBeforeTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := readers(t, newRig(t, "loop", Config{Ring: 64 << 10}))
		sent, begin := server.line.flow.out.sent.Load(), time.Now()
		for range 5 {
			landed(t, client, server)
		}
		assert.Equal(t, sent+5, server.line.flow.out.sent.Load(), "a message for each Read")
		assert.Less(t, time.Since(begin), longestHold, "no report has waited for its timer")
	})
}

// No Read follows, and the ring has room for what the peer writes once the peer knows that.
func TestAReportThatNoReadFollowsComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := readers(t, newRig(t, "loop", Config{Ring: 64 << 10}))
		begin := time.Now()
		require.NoError(t, client.SetWriteDeadline(begin.Add(time.Minute)))
		_, err := client.Write(body(20<<10, 3))
		require.NoError(t, err)
		assert.Equal(t, longestHold, time.Since(begin))
		assert.Equal(t, server.line.flow.in.consumed.Load(), server.line.flow.out.toldConsumed.Load())
		time.Sleep(time.Hour)
		assert.NoError(t, server.Close())
		server.line.reportLate() // a timer that was stopped too late
	})
}

// A program that works between two Reads would keep its peer from writing meanwhile.
func TestAReportDoesNotWaitForAReaderThatIsNotPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := readers(t, newRig(t, "loop", Config{Ring: 64 << 10}))
		time.Sleep(promptly)
		landed(t, client, server)
		assert.Equal(t, server.line.flow.in.consumed.Load(), server.line.flow.out.toldConsumed.Load())
	})
}
