package loop

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func wr(op hw.Op, s *side, off int, n uint32, rkey uint32, remote uint64) hw.SendWR {
	return hw.SendWR{ID: 1, Op: op, Flags: hw.WRSignaled, SGL: []hw.SGE{{Addr: s.addr(off), Len: n, LKey: s.mr.LKey()}}, RKey: rkey, RemoteAddr: remote}
}

// Every way in which a request can fail: what each side hears, and that the connection
// is over for both sides.
func TestEachFailureHasItsStatusOnBothSides(t *testing.T) {
	const (
		okay    = hw.StatusSuccess
		flushed = hw.StatusFlushed
	)
	noReads := func(in, out int) func(*hw.QPConfig) {
		return func(cfg *hw.QPConfig) { cfg.ReadsIn, cfg.ReadsOut = in, out }
	}
	for name, c := range map[string]struct {
		change     func(*hw.QPConfig)
		request    func(a, b *side) hw.SendWR
		sent, recv hw.Status // recv is of one receive of 16 bytes
	}{
		"a message that fits": {nil, func(a, b *side) hw.SendWR { return send(1, a.sge(0, 16)) }, okay, okay},
		"a message one byte too long for the receive": {nil, func(a, b *side) hw.SendWR {
			return send(1, a.sge(0, 17))
		}, hw.StatusRemoteResponder, hw.StatusLocalLength},
		"a send from a key that never was": {nil, func(a, b *side) hw.SendWR {
			return send(1, hw.SGE{Addr: a.addr(0), Len: 1, LKey: a.mr.LKey() ^ 1})
		}, hw.StatusLocalProtection, flushed},
		"a send with a bad second segment": {nil, func(a, b *side) hw.SendWR {
			return send(1, a.sge(0, 1), hw.SGE{Addr: a.addr(memLen), Len: 1, LKey: a.mr.LKey()})
		}, hw.StatusLocalProtection, flushed},
		"a send that ends one byte out of bounds": {nil, func(a, b *side) hw.SendWR {
			return send(1, hw.SGE{Addr: a.addr(memLen - 4), Len: 5, LKey: a.mr.LKey()})
		}, hw.StatusLocalProtection, flushed},
		"a send that begins one byte out of bounds": {nil, func(a, b *side) hw.SendWR {
			return send(1, hw.SGE{Addr: a.addr(0) - 1, Len: 4, LKey: a.mr.LKey()})
		}, hw.StatusLocalProtection, flushed},
		"a send with the peer's key": {nil, func(a, b *side) hw.SendWR {
			return send(1, b.sge(0, 4))
		}, hw.StatusLocalProtection, flushed},
		"a send longer than the transport's maximum": {nil, func(a, b *side) hw.SendWR {
			huge := hw.SGE{Addr: a.addr(0), Len: 1 << 31, LKey: a.mr.LKey()}
			return send(1, huge, huge)
		}, hw.StatusLocalLength, flushed},
		"a write": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpWrite, a, 0, 32, b.mr.RKey(), b.addr(memLen-32))
		}, okay, flushed},
		"a write one byte out of bounds": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpWrite, a, 0, 32, b.mr.RKey(), b.addr(memLen-31))
		}, hw.StatusRemoteAccess, flushed},
		"a write before the region": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpWrite, a, 0, 32, b.mr.RKey(), b.addr(0)-1)
		}, hw.StatusRemoteAccess, flushed},
		"a write whose range wraps around": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpWrite, a, 0, 32, b.mr.RKey(), ^uint64(0)-15)
		}, hw.StatusRemoteAccess, flushed},
		"a write to a key that never was": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpWrite, a, 0, 32, b.mr.RKey()+1, b.addr(0))
		}, hw.StatusRemoteAccess, flushed},
		"a write of several segments to a key that never was": {nil, func(a, b *side) hw.SendWR {
			w := wr(hw.OpWrite, a, 0, 32, b.mr.RKey()+1, b.addr(0))
			w.SGL = append(w.SGL, a.sge(0, 1))
			return w
		}, hw.StatusRemoteAccess, flushed},
		"a write from a bad segment": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpWrite, a, memLen-3, 4, b.mr.RKey(), b.addr(0))
		}, hw.StatusLocalProtection, flushed},
		"a write into the peer's other zone": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpWrite, a, 0, 32, a.mr.RKey(), a.addr(0))
		}, hw.StatusRemoteAccess, flushed},
		"a write longer than the transport's maximum": {nil, func(a, b *side) hw.SendWR {
			w := wr(hw.OpWrite, a, 0, 1<<31, b.mr.RKey(), b.addr(0))
			w.SGL = append(w.SGL, w.SGL[0])
			return w
		}, hw.StatusLocalLength, flushed},
		"a read": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpRead, a, 0, 32, b.mr.RKey(), b.addr(memLen-32))
		}, okay, flushed},
		"a read one byte out of bounds": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpRead, a, 0, 32, b.mr.RKey(), b.addr(memLen-31))
		}, hw.StatusRemoteAccess, flushed},
		"a read into a bad segment": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpRead, a, memLen, 1, b.mr.RKey(), b.addr(0))
		}, hw.StatusLocalProtection, flushed},
		"a read longer than the transport's maximum": {nil, func(a, b *side) hw.SendWR {
			w := wr(hw.OpRead, a, 0, 1<<31, b.mr.RKey(), b.addr(0))
			w.SGL = append(w.SGL, w.SGL[0])
			return w
		}, hw.StatusLocalLength, flushed},
		"a read without credits of one's own": {noReads(1, 0), func(a, b *side) hw.SendWR {
			return wr(hw.OpRead, a, 0, 32, b.mr.RKey(), b.addr(0))
		}, hw.StatusLocalEP, flushed},
		"a read without credits of the peer's": {noReads(0, 1), func(a, b *side) hw.SendWR {
			return wr(hw.OpRead, a, 0, 32, b.mr.RKey(), b.addr(0))
		}, hw.StatusRemoteResponder, flushed},
		"an atomic without credits": {noReads(0, 1), func(a, b *side) hw.SendWR {
			return wr(hw.OpFetchAdd, a, 0, 8, b.mr.RKey(), b.addr(0))
		}, hw.StatusRemoteResponder, flushed},
		"an atomic": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpFetchAdd, a, 0, 8, b.mr.RKey(), b.addr(8))
		}, okay, flushed},
		"an atomic off its alignment": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpFetchAdd, a, 0, 8, b.mr.RKey(), b.addr(4))
		}, hw.StatusRemoteResponder, flushed},
		"an atomic out of bounds": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpCompareSwap, a, 0, 8, b.mr.RKey(), b.addr(memLen))
		}, hw.StatusRemoteAccess, flushed},
		"an atomic into seven bytes": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpCompareSwap, a, 0, 7, b.mr.RKey(), b.addr(0))
		}, hw.StatusLocalLength, flushed},
		"an atomic into a bad segment": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpCompareSwap, a, memLen, 8, b.mr.RKey(), b.addr(0))
		}, hw.StatusLocalProtection, flushed},
		"a write with immediate data": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpWriteImm, a, 0, 32, b.mr.RKey(), b.addr(0))
		}, okay, okay},
		"a write with immediate data to a bad key": {nil, func(a, b *side) hw.SendWR {
			return wr(hw.OpWriteImm, a, 0, 32, b.mr.RKey()+1, b.addr(0))
		}, hw.StatusRemoteAccess, flushed},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, c.change)
			b.recv(9, b.sge(0, 16))
			a.post(c.request(a, b), hw.SendWR{ID: 2, Op: hw.OpWrite}) // silent unless flushed
			sent := a.sends.all()
			require.NotEmpty(t, sent)
			assert.Equal(t, c.sent, sent[0].Status)
			if c.sent == okay {
				assert.Len(t, sent, 1)
				b.qp.Break(false)
				assert.Equal(t, c.recv, b.recvs.all()[0].Status)
				return
			}
			require.Len(t, sent, 2)
			assert.Equal(t, hw.WC{ID: 2, Op: hw.OpWrite, Status: flushed}, sent[1])
			require.Len(t, b.recvs.all(), 1)
			assert.Equal(t, c.recv, b.recvs.all()[0].Status)
			assert.Equal(t, hw.ReasonBroken, a.facts.isDown())
			assert.Equal(t, hw.ReasonBroken, b.facts.isDown())
			assert.Equal(t, make([]byte, memLen), b.mem, "nothing is moved by a request that fails")
		})
	}
}

// The privilege that each use of memory needs: with that privilege alone the operation
// works, with all others but not that one it fails.
func TestEachUseOfMemoryNeedsItsPrivilege(t *testing.T) {
	type use struct {
		op     hw.Op
		remote bool
		need   hw.Privileges
		status hw.Status
	}
	for name, u := range map[string]use{
		"source of a send":           {hw.OpSend, false, hw.LocalRead, hw.StatusLocalProtection},
		"receive of a send":          {hw.OpSend, true, hw.LocalWrite, hw.StatusRemoteResponder},
		"source of a write":          {hw.OpWrite, false, hw.LocalRead, hw.StatusLocalProtection},
		"target of a write":          {hw.OpWrite, true, hw.RemoteWrite, hw.StatusRemoteAccess},
		"sink of a read":             {hw.OpRead, false, hw.LocalWrite, hw.StatusLocalProtection},
		"source of a read":           {hw.OpRead, true, hw.RemoteRead, hw.StatusRemoteAccess},
		"sink of a fetch-add":        {hw.OpFetchAdd, false, hw.LocalWrite, hw.StatusLocalProtection},
		"target of a fetch-add":      {hw.OpFetchAdd, true, hw.RemoteAtomic, hw.StatusRemoteAccess},
		"target of a compare-swap":   {hw.OpCompareSwap, true, hw.RemoteAtomic, hw.StatusRemoteAccess},
		"source of an immediate one": {hw.OpWriteImm, false, hw.LocalRead, hw.StatusLocalProtection},
		"target of an immediate one": {hw.OpWriteImm, true, hw.RemoteWrite, hw.StatusRemoteAccess},
	} {
		for _, priv := range []hw.Privileges{u.need, all &^ u.need} {
			t.Run(name+" with "+priv.String(), func(t *testing.T) {
				a, b := pair(t, nil)
				at := a
				if u.remote {
					at = b
				}
				region, err := at.dev.Register(at.zone, at.mem, priv)
				require.NoError(t, err)
				defer func() { require.NoError(t, region.Deregister()) }()
				local, target := a.sge(0, 8), b.sge(0, 8)
				if u.remote {
					target.LKey = region.LKey()
				} else {
					local.LKey = region.LKey()
				}
				b.recv(1, target)
				a.post(hw.SendWR{
					ID: 1, Op: u.op, Flags: hw.WRSignaled,
					SGL: []hw.SGE{local}, RKey: target.LKey, RemoteAddr: target.Addr,
				})
				want := u.status
				if priv == u.need {
					want = hw.StatusSuccess
				}
				require.Len(t, a.sends.all(), 1)
				assert.Equal(t, want, a.sends.all()[0].Status)
			})
		}
	}
}

func TestAReceiveIntoAFreedRegionFailsOnBothSides(t *testing.T) {
	a, b := pair(t, nil)
	b.recv(1, b.sge(0, 8))
	require.NoError(t, b.mr.Deregister())
	a.post(send(1, a.sge(0, 8)))
	assert.Equal(t, hw.StatusRemoteResponder, a.sends.all()[0].Status)
	assert.Equal(t, hw.StatusLocalProtection, b.recvs.all()[0].Status)
}

func TestEmptySegmentsAreNotChecked(t *testing.T) {
	garbage := hw.SGE{Addr: 1, LKey: 2}
	for _, op := range []hw.Op{hw.OpSend, hw.OpWrite, hw.OpRead, hw.OpWriteImm} {
		for _, sgl := range [][]hw.SGE{nil, {garbage}, {garbage, garbage}} {
			a, b := pair(t, nil)
			b.recv(1, garbage)
			a.post(hw.SendWR{ID: 1, Op: op, Flags: hw.WRSignaled, SGL: sgl, RKey: 3, RemoteAddr: 4})
			assert.Equal(t, []hw.WC{{ID: 1, Op: op}}, a.sends.all())
		}
	}
}

func TestAtomicsReturnTheOldValueAndReplaceItAtTheTarget(t *testing.T) {
	a, b := pair(t, nil)
	target := b.mem[16:24]
	post := func(op hw.Op, operand, compare uint64) uint64 {
		w := wr(op, a, 0, 8, b.mr.RKey(), b.addr(16))
		w.SGL = []hw.SGE{a.sge(1, 3), {}, a.sge(9, 5)} // scattered
		w.Operand, w.Compare = operand, compare
		a.post(w)
		return binary.NativeEndian.Uint64(append(append([]byte{}, a.mem[1:4]...), a.mem[9:14]...))
	}
	assert.EqualValues(t, 0, post(hw.OpFetchAdd, 5, 0))
	assert.EqualValues(t, 5, post(hw.OpFetchAdd, ^uint64(0), 0))
	assert.EqualValues(t, 4, post(hw.OpCompareSwap, 100, 5), "a comparison that fails changes nothing")
	assert.EqualValues(t, 4, post(hw.OpCompareSwap, 100, 4))
	assert.EqualValues(t, 100, binary.NativeEndian.Uint64(target))
	assert.EqualValues(t, 8, a.sends.all()[0].Len)
}

func TestImmediateDataTakesAReceiveAndLeavesItsMemoryAlone(t *testing.T) {
	a, b := pair(t, nil)
	copy(a.mem, "data")
	w := wr(hw.OpWriteImm, a, 0, 4, b.mr.RKey(), b.addr(50))
	w.Imm, w.Flags = 0xabcd, hw.WRSignaled|hw.WRSolicited
	a.post(w)
	assert.Empty(t, a.sends.all(), "it waits for a receive")
	b.recv(5, b.sge(0, 16))
	assert.Equal(t, []hw.WC{{
		ID: 5, Len: 4, Imm: 0xabcd, Op: hw.OpRecvImm, Flags: hw.WCImm | hw.WCSolicited,
	}}, b.recvs.all())
	assert.Equal(t, "data", string(b.mem[50:54]))
	assert.Equal(t, make([]byte, 50), b.mem[:50])
}

func TestNotReadyZeroFailsAtOnce(t *testing.T) {
	a, b := pair(t, func(cfg *hw.QPConfig) { cfg.NotReady = 0 })
	a.post(send(1, a.sge(0, 1)), send(2))
	assert.Equal(t, []hw.WC{
		{ID: 1, Op: hw.OpSend, Status: hw.StatusReceiverNotReady},
		{ID: 2, Op: hw.OpSend, Status: hw.StatusFlushed},
	}, a.sends.all())
	assert.Equal(t, hw.ReasonBroken, b.facts.isDown())
}

func TestAnInvalidPostIsRefused(t *testing.T) {
	a, b := pair(t, func(cfg *hw.QPConfig) { cfg.SendDepth, cfg.RecvDepth, cfg.SendSegments, cfg.RecvSegments = 4, 4, 2, 2 })
	tooMany := make([]hw.SGE, 3)

	n, err := a.qp.PostSend([]hw.SendWR{{Op: hw.OpWrite}, {Op: hw.OpWrite, SGL: tooMany}, {Op: hw.OpWrite}})
	assert.Equal(t, 1, n, "those before it are taken")
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	for _, op := range []hw.Op{hw.OpRecv, hw.OpRecvInvalidate, hw.OpEnd, 40, 255} {
		n, err = a.qp.PostSend([]hw.SendWR{{Op: op}})
		assert.Zero(t, n)
		require.ErrorIs(t, err, hw.ErrModelNotSupported, op)
	}
	n, err = b.qp.PostRecv([]hw.RecvWR{{ID: 1}, {ID: 2, SGL: tooMany}})
	assert.Equal(t, 1, n)
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	n, err = b.qp.PostRecv(make([]hw.RecvWR, 5))
	assert.Equal(t, 3, n, "four fit")
	require.ErrorIs(t, err, hw.ErrInsufficientResources)

	n, err = b.qp.PostSend([]hw.SendWR{{ID: 1, Op: hw.OpSend}, {ID: 2, Op: hw.OpSend, SGL: tooMany}})
	assert.Equal(t, 1, n, "one that waits is taken")
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	n, err = b.qp.PostSend(make([]hw.SendWR, 5))
	assert.Equal(t, 3, n, "four may wait")
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	n, err = b.qp.PostSend([]hw.SendWR{{}, {SGL: tooMany}})
	assert.Zero(t, n)
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	assert.Empty(t, b.sends.all())
}

func TestDrainReportsWhenTheLastSendIsDone(t *testing.T) {
	a, b := pair(t, nil)
	a.post(send(1))
	a.qp.Drain()
	assert.Zero(t, a.facts.isDown())
	b.recv(1)
	assert.Equal(t, hw.ReasonDrained, a.facts.isDown())
	assert.Zero(t, b.facts.isDown())
	a.qp.Break(true)
	assert.Equal(t, hw.ReasonPeer, b.facts.isDown())
}

func TestDrainOfAnIdleQueuePairReportsAtOnce(t *testing.T) {
	a, b := pair(t, nil)
	a.qp.Drain()
	assert.Equal(t, hw.ReasonDrained, a.facts.isDown())
	b.qp.Break(false) // and nothing more is reported
	assert.Equal(t, hw.ReasonDrained, a.facts.isDown())
}

func TestDrainThatFailsReportsBroken(t *testing.T) {
	a, b := pair(t, func(cfg *hw.QPConfig) { cfg.NotReady = 5 * time.Millisecond })
	a.post(send(1))
	a.qp.Drain()
	a.sends.wait(1)
	require.Eventually(t, func() bool { return b.facts.isDown() == hw.ReasonBroken }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return a.facts.isDown() == hw.ReasonBroken }, time.Minute, time.Millisecond)
}
