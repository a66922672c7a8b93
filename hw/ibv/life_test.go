//go:build linux && cgo

package ibv

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestWhatIsHeardOfAnEarlierLifeEndsNoConnection(t *testing.T) {
	reported := 0
	d := &device{async: func(hw.AsyncEvent) { reported++ }}
	w := &d.watcher
	w.dev = d
	q := &queuePair{dev: d, life: 2}
	q.rings.qp_num = 8
	q.become(phaseUp)
	require.EqualValues(t, 2, w.lifeOf(q, 8))
	require.EqualValues(t, noLife, w.lifeOf(q, 7), "the device's queue pair of the life before")

	w.noticed(q, 7, ^uint32(0))
	w.qpError(q, 7, 1)
	assert.Equal(t, 1, reported)
	assert.Equal(t, phaseUp, q.at())
}

func TestALifeThatAProgramEndsInAsyncIsNotEndedTwice(t *testing.T) {
	d := &device{}
	q := &queuePair{dev: d, life: 1}
	q.rings.qp_num = 7
	q.become(phaseUp)
	d.watcher.dev = d
	d.async = func(hw.AsyncEvent) { q.life, q.rings.qp_num = 2, 8 } // Reset, and a connection that is up already
	d.watcher.qpError(q, 7, 1)
	assert.Equal(t, phaseUp, q.at())
}
