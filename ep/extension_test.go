package ep

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

func TestAtomicsReturnWhatWasThere(t *testing.T) {
	r := newRig(t)
	counter, err := r.pz.Alloc(4096, hw.LocalRead|hw.LocalWrite|hw.RemoteAtomic)
	require.NoError(t, err)
	a, _ := r.pair(nil)
	word := counter.Bytes()[:8]
	old := r.lmr.Bytes()[:8]
	at, into := counter.Remote(0, 8), r.lmr.Segment(0, 8)
	for _, c := range []struct {
		post        func() error
		op          hw.Op
		start, want uint64
	}{
		{func() error { return a.PostFetchAdd(1, 0, 0x10, at, into) }, hw.OpFetchAdd, 0x10, 0x20},
		{func() error { return a.PostFetchAdd(1, 0, 1, at, into) }, hw.OpFetchAdd, ^uint64(0), 0},
		{func() error { return a.PostCompareSwap(1, 0, 0x12345, 0x98765, at, into) }, hw.OpCompareSwap, 0x12345, 0x98765},
		{func() error { return a.PostCompareSwap(1, 0, 0x12345, 0x98765, at, into) }, hw.OpCompareSwap, 7, 7},
	} {
		binary.NativeEndian.PutUint64(word, c.start)
		require.NoError(t, c.post())
		assert.Equal(t, event.Event{Number: event.IBDTOEvent, Cookie: 1, Op: c.op, Length: 8, Source: a}, r.next(r.dto))
		assert.Equal(t, c.start, binary.NativeEndian.Uint64(old))
		assert.Equal(t, c.want, binary.NativeEndian.Uint64(word))
	}
	require.ErrorIs(t, a.PostFetchAdd(1, 0, 1, counter.Remote(0, 16), into), hw.ErrLength)
	require.ErrorIs(t, a.PostCompareSwap(1, 0, 1, 1, at, r.lmr.Segment(0, 4)), hw.ErrLength)
	require.ErrorIs(t, a.PostFetchAdd(1, hw.SolicitedWait, 1, at, into), hw.ErrInvalidParameter)
	r.none(r.dto)
	// Without the privilege the peer refuses.
	require.NoError(t, a.PostFetchAdd(2, 0, 1, r.lmr.Remote(64, 8), into))
	assert.Equal(t, hw.StatusRemoteAccess, r.next(r.dto).Status)
	require.NoError(t, a.Close())
	require.NoError(t, counter.Free())
}

// In a zero-based window the remote address is an offset, which says nothing about the
// address in memory.
func TestAnAtomicNeedsAnAlignedAddressInThePeersMemory(t *testing.T) {
	for name, c := range map[string]struct {
		begin, off int
		zeroBased  bool
		want       hw.Status
	}{
		"an aligned word of a region":                  {0, 8, false, hw.StatusSuccess},
		"another word of a region":                     {0, 4, false, hw.StatusRemoteResponder},
		"an aligned word at an odd offset":             {4, 4, true, hw.StatusSuccess},
		"another word, at an offset that is even by 8": {4, 8, true, hw.StatusRemoteResponder},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			l, err := r.pz.Alloc(64, hw.LocalRead|hw.LocalWrite|hw.RemoteAtomic)
			require.NoError(t, err)
			a, b := r.pair(nil)
			at := l.Remote(c.begin+c.off, 8)
			if c.zeroBased {
				at = r.bind(b, r.rmr(), mem.Binding{Segment: l.Segment(c.begin, 32), Privileges: hw.RemoteAtomic, ZeroBased: true})
				at.Addr, at.Len = uint64(c.off), 8
			}
			for _, post := range []func() error{
				func() error { return a.PostFetchAdd(1, 0, 1, at, r.lmr.Segment(0, 8)) },
				func() error { return a.PostCompareSwap(1, 0, 1, 2, at, r.lmr.Segment(0, 8)) },
			} {
				require.NoError(t, post())
				assert.Equal(t, c.want, r.next(r.dto).Status)
				if c.want != hw.StatusSuccess {
					break // the connection is broken
				}
				assert.NotZero(t, binary.NativeEndian.Uint64(l.Bytes()[c.begin+c.off:]))
			}
			require.NoError(t, r.adapter.Close())
			for _, w := range r.windows {
				require.NoError(t, w.Free())
			}
			require.NoError(t, l.Free())
		})
	}
}

func TestAWriteWithImmediateConsumesAReceive(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	copy(r.lmr.Bytes(), "written")
	require.NoError(t, b.PostRecv(5, 0))
	require.NoError(t, a.PostRDMAWriteImmediate(6, hw.SolicitedWait, 0x7777, r.lmr.Remote(4096, 7), r.lmr.Segment(0, 7)))
	got := map[uint64]event.Event{}
	for range 2 {
		ev := r.next(r.dto)
		got[ev.Cookie] = ev
	}
	imm, ok := got[5].Immediate()
	assert.True(t, ok)
	assert.Equal(t, uint32(0x7777), imm)
	assert.Equal(t, hw.OpRecvImm, got[5].Op)
	assert.Equal(t, event.IBDTOEvent, got[5].Number)
	assert.Equal(t, uint32(7), got[5].Length)
	assert.Equal(t, event.Event{Number: event.IBDTOEvent, Cookie: 6, Op: hw.OpWriteImm, Length: 7, Source: a}, got[6])
	assert.Equal(t, "written", string(r.lmr.Bytes()[4096:4103]))
}

func TestAnOperationThatTheDeviceLacksIsUnsupported(t *testing.T) {
	r := newRig(t)
	r.adapter.attr.Ops &^= hw.Ops(hw.OpSendInvalidate) // like a device without it
	a, b := r.pair(nil)
	err := a.PostSendInvalidate(1, 0, 42, r.lmr.Segment(0, 8))
	require.ErrorIs(t, err, hw.ErrModelNotSupported)
	assert.True(t, errors.Is(err, errors.ErrUnsupported))
	requireWorks(t, r, a, b)
}
