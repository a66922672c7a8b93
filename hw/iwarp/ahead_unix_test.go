//go:build linux || darwin

package iwarp

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// stretch is a segment of a write: where its n octets go in the memory, and whether it is
// the last one of its write.
type stretch struct {
	to, n int
	last  bool
}

// lentRoom is the size of the memory that the writes of these tests go to.
const lentRoom = 128 << 10

// aheadRig is a receiver without a connection, which reads what a test writes.
type aheadRig struct {
	*peer
	r    *receiver
	fds  [2]int
	lent *memory // may hold anything behind a write
	kept *memory // holds nothing but what is written to it
}

func newAheadRig(tb tester, crc bool) *aheadRig {
	n := newNode(tb, New(Config{}), noCRC)
	const priv = hw.LocalWrite | hw.RemoteWrite
	g := &aheadRig{peer: n.peer(), lent: n.memory(lentRoom, priv), kept: n.memory(lentRoom, priv)}
	require.NoError(tb, g.lent.MR.(hw.Remapper).Remap(g.lent.buf))
	var err error
	g.fds, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(tb, err)
	for _, fd := range g.fds {
		require.NoError(tb, syscall.SetNonblock(fd, true))
	}
	in, out := os.NewFile(uintptr(g.fds[0]), "in"), os.NewFile(uintptr(g.fds[1]), "out")
	g.r = &connections(g.peer)[0].recv
	g.r.port.raw, err = in.SyscallConn()
	require.NoError(tb, err)
	tb.Cleanup(func() {
		g.r.in.drop()
		require.NoError(tb, in.Close())
		require.NoError(tb, out.Close())
	})
	g.r.heard, g.r.link.agreed = true, agreement{crc: crc, extended: true}
	g.recv(g.kept.sge(0, 8))
	return g
}

// take writes the octets, at most so many at a time, and makes the receiver take them.
func (g *aheadRig) take(stream []byte, atOnce int) (err error) {
	g.r.own.Acquire()
	defer g.r.own.Release()
	for len(stream) > 0 && err == nil {
		n, _ := syscall.Write(g.fds[1], stream[:min(atOnce, len(stream))]) // as much as the socket takes
		stream = stream[max(n, 0):]
		for err == nil && !g.r.readMore(g.fds[0]) {
			require.NoError(g.tb, g.r.err)
			err = g.r.process()
			require.Less(g.tb, len(g.r.in.buf), spillSize, "the buffer of a spill is given back")
		}
	}
	return err
}

// segments makes the FPDUs of segments to the memory m, and what m holds when they are placed.
func segments(crc bool, m *memory, list []stretch) (stream, image []byte) {
	image = make([]byte, len(m.buf))
	for i, s := range list {
		b := image[s.to:][:s.n]
		for k := range b {
			b[k] = byte(rand.Uint32()) | 1
		}
		h := wire.Header{Opcode: wire.OpWrite, STag: m.RKey(), TO: m.base + uint64(s.to), Last: s.last || i == len(list)-1}
		stream = append(stream, fpdu(crc, h, b)...)
	}
	return stream, image
}

// done is a message behind the writes.
func done(crc bool) []byte {
	return fpdu(crc, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}, []byte("done"))
}

// check compares the memory with an image where something was written, and before that.
func (g *aheadRig) check(image []byte, list []stretch) {
	assert.EqualValues(g.tb, 4, g.received(0).Len, "the message behind the writes")
	first := list[0].to
	for _, s := range list {
		first = min(first, s.to)
		require.Equal(g.tb, string(image[s.to:][:s.n]), string(g.lent.buf[s.to:][:s.n]), "the octets from %d on", s.to)
	}
	require.Equal(g.tb, make([]byte, first), g.lent.buf[:first], "nothing comes before the first place")
}

var aheadCases = map[string][]stretch{
	"all of one length":         {{to: 5, n: 12000}, {to: 12005, n: 12000}, {to: 24005, n: 12000}, {to: 36005, n: 12000}, {to: 48005, n: 700}},
	"up to the end":             {{to: lentRoom - 24100, n: 12000}, {to: lentRoom - 12100, n: 12000}, {to: lentRoom - 100, n: 100}},
	"a shorter one":             {{n: 12000}, {to: 12000, n: 9000}, {to: 21000, n: 12000}, {to: 33000, n: 12000}},
	"a longer one":              {{n: 12000}, {to: 12000, n: 12001}, {to: 24001, n: 12000}, {to: 36001, n: 12000}},
	"another place":             {{to: 40000, n: 12000}, {to: 52000, n: 12000}, {to: 0, n: 12000}, {to: 12000, n: 12000}},
	"two writes":                {{n: 12000}, {to: 12000, n: 12000, last: true}, {to: 24000, n: 12000}, {to: 36000, n: 12000}},
	"short ones behind":         {{n: 12000}, {to: 12000, n: 1}, {to: 12001, n: 2}, {to: 12003, n: 3}, {to: 12006, n: 12000}},
	"the next payload is empty": {{n: 12000}, {to: 12000, n: 0}, {to: 12000, n: 12000}},
}

func TestWhatIsReadAheadComesToItsPlace(t *testing.T) {
	for name, list := range aheadCases {
		t.Run(name, func(t *testing.T) {
			for _, crc := range []bool{false, true} {
				for _, atOnce := range []int{1 << 20, 5000, 997} {
					g := newAheadRig(t, crc)
					stream, image := segments(crc, g.lent, list)
					require.NoError(t, g.take(append(stream, done(crc)...), atOnce))
					g.check(image, list)
				}
			}
		})
	}
}

func TestAnyWritesThatAreReadAheadComeToTheirPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		crc := rapid.Bool().Draw(t, "crc")
		usual := rapid.IntRange(8<<10, 20<<10).Draw(t, "usual")
		list, to := []stretch{{n: usual}}, usual
		for range 7 {
			n := rapid.OneOf(rapid.Just(usual), rapid.IntRange(0, 20<<10)).Draw(t, "n")
			if to+n > lentRoom {
				break
			}
			list = append(list, stretch{to, n, rapid.Bool().Draw(t, "last")})
			to += n
		}
		g := newAheadRig(t, crc)
		stream, image := segments(crc, g.lent, list)
		require.NoError(t, g.take(append(stream, done(crc)...), rapid.IntRange(100, 1<<20).Draw(t, "at once")))
		g.check(image, list)
	})
}

// readOnce makes the receiver take the first octets of a stream, and then read once what else
// comes. The caller owns the receiver then.
func (g *aheadRig) readOnce(stream []byte) {
	require.NoError(g.tb, g.take(stream[:100], 100))
	g.r.own.Acquire()
	_, err := syscall.Write(g.fds[1], stream[100:])
	require.NoError(g.tb, err)
	require.False(g.tb, g.r.readMore(g.fds[0]))
}

func TestOneCallReadsManyPayloads(t *testing.T) {
	g := newAheadRig(t, true)
	stream, image := segments(true, g.lent, aheadCases["all of one length"])
	g.readOnce(stream)
	defer g.r.own.Release()
	assert.True(t, g.r.emptied, "the call got less than it asked for")
	require.True(t, g.r.readMore(g.fds[0]), "everything has come by one call")
	assert.Equal(t, string(image[5:48000]), string(g.lent.buf[5:48000]))
}

// A Read may exchange the memory between two looks of the receiver. What has come to its place
// by then does not come to the other memory, too.
func TestWhatIsReadAheadComesOnce(t *testing.T) {
	for _, crc := range []bool{false, true} {
		g := newAheadRig(t, crc)
		list := aheadCases["all of one length"]
		stream, image := segments(crc, g.lent, list)
		g.readOnce(append(stream, done(crc)...))
		instead := make([]byte, lentRoom)
		require.NoError(t, g.lent.MR.(hw.Remapper).Remap(instead))
		require.NoError(t, g.r.process())
		g.r.own.Release()
		g.check(image, list)
		assert.Equal(t, make([]byte, lentRoom), instead)
	}
}

// What has come where another payload was expected is copied into a larger buffer, and that
// goes back when it is consumed.
func TestAConnectionKeepsNoLargerBuffer(t *testing.T) {
	g := newAheadRig(t, false)
	list := []stretch{{n: 12000}, {to: 12000, n: 11000}, {to: 23000, n: 12000}, {to: 35000, n: 12000}}
	stream, image := segments(false, g.lent, list)
	g.readOnce(append(stream, done(false)...))
	defer g.r.own.Release()
	require.Len(t, g.r.in.buf, spillSize)
	require.NoError(t, g.r.process())
	assert.Less(t, len(g.r.in.buf), spillSize)
	g.check(image, list)
}

func TestAReadAheadThatGetsAllItAsksForMayHaveLeftOctets(t *testing.T) {
	g := newAheadRig(t, true)
	stream, _ := segments(true, g.lent, aheadCases["up to the end"])
	for range 100 {
		stream = append(stream, fpdu(true, wire.Header{Opcode: wire.OpWrite, Last: true})...)
	}
	g.readOnce(stream)
	defer g.r.own.Release()
	assert.Zero(t, g.r.left, "all payloads have come")
	assert.False(t, g.r.emptied, "there is more in the socket")
	require.NoError(t, g.r.process())
	require.False(t, g.r.readMore(g.fds[0]))
	assert.True(t, g.r.emptied)
}

func TestNothingIsReadAheadIntoMemoryThatKeepsItsContents(t *testing.T) {
	list := []stretch{{to: 8, n: 12000}, {to: 12008, n: 100}}
	for _, crc := range []bool{false, true} {
		g := newAheadRig(t, crc)
		stream, image := segments(crc, g.kept, list)
		for range 1000 {
			stream = append(stream, fpdu(crc, wire.Header{Opcode: wire.OpWrite, Last: true})...)
		}
		require.NoError(t, g.take(stream[:3000], 3000)) // so that the rest of the first payload is not read into the buffer
		require.NoError(t, g.take(stream[3000:], 1<<20))
		assert.Equal(t, string(image), string(g.kept.buf), "not an octet but those that were written")
	}
}

// lender is a peer that a script may write to, in memory that may hold anything behind a
// write.
func lender(t *testing.T, crc bool) (s *script, m *memory, r *receiver) {
	n := newNode(t, New(Config{}), noCRC)
	b := n.peer()
	m = n.memory(lentRoom, hw.LocalWrite|hw.RemoteWrite)
	require.NoError(t, m.MR.(hw.Remapper).Remap(m.buf))
	req := plain()
	req.CRC, req.BigFPDU, req.Data.SendRTR = crc, true, true
	s, _ = accepted(t, b, req)
	s.write(fpdu(crc, wire.Header{Opcode: wire.OpWrite, Last: true}))
	b.awaitUp()
	return s, m, &connections(b)[0].recv
}

func TestAWrongCRCIsFoundInWhatIsReadAhead(t *testing.T) {
	for _, at := range []int{100, 13000, 30000} {
		s, m, r := lender(t, true)
		stream, _ := segments(true, m, aheadCases["all of one length"])
		stream[at] ^= 4
		s.write(stream[:3000])
		require.Eventually(t, func() bool {
			r.right.Acquire()
			defer r.right.Give()
			return r.left > 0
		}, patience, tick, "what has come is placed")
		r.right.Acquire() // the receiver waits until everything has come
		s.write(stream[3000:])
		r.right.Give()
		assert.Equal(t, wire.ErrCRC.Term, s.terminate().Code)
	}
}

func TestAWriteFailsWhenItsMemoryIsTakenBack(t *testing.T) {
	for _, crc := range []bool{false, true} {
		s, m, r := lender(t, crc)
		stream, _ := segments(crc, m, aheadCases["all of one length"])
		s.write(stream[:3000])
		require.Eventually(t, func() bool {
			r.right.Acquire()
			defer r.right.Give()
			return r.left == 16+12000-3000
		}, patience, tick, "what has come is placed")
		require.NoError(t, m.MR.(hw.Remapper).Remap(make([]byte, 1)))
		s.write(stream[3000:])
		assert.Equal(t, wire.ErrTaggedSTag.Term, s.terminate().Code)
	}
}

// Short writes fill half of the buffer before the header that the read ahead keeps there. So the
// header moves to make room for the octets between the payloads.
func TestTheHeaderOfAWriteThatIsReadAheadMayMove(t *testing.T) {
	for _, crc := range []bool{false, true} {
		g := newAheadRig(t, crc)
		var stream []byte
		for short := fpdu(crc, wire.Header{Opcode: wire.OpWrite, Last: true}); len(stream) < readSize/2; {
			stream = append(stream, short...)
		}
		require.Len(t, stream, readSize/2, "from here on there is room for a header, and too little behind it")
		list := aheadCases["all of one length"]
		writes, image := segments(crc, g.lent, list)
		require.NoError(t, g.take(append(stream, writes[:3000]...), 1<<20))
		require.Positive(t, g.r.left, "what has come is placed")
		assert.Zero(t, g.r.in.r, "the header has moved")
		require.NoError(t, g.take(append(writes[3000:], done(crc)...), 1<<20))
		g.check(image, list)
	}
}

// Each FPDU of a write has the time stall for its rest. So a peer may take longer for a write
// whose FPDUs are read ahead, as long as none of them stands still.
func TestTheNextFPDUThatIsReadAheadHasALimitOfItsOwn(t *testing.T) {
	for _, crc := range []bool{false, true} {
		g := newAheadRig(t, crc)
		l := g.r.link
		l.Dead = true // there is no socket whose deadline could be set
		stream, _ := segments(crc, g.lent, aheadCases["all of one length"])
		const first, second = 2000, 20000 // in the middle of the first FPDU, and of the next
		require.NoError(t, g.take(stream[:first], first))
		g.r.own.Acquire()
		g.r.limitRest()
		g.r.own.Release()
		require.True(t, g.r.hurried, "the wait for the rest of the first one is limited")
		require.NoError(t, g.take(stream[first:second], second))
		require.True(t, g.r.partial())
		assert.False(t, g.r.hurried, "the next wait sets a limit for the rest of the next one")
		l.Dead = false
	}
}
