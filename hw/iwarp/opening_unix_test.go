//go:build linux || darwin

package iwarp

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// exchange gives the lent memory's key other memory, as two Reads that follow each other do.
func (g *aheadRig) exchange() {
	g.tb.Helper()
	require.NoError(g.tb, g.lent.MR.(hw.Remapper).Remap(make([]byte, 1)))
	g.lent.buf = make([]byte, lentRoom)
	require.NoError(g.tb, g.lent.MR.(hw.Remapper).Remap(g.lent.buf))
}

// sent is a send of the octets of body.
func sent(crc bool, msn uint32, body string) []byte {
	return fpdu(crc, wire.Header{Opcode: wire.OpSend, Last: true, MSN: msn}, []byte(body))
}

// behindAWrite is a rig whose receiver has taken a write of these segments, and what the memory
// holds since.
func behindAWrite(t *testing.T, crc bool, list []stretch) (g *aheadRig, image []byte) {
	g = newAheadRig(t, crc)
	stream, image := segments(crc, g.lent, list)
	require.NoError(t, g.take(stream, 1<<20))
	return g, image
}

func TestOneCallReadsAWriteThatBeginsAsTheLastOne(t *testing.T) {
	for _, crc := range []bool{false, true} {
		list := aheadCases["all of one length"]
		g, _ := behindAWrite(t, crc, list)
		g.exchange()
		stream, image := segments(crc, g.lent, list)
		g.r.own.Acquire()
		_, err := syscall.Write(g.fds[1], append(stream, done(crc)...))
		require.NoError(t, err)
		require.False(t, g.r.readMore(g.fds[0]))
		require.True(t, g.r.emptied)
		require.NoError(t, g.r.process())
		g.r.own.Release()
		g.check(image, list)
	}
}

// What comes behind a write does not come to its memory before that was exchanged.
func TestNothingIsReadIntoTheMemoryOfACompleteWrite(t *testing.T) {
	for _, crc := range []bool{false, true} {
		list := aheadCases["all of one length"]
		g, image := behindAWrite(t, crc, list)
		require.NoError(t, g.take(done(crc), 1<<20))
		g.check(image, list)
	}
}

// A reader that is about to exchange the memory, in the midst of a write maybe, must tell the
// bytes of the write from others.
func TestNothingIsReadInVainIntoMemoryThatTakesOnlyWrites(t *testing.T) {
	for _, crc := range []bool{false, true} {
		g, _ := behindAWrite(t, crc, aheadCases["all of one length"])
		g.exchange()
		g.lent.MR.(hw.Remapper).OnlyWrites()
		require.NoError(t, g.take(done(crc), 1<<20))
		assert.Equal(t, make([]byte, lentRoom), g.lent.buf)
	}
}

// A Read whose deadline passes exchanges the memory in the middle of a write, which goes on in
// the other.
func TestNothingIsReadIntoTheMemoryInWhichAWriteEnded(t *testing.T) {
	for _, crc := range []bool{false, true} {
		g := newAheadRig(t, crc)
		list := aheadCases["all of one length"]
		stream, image := segments(crc, g.lent, list)
		require.NoError(t, g.take(stream[:30000], 1<<20))
		g.exchange()
		require.NoError(t, g.take(stream[30000:], 1<<20))
		require.NoError(t, g.take(done(crc), 1<<20))
		assert.Equal(t, make([]byte, 24005), g.lent.buf[:24005])
		assert.Equal(t, string(image[36005:48705]), string(g.lent.buf[36005:48705]))
	}
}

// The receiver waits for a write, and a message comes in its place.
func TestAMessageInThePlaceOfAWriteArrives(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, atOnce := range []int{1, 15, 16, 17, 30, 1 << 20} {
			g, _ := behindAWrite(t, crc, aheadCases["all of one length"])
			g.exchange()
			require.NoError(t, g.take(sent(crc, 1, "message"), atOnce))
			assert.EqualValues(t, len("message"), g.received(0).Len)
			assert.Equal(t, "message", string(g.kept.buf[:7]))
		}
	}
}

func TestAWrongCRCIsFoundInAWriteThatBeginsAsTheLastOne(t *testing.T) {
	for _, at := range []int{12, 100, 13000, 30000} {
		s, m, r := lender(t, true)
		list := aheadCases["all of one length"]
		stream, _ := segments(true, m, list)
		s.write(stream)
		require.Eventually(t, func() bool {
			r.right.mu.Lock()
			defer r.right.mu.Unlock()
			return r.place.opening.likely && !r.place.writing
		}, patience, tick, "the write has come")
		for _, size := range []int{1, lentRoom} {
			require.NoError(t, m.MR.(hw.Remapper).Remap(make([]byte, size)))
		}
		stream, _ = segments(true, m, list)
		stream[at] ^= 4
		r.right.mu.Lock() // the receiver waits until everything has come
		s.write(stream)
		r.right.mu.Unlock()
		assert.Equal(t, wire.ErrCRC.Term, s.terminate().Code, "octet %d", at)
	}
}

func TestWritesThatBeginInAnyWayComeToTheirPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		crc := rapid.Bool().Draw(t, "crc")
		g := newAheadRig(t, crc)
		usual, from := rapid.IntRange(7<<10, 20<<10).Draw(t, "usual"), rapid.IntRange(0, 20<<10).Draw(t, "from")
		received := 0
		message := func(of string) {
			received++
			require.NoError(t, g.take(sent(crc, uint32(received), of), rapid.IntRange(1, 200).Draw(t, "at once")))
			assert.EqualValues(t, len(of), g.received(received-1).Len)
			assert.Equal(t, of, string(g.kept.buf[:len(of)]))
			g.recv(g.kept.sge(0, 8))
		}
		for range rapid.IntRange(2, 4).Draw(t, "rounds") {
			to := rapid.OneOf(rapid.Just(from), rapid.IntRange(0, 20<<10)).Draw(t, "to")
			var list []stretch
			for range rapid.IntRange(1, 5).Draw(t, "segments") {
				n := rapid.OneOf(rapid.Just(usual), rapid.IntRange(1, 20<<10)).Draw(t, "n")
				list = append(list, stretch{to: to, n: n})
				to += n
			}
			stream, image := segments(crc, g.lent, list)
			require.NoError(t, g.take(stream, rapid.OneOf(rapid.Just(1<<20), rapid.IntRange(100, 30000)).Draw(t, "at once")))
			if rapid.Bool().Draw(t, "a message behind") {
				message("behind")
			}
			for _, s := range list {
				require.Equal(t, string(image[s.to:][:s.n]), string(g.lent.buf[s.to:][:s.n]), "the octets from %d on", s.to)
			}
			if rapid.IntRange(0, 3).Draw(t, "exchanges") > 0 {
				g.exchange()
			}
			if rapid.Bool().Draw(t, "a message before") {
				message("before")
			}
		}
	})
}
