package loop

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

func TestSendMovesBytesAndCompletesBothSides(t *testing.T) {
	a, b := pair(t, nil)
	copy(a.mem, "hello")
	b.recv(7, b.sge(100, 64))
	a.post(send(3, a.sge(0, 5)))
	assert.Equal(t, []hw.WC{{ID: 3, Len: 5, Op: hw.OpSend}}, a.sends.all())
	assert.Equal(t, []hw.WC{{ID: 7, Len: 5, Op: hw.OpRecv}}, b.recvs.all())
	assert.Equal(t, "hello\x00", string(b.mem[100:106]))
}

func TestAnUnsignaledSuccessDoesNotComplete(t *testing.T) {
	a, b := pair(t, nil)
	b.recv(1, b.sge(0, 8))
	b.recv(2)
	a.post(
		hw.SendWR{ID: 1, Op: hw.OpSend, SGL: []hw.SGE{a.sge(0, 8)}},
		hw.SendWR{ID: 2, Op: hw.OpSend, Flags: hw.WRSignaled | hw.WRSolicited},
	)
	assert.Equal(t, []hw.WC{{ID: 2, Op: hw.OpSend}}, a.sends.all())
	assert.Equal(t, []hw.WC{
		{ID: 1, Len: 8, Op: hw.OpRecv},
		{ID: 2, Op: hw.OpRecv, Flags: hw.WCSolicited},
	}, b.recvs.all())
}

func TestASendWaitsForAReceive(t *testing.T) {
	a, b := pair(t, nil)
	a.mem[0], a.mem[1] = 'x', 'y'
	a.post(send(1, a.sge(0, 1)))
	a.post(send(2, a.sge(1, 1)))
	assert.Empty(t, a.sends.all())
	b.recv(1, b.sge(0, 1))
	assert.Len(t, a.sends.all(), 1)
	b.recv(2, b.sge(1, 1))
	assert.Len(t, a.sends.all(), 2)
	assert.Equal(t, "xy", string(b.mem[:2]))
}

// flushed is the completions of a flushed queue.
func flushed(op hw.Op, ids ...uint64) (wcs []hw.WC) {
	for _, id := range ids {
		wcs = append(wcs, hw.WC{ID: id, Op: op, Status: hw.StatusFlushed})
	}
	return wcs
}

func endOf(id uint64) hw.WC { return hw.WC{ID: id, Op: hw.OpEnd} }

func TestBreakFlushesBothEndsAndEndsEachQueueOnce(t *testing.T) {
	for _, c := range []struct {
		orderly bool
		why     hw.Reason
	}{{true, hw.ReasonPeer}, {false, hw.ReasonBroken}} {
		t.Run(c.why.String(), func(t *testing.T) {
			a, b := pair(t, nil)
			a.post(send(1, a.sge(0, 1)), send(2))
			a.recv(11)
			a.recv(12)
			b.qp.Break(c.orderly)
			assert.Equal(t, c.why, a.facts.isDown())
			assert.Zero(t, b.facts.isDown(), "who breaks hears of nothing")
			assert.Equal(t, flushed(hw.OpSend, 1, 2), a.sends.all())
			assert.Equal(t, flushed(hw.OpRecv, 11, 12), a.recvs.all())
			assert.Equal(t, []hw.WC{endOf(sendEnd)}, b.sends.all())
			assert.Equal(t, []hw.WC{endOf(recvEnd)}, b.recvs.all())

			a.post(send(3))
			a.recv(13)
			assert.Equal(t, flushed(hw.OpSend, 1, 2, 3), a.sends.all(), "posts are flushed until Break")
			assert.Equal(t, flushed(hw.OpRecv, 11, 12, 13), a.recvs.all())
			a.qp.Break(true)
			assert.Equal(t, append(flushed(hw.OpSend, 1, 2, 3), endOf(sendEnd)), a.sends.all())
			assert.Equal(t, append(flushed(hw.OpRecv, 11, 12, 13), endOf(recvEnd)), a.recvs.all())
			a.reset()
		})
	}
}

func TestLongQueuesAreFlushedInOrder(t *testing.T) {
	const depth = 200
	a, b := pair(t, func(cfg *hw.QPConfig) { cfg.SendDepth, cfg.RecvDepth = depth, depth })
	var ids []uint64
	for id := range uint64(depth) {
		a.post(send(id))
		a.recv(id)
		ids = append(ids, id)
	}
	b.qp.Break(false)
	assert.Equal(t, flushed(hw.OpSend, ids...), a.sends.all())
	assert.Equal(t, flushed(hw.OpRecv, ids...), a.recvs.all())
}

// An owner that sees a completion may post into the free slot, even from inside the
// sink.
func TestASlotIsFreeWhenItsCompletionIsSeen(t *testing.T) {
	a, b := pair(t, func(cfg *hw.QPConfig) { cfg.SendDepth = 1 })
	a.sends.hook = func(wcs []hw.WC) {
		if wcs[0].ID == 1 {
			a.post(send(2))
		}
	}
	a.post(send(1))
	b.recv(1)
	b.recv(2)
	assert.Len(t, a.sends.all(), 2)
}
