package hwtest

import (
	"encoding/binary"
	"errors"

	"godat/hw"
)

// atomicsThroughWindows runs atomics through zero-based windows that begin at several
// bytes of a word: the alignment of an offset says nothing about that of the address.
func atomicsThroughWindows(r *rig) {
	if !r.b.attr.ZeroBased {
		return
	}
	for _, begin := range []int{0, 1, 4, 7} {
		for _, off := range []int{0, 4, 8 - begin, 8} {
			for _, op := range []hw.Op{hw.OpFetchAdd, hw.OpCompareSwap} {
				a, b := r.pair()
				g := r.b.mem(32, localAll)
				begin := begin + int(-g.base%8)
				wr := bindOf(r.b.newWindow(r.b.zone, nil), g, begin, 16, hw.RemoteAtomic)
				wr.Bind.ZeroBased = true
				key := wr.Bind.Key
				r.must.Equal(hw.StatusSuccess, b.sent(b.post(wr)).Status)
				want, memory := hw.StatusRemoteResponder, make([]byte, 32)
				if (g.base+uint64(begin+off))%8 == 0 {
					want = hw.StatusSuccess
					binary.NativeEndian.PutUint64(memory[begin+off:], 1)
				}
				near := r.a.mem(8, localAll)
				out, _, err := a.tryPost(hw.SendWR{
					Op: op, Flags: hw.WRSignaled, SGL: []hw.SGE{near.all()}, RKey: key, RemoteAddr: uint64(off), Operand: 1,
				})
				if errors.Is(err, errors.ErrUnsupported) {
					r.tb.Logf("the two ends did not agree on atomics: %v", err)
					return
				}
				r.must.NoError(err)
				r.also.Equal(want, a.sent(out).Status, "%v at %d of a window at %d", op, off, begin)
				r.also.Equal(memory, g.buf)
			}
		}
	}
}
