package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/hw"
	"godat/internal/door"
	"godat/internal/yield"
	"godat/mem"
)

const pieceMark = 1 << 63

// pieces returns the cookies of pieces from one on.
func pieces(from, n uint64) (cookies []uint64) {
	for i := range n {
		cookies = append(cookies, pieceMark|i<<32|(from+i))
	}
	return cookies
}

func TestReceivesIntoPiecesTakeTheirMessages(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	const at, step, size = 32 << 10, 128, 64
	for round := range 40 {
		cookies := pieces(uint64(round), 5)
		require.True(t, b.Own(door.Key{}).PostPieces(r.lmr.Segment(at, size), step, cookies))
		for i, cookie := range cookies {
			for k := range size {
				r.lmr.Bytes()[k] = byte(round + i + k)
			}
			require.NoError(t, a.PostSend(1, hw.Suppress, r.lmr.Segment(0, size)))
			ev := r.next(r.dto)
			require.NoError(t, ev.Err())
			assert.Equal(t, cookie, ev.Cookie)
			assert.EqualValues(t, size, ev.Length)
			to := at + int(uint32(cookie))*step
			assert.Equal(t, r.lmr.Bytes()[:size], r.lmr.Bytes()[to:to+size])
		}
	}
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

func TestReceivesIntoPiecesAreRefusedWhereAPostIs(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRecvDTOs: 8})
	apart := r.endpoint(nil)
	other, err := r.domain.NewPZ()
	require.NoError(t, err)
	elsewhere, err := other.Alloc(4096, hw.AllPrivileges)
	require.NoError(t, err)
	readable, err := r.pz.Alloc(4096, hw.LocalRead)
	require.NoError(t, err)
	gone, err := r.pz.Alloc(4096, hw.AllPrivileges)
	require.NoError(t, err)
	freed := gone.Segment(0, 64)
	require.NoError(t, gone.Free())
	before, _ := wiring(r.dto).Main().Places()
	for name, c := range map[string]struct {
		e       *Endpoint
		first   mem.Segment
		cookies []uint64
	}{
		"no cookies":              {b, r.lmr.Segment(0, 64), nil},
		"more than a batch":       {b, r.lmr.Segment(0, 64), pieces(0, line.BatchPosts+1)},
		"more than the depth":     {b, r.lmr.Segment(0, 64), pieces(0, 9)},
		"a piece out of bounds":   {b, r.lmr.Segment(0, 64), pieces(64<<10/64-2, 3)},
		"a piece far off":         {b, r.lmr.Segment(0, 64), []uint64{0, 1<<32 - 1}},
		"pieces of no length":     {b, r.lmr.Segment(0, 0), pieces(0, 2)},
		"another zone":            {b, elsewhere.Segment(0, 64), pieces(0, 2)},
		"no right to write":       {b, readable.Segment(0, 64), pieces(0, 2)},
		"memory that was freed":   {b, freed, pieces(0, 2)},
		"no connection":           {apart, r.lmr.Segment(0, 64), pieces(0, 2)},
		"the segment of nil":      {b, (*mem.Buffer)(nil).Segment(), pieces(0, 2)},
		"pieces beyond 64 bits":   {b, mem.Segment{Addr: r.lmr.Segment(0, 1).Addr, Len: 1<<32 - 1, Context: r.lmr.Segment(0, 1).Context}, pieces(0, 2)},
		"a context that is wrong": {b, mem.Segment{Addr: r.lmr.Segment(0, 1).Addr, Len: 64}, pieces(0, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			assert.False(t, c.e.Own(door.Key{}).PostPieces(c.first, 64, c.cookies))
		})
	}
	reserved, _ := wiring(r.dto).Main().Places()
	assert.Equal(t, before, reserved, "a refused post keeps no place")
	assert.True(t, b.Own(door.Key{}).PostPieces(r.lmr.Segment(0, 64), 64, pieces(64<<10/64-3, 3)), "the last piece ends with the region")
	for _, e := range []*Endpoint{a, b, apart} {
		require.NoError(t, e.Close())
	}
	require.NoError(t, elsewhere.Free())
	require.NoError(t, readable.Free())
	require.NoError(t, other.Close())
}

// A receive is posted, and others into pieces at each point of that; and the other way
// round. Each takes one message, where it says.
func TestReceivesIntoPiecesKeepTheirOrder(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	const at, step, size = 32 << 10, 64, 8
	one := func() {
		require.NoError(t, b.PostRecv(pieceMark|9, 0, r.lmr.Segment(at+9*step, size)))
	}
	some := func() {
		require.True(t, b.Own(door.Key{}).PostPieces(r.lmr.Segment(at, size), step, pieces(1, 3)))
	}
	next := byte(0)
	check := func() {
		var got []uint64
		for range 4 {
			next++
			r.lmr.Bytes()[0] = next
			require.NoError(t, a.PostSend(1, hw.Suppress, r.lmr.Segment(0, size)))
			ev := r.next(r.dto)
			require.NoError(t, ev.Err())
			got = append(got, ev.Cookie)
			assert.Equal(t, next, r.lmr.Bytes()[at+int(uint32(ev.Cookie))*step])
		}
		assert.ElementsMatch(t, append(pieces(1, 3), pieceMark|9), got)
	}
	yield.Interleave(func() (first, second, after func()) { return one, some, check })
	yield.Interleave(func() (first, second, after func()) { return some, one, check })
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}
