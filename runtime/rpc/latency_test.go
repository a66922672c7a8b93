package rpc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheCallsOfAMethodAreMeasuredAtBothEndsWhileRequestsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia, s, c := pair(t)
		call := func(method, code uint16, takes time.Duration) {
			t.Helper()
			done := make(chan error)
			go func() {
				_, err := c.Call(t.Context(), Call{Method: method}, nil)
				done <- err
			}()
			r := s.nextRequest()
			time.Sleep(takes)
			if code == 0 {
				require.NoError(t, r.Reply(nil))
			} else {
				require.NoError(t, r.Fail(code, "no"))
			}
			assert.Equal(t, code == 0, <-done == nil)
		}
		call(7, 0, time.Hour)
		for _, m := range reported[MethodSnapshot](t, ia, "rpc methods") {
			assert.Nil(t, m.Latency, "nobody measures")
		}
		stop, err := ia.MeasureLatency()
		require.NoError(t, err)
		call(7, 0, time.Second)
		call(7, CodeUser, 3*time.Second)
		call(9, 0, time.Minute)
		stop()
		call(7, 0, time.Hour)
		took := make(map[string][2]any)
		for _, m := range reported[MethodSnapshot](t, ia, "rpc methods") {
			took[m.Name] = [2]any{m.Latency.Count, m.Latency.Max}
		}
		assert.Equal(t, map[string][2]any{
			"method 7, client of " + s.Addr(): {uint64(2), 3 * time.Second}, "method 9, client of " + s.Addr(): {uint64(1), time.Minute},
			"method 7, server " + s.Addr(): {uint64(2), 3 * time.Second}, "method 9, server " + s.Addr(): {uint64(1), time.Minute},
		}, took)
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
		for _, m := range reported[MethodSnapshot](t, ia, "rpc methods") {
			assert.Equal(t, took[m.Name], [2]any{m.Latency.Count, m.Latency.Max}, "what closed stays counted")
			delete(took, m.Name)
		}
		assert.Empty(t, took)
		require.NoError(t, ia.Close())
	})
}

func TestAClientCallsAnyNumberOfMethodsAndMakesFewHistograms(t *testing.T) {
	var m methods
	m.init(nil)
	for method := range uint16(1000) {
		m.known(method).took(time.Second)
		m.known(method).answered.count(0)
		m.known(5).took(time.Second)
	}
	sums := make(methodSums)
	m.addTo(sums)
	m.addTo(sums)
	rows := sums.rows("client", "x")
	require.Len(t, rows, mostMethods+1)
	assert.Equal(t, "method 5, client of x", rows[5].Name)
	assert.EqualValues(t, 2*1001, rows[5].Latency.Count)
	last := rows[mostMethods]
	assert.Equal(t, "other methods, client of x", last.Name)
	assert.EqualValues(t, 2*(1000-mostMethods), last.Latency.Count)
	assert.EqualValues(t, 2*(1000-mostMethods), last.Answers)
}
