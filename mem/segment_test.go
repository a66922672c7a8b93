package mem

import (
	"encoding"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

var (
	_ encoding.BinaryAppender    = RemoteSegment{}
	_ encoding.BinaryMarshaler   = RemoteSegment{}
	_ encoding.BinaryUnmarshaler = (*RemoteSegment)(nil)
)

func TestTripletsHaveTheLayoutOfDAT(t *testing.T) {
	assert.EqualValues(t, 16, unsafe.Sizeof(Segment{}))
	assert.EqualValues(t, 16, unsafe.Sizeof(RemoteSegment{}))
	assert.EqualValues(t, 8, unsafe.Offsetof(Segment{}.Len))
	assert.EqualValues(t, 12, unsafe.Offsetof(Segment{}.Context))
}

func TestRemoteSegmentIsEncodedBigEndian(t *testing.T) {
	r := RemoteSegment{Addr: 0x0102030405060708, Len: 0x090a0b0c, Context: 0x0d0e0f10}
	want := []byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10")

	b, err := r.AppendBinary([]byte("before"))
	require.NoError(t, err)
	assert.Equal(t, append([]byte("before"), want...), b)
	b, err = r.MarshalBinary()
	require.NoError(t, err)
	assert.Equal(t, want, b)

	got, err := ParseRemoteSegment(append(want, "after"...))
	require.NoError(t, err)
	assert.Equal(t, r, got)
	var u RemoteSegment
	require.NoError(t, u.UnmarshalBinary(want))
	assert.Equal(t, r, u)
}

func TestRemoteSegmentOfTheWrongLengthIsRefused(t *testing.T) {
	was := RemoteSegment{Addr: 1, Len: 2, Context: 3}
	for n := range 40 {
		b := make([]byte, n)
		_, err := ParseRemoteSegment(b)
		assert.Equal(t, n < RemoteSegmentSize, err != nil, "parse %d", n)
		u := was
		err = u.UnmarshalBinary(b)
		if n == RemoteSegmentSize {
			assert.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, hw.ErrInvalidParameter, "unmarshal %d", n)
		assert.Equal(t, was, u, "unmarshal %d changed it", n)
	}
}

func TestRemoteSegmentEncodesWithoutAllocating(t *testing.T) {
	b := make([]byte, 0, RemoteSegmentSize)
	r := RemoteSegment{Addr: 1, Len: 2, Context: 3}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		b, _ = r.AppendBinary(b[:0])
		_ = r.UnmarshalBinary(b)
	}))
}

func TestTheTextOfARemoteSegmentIsBounded(t *testing.T) {
	r := RemoteSegment{Addr: 0x0102030405060708, Len: 0x90a0b0c, Context: 0xd0e0f10}
	text, err := r.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, "0102030405060708090a0b0c0d0e0f10", string(text))
	var got RemoteSegment
	require.NoError(t, got.UnmarshalText([]byte("0102030405060708090A0B0C0D0E0F10")))
	assert.Equal(t, r, got)
	for _, bad := range []string{"", "01", string(text) + "0", string(text[1:]), " " + string(text[1:]), "0x" + string(text[2:]), string(text[:31]) + "g"} {
		require.ErrorIs(t, got.UnmarshalText([]byte(bad)), hw.ErrInvalidParameter, bad)
		assert.Equal(t, r, got)
	}
	require.ErrorIs(t, (*RemoteSegment)(nil).UnmarshalText(text), hw.ErrInvalidParameter)
}

func FuzzRemoteSegment(f *testing.F) {
	for _, r := range []RemoteSegment{{}, {1, 2, 3}, {^uint64(0), ^uint32(0), ^uint32(0)}} {
		b, _ := r.MarshalBinary()
		f.Add(b)
		f.Add(b[1:])
		f.Add(append(b, 0))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRemoteSegment(b)
		require.Equal(t, len(b) < RemoteSegmentSize, err != nil)
		if err != nil {
			return
		}
		again, err := r.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, b[:RemoteSegmentSize], again)
		var u RemoteSegment
		require.NoError(t, u.UnmarshalBinary(again))
		require.Equal(t, r, u)
		require.Equal(t, len(b) != RemoteSegmentSize, u.UnmarshalBinary(b) != nil)
	})
}

func TestASliceOfRemoteMemoryStaysWithinIt(t *testing.T) {
	r := RemoteSegment{Addr: 1000, Len: 100, Context: 7}
	assert.Equal(t, r, r.Slice(0, 100))
	assert.Equal(t, RemoteSegment{Addr: 1090, Len: 10, Context: 7}, r.Slice(90, 10))
	assert.Zero(t, r.Slice(100, 0).Len)
	nobodys := (*LMR)(nil).Remote(0, 1)
	for _, x := range [][2]int{{0, 101}, {1, 100}, {100, 1}, {-1, 1}, {0, -1}, {math.MaxInt, math.MaxInt}} {
		assert.Equal(t, nobodys, r.Slice(x[0], x[1]), "%v", x)
	}
}
