package wire_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw/iwarp/wire"
)

// Typed from RFC 7306 figures 4 and 5.
var atomicRows = []struct {
	name  string
	bytes string
	want  wire.AtomicRequest
}{
	{
		"FetchAdd",
		`00000000 01020304 0a0b0c0d 1112131415161718
		 0000000000000005 8000000080000000 0000000000000000 ffffffffffffffff`,
		wire.AtomicRequest{
			Op: wire.FetchAdd, ID: 0x01020304, STag: 0x0a0b0c0d, TO: 0x1112131415161718,
			Data: 5, Mask: 0x8000000080000000, CompareMask: math.MaxUint64,
		},
	},
	{
		"CmpSwap",
		`00000002 01020304 0a0b0c0d 1112131415161718
		 2122232425262728 3132333435363738 4142434445464748 5152535455565758`,
		wire.AtomicRequest{
			Op: wire.CmpSwap, ID: 0x01020304, STag: 0x0a0b0c0d, TO: 0x1112131415161718,
			Data: 0x2122232425262728, Mask: 0x3132333435363738,
			Compare: 0x4142434445464748, CompareMask: 0x5152535455565758,
		},
	},
}

func TestAtomicRequestsAreReadAndMade(t *testing.T) {
	for _, row := range atomicRows {
		t.Run(row.name, func(t *testing.T) {
			b := unhex(t, row.bytes)
			require.Len(t, b, wire.AtomicRequestSize)
			var a wire.AtomicRequest
			n, err := a.Parse(b)
			require.NoError(t, err)
			assert.Equal(t, len(b), n)
			assert.Equal(t, row.want, a)
			assert.Equal(t, b, a.Append(nil))
			_, err = a.Parse(b[:len(b)-1])
			require.ErrorIs(t, err, wire.ErrIncomplete)
		})
	}
}

func TestReservedBitsOfAnAtomicRequestAreNotLookedAt(t *testing.T) {
	b := unhex(t, atomicRows[1].bytes)
	b[0], b[3] = 0xff, 0xf2
	var a wire.AtomicRequest
	_, err := a.Parse(b)
	require.NoError(t, err)
	assert.Equal(t, atomicRows[1].want, a)

	b = unhex(t, atomicRows[0].bytes)
	b[36], b[44] = 1, 2 // compare data and mask, which a FetchAdd ignores
	_, err = a.Parse(b)
	require.NoError(t, err)
	assert.Equal(t, atomicRows[0].want, a)
	a.Compare, a.CompareMask = 1, 2
	assert.Equal(t, unhex(t, atomicRows[0].bytes), a.Append(nil), "and sent as the RFC wants")
}

func TestAnUnknownAtomicOperationIsRefused(t *testing.T) {
	for op := range byte(16) {
		if op == 0 || op == 2 {
			continue
		}
		b := unhex(t, atomicRows[1].bytes)
		b[3] = op
		var a wire.AtomicRequest
		_, err := a.Parse(b)
		require.ErrorIs(t, err, wire.ErrAtomicOp)
		assert.Equal(t, uint32(0x01020304), a.ID)
		assert.Equal(t, uint64(17), a.Apply(17))
	}
}

func TestAnAtomicWhoseTargetWrapsIsRefused(t *testing.T) {
	for _, op := range []wire.AtomicOp{wire.FetchAdd, wire.CmpSwap} {
		for to, want := range map[uint64]error{math.MaxUint64 - 8: nil, math.MaxUint64 - 7: wire.ErrWrap, math.MaxUint64: wire.ErrWrap} {
			sent := wire.AtomicRequest{Op: op, TO: to, ID: 5}
			var a wire.AtomicRequest
			_, err := a.Parse(sent.Append(nil))
			require.ErrorIs(t, err, want)
			assert.Equal(t, uint32(5), a.ID)
		}
	}
}

func TestAtomicResponsesAreReadAndMade(t *testing.T) {
	b := unhex(t, "01020304 1112131415161718")
	var a wire.AtomicResponse
	n, err := a.Parse(b)
	require.NoError(t, err)
	assert.Equal(t, 12, n)
	assert.Equal(t, wire.AtomicResponse{ID: 0x01020304, Original: 0x1112131415161718}, a)
	assert.Equal(t, b, a.Append(nil))
	_, err = a.Parse(b[:11])
	require.ErrorIs(t, err, wire.ErrIncomplete)
}

// fetchAdd is the pseudocode of RFC 7306 section 5.1.1, bit by bit.
func fetchAdd(old, data, mask uint64) (sum uint64) {
	carry := uint64(0)
	for bit := range 64 {
		s := carry + old>>bit&1 + data>>bit&1
		sum |= s & 1 << bit
		carry = s >> 1 &^ (mask >> bit & 1)
	}
	return sum
}

func TestAtomicsDoWhatTheRFCsPseudocodeDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.Uint64()
		a := wire.AtomicRequest{
			Data: word.Draw(t, "data"), Mask: word.Draw(t, "mask"),
			Compare: word.Draw(t, "compare"), CompareMask: word.Draw(t, "compareMask"),
		}
		old := word.Draw(t, "old")
		assert.Equal(t, fetchAdd(old, a.Data, a.Mask), a.Apply(old))

		a.Op = wire.CmpSwap
		want := old
		if rapid.Bool().Draw(t, "equal") {
			old = old&^a.CompareMask | a.Compare&a.CompareMask
			want = old
		}
		if (a.Compare^old)&a.CompareMask == 0 {
			want = old & ^a.Mask | a.Data&a.Mask
		}
		assert.Equal(t, want, a.Apply(old))
	})
}

func TestAFetchAddCarriesWithinItsMask(t *testing.T) {
	add := wire.AtomicRequest{Op: wire.FetchAdd, Data: 3}
	assert.Equal(t, uint64(2), add.Apply(math.MaxUint64))
	add.Mask = 1 << 31 // two counters of 32 bits
	assert.Equal(t, uint64(7<<32|2), add.Apply(7<<32|0xffffffff))
	swap := wire.AtomicRequest{Op: wire.CmpSwap, Data: 8, Mask: math.MaxUint64, Compare: 5, CompareMask: math.MaxUint64}
	assert.Equal(t, uint64(8), swap.Apply(5))
	assert.Equal(t, uint64(6), swap.Apply(6))
}
