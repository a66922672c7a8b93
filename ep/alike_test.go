package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// given is a queue pair that notes which requests of a run it is given.
type given struct {
	hw.Runner
	requests []likeRequests
}

// likeRequests is what the requests of one call have in common.
type likeRequests struct {
	op    hw.Op
	flags hw.WRFlags
	addr  uint64
	n     int
}

func (g *given) PostRun(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, stride uintptr, n int, rkey uint32, addr uint64) int {
	one := likeRequests{op: op, flags: flags, n: n}
	if op != hw.OpSend {
		one.addr = addr
	}
	g.requests = append(g.requests, one)
	return g.Runner.PostRun(op, flags, id, sge, stride, n, rkey, addr)
}

// The device gets together what differs in ids and segments alone, and every other request by
// itself.
func TestABatchGoesToTheDeviceInGroupsOfLikeRequests(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	_, err := b.PostRecvBatch(r.batchOf(7))
	require.NoError(t, err)
	dtos := r.batchOf(10)
	dtos[2].Flags, dtos[3].Flags = hw.Suppress, hw.Suppress
	for _, i := range []int{4, 5} {
		dtos[i].Op, dtos[i].Remote = hw.OpWrite, r.lmr.Remote(512+8*i, 8)
	}
	dtos[6].Flags = hw.SolicitedWait
	dtos[9].Op, dtos[9].Remote = hw.OpRead, r.lmr.Remote(512, 8)
	g := &given{Runner: runner(a)}
	a.box.SetQP(g)
	n, err := a.PostBatch(dtos)
	require.NoError(t, err)
	require.Equal(t, len(dtos), n)
	a.box.SetQP(g.Runner)
	const signaled, more = hw.WRSignaled, hw.WRMore
	assert.Equal(t, []likeRequests{
		{hw.OpSend, signaled | more, 0, 2},
		{hw.OpSend, more, 0, 2},
		{hw.OpWrite, signaled | more, dtos[4].Remote.Addr, 1},
		{hw.OpWrite, signaled | more, dtos[5].Remote.Addr, 1},
		{hw.OpSend, signaled | hw.WRSolicited | more, 0, 1},
		{hw.OpSend, signaled | more, 0, 2},
		{hw.OpRead, signaled, dtos[9].Remote.Addr, 1},
	}, g.requests)
	r.takeEvents(r.dto, 7+8)
}
