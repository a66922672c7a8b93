package loop

import (
	"math/bits"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw"
	"godat/hw/internal/soft"
)

// Exactly the ranges within the region can be reached. The test tries addresses near
// both ends of the region and of the address space.
func TestExactlyTheRangesWithinARegionAreReached(t *testing.T) {
	a := newSide(t, open(t, uniqueName()), nil)
	d := a.dev.(*device)
	e := soft.NewView(&d.Keys, &soft.QP{Zone: a.zone.(*soft.Zone)})
	first := a.addr(0)
	near := rapid.Custom(func(t *rapid.T) uint64 {
		at := rapid.SampledFrom([]uint64{0, first, first + memLen, first + memLen/2, 1 << 63, 1 << 32}).Draw(t, "at")
		return at + uint64(rapid.Int64Range(-5, 5).Draw(t, "by"))
	})
	rapid.Check(t, func(t *rapid.T) {
		addr := near.Draw(t, "addr")
		n := rapid.OneOf(rapid.Uint32Range(1, 10), rapid.Uint32Range(memLen-5, memLen+5), rapid.Uint32Min(1)).Draw(t, "n")
		last, wraps := bits.Add64(addr, uint64(n-1), 0)
		inside := wraps == 0 && addr >= first && last < first+memLen
		got := e.Reach(addr, n, a.mr.LKey(), hw.LocalRead)
		if !inside {
			require.Nil(t, got)
			return
		}
		require.Equal(t, unsafe.Pointer(&a.mem[addr-first]), got)
	})
}
