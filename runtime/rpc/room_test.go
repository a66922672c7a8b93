package rpc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// filled is a link that carries so many bytes a second, and a server that writes pieces as the room lets it
// and the pieces grow. It returns the most bytes that were on their way at a time, and how many came.
func filled(rate, rtt float64, d time.Duration) (most, came float64) {
	const tick = time.Millisecond
	var t turns
	t.init()
	m, at, began := &t.room, time.Unix(1000, 0), time.Time{}
	var sent, carried float64 // bytes that the system has taken, and that have come
	var acked []float64       // by time, of which the last have not come back yet
	back := int(rtt / tick.Seconds())
	for range int(d / tick) {
		at = at.Add(tick)
		carried = min(sent, carried+rate*tick.Seconds())
		acked = append(acked, carried)
		passed := acked[max(len(acked)-1-back, 0)]
		flow := hw.Flow{Passed: uint64(passed), Waiting: uint64(sent - passed)}
		for {
			n, _ := t.piece()
			if began.IsZero() {
				began = at
			}
			left, ok := m.admit(flow, at, n, n)
			if !ok {
				break
			}
			m.left.Store(left)
			sent += float64(n)
			flow.Waiting += uint64(n)
			took := at.Sub(began)
			began = time.Time{}
			t.fit(n, took < quickPiece && n < mostPiece && m.quick(flow, at), took > slowPiece)
			most = max(most, sent-carried)
		}
	}
	return most, carried
}

func TestNoMoreIsOnItsWayThanALinkCarriesInAWhile(t *testing.T) {
	for name, tc := range map[string]struct{ rate, rtt float64 }{
		"200 kbit/s": {25e3, 0.04}, "1 Mbit/s": {125e3, 0.04}, "10 Mbit/s": {1.25e6, 0.04},
		"1 Gbit/s": {125e6, 0.001}, "1 Gbit/s, far": {125e6, 0.1}, "2 Mbit/s by satellite": {250e3, 0.6},
	} {
		t.Run(name, func(t *testing.T) {
			most, came := filled(tc.rate, tc.rtt, 20*time.Second)
			assert.LessOrEqual(t, most, max(2*firstPiece, tc.rate*1.5+mostPiece*min(1, tc.rate/1e6)), "what is on its way")
			require.Greater(t, came, 0.7*tc.rate*20, "what came: a link that is long or quick is used")
		})
	}
}
