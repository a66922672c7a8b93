//go:build linux || darwin

package iwarp

import (
	"bytes"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// tap has the connection traced from this moment on.
func (g *aheadRig) tap() (file *tape) {
	near, far := net.Pipe()
	g.tb.Cleanup(func() { _, _ = near.Close(), far.Close() })
	file = newTape()
	g.r.link.conn = near
	require.True(g.tb, g.r.link.attach(newTap(g.r.link, file)))
	return file
}

// traced are the octets of a trace that the peer has sent.
func (g *aheadRig) traced(file *tape) []byte {
	in := streams(g.tb, file.Bytes())[2]
	_, n, err := wire.ParseMPARequest(in)
	require.NoError(g.tb, err)
	return in[n:]
}

func TestATraceLeavesOutTheFPDUThatIsReadInPlaceWhenItBegins(t *testing.T) {
	for _, lent := range []bool{false, true} {
		g := newAheadRig(t, lent)
		to := g.kept
		if lent {
			to = g.lent
		}
		stream, _ := segments(lent, to, []stretch{{n: 20000}})
		require.NoError(t, g.take(stream[:9000], 9000))
		file := g.tap()
		require.NoError(t, g.take(append(stream[9000:], done(lent)...), 1<<20))
		assert.Equal(t, done(lent), g.traced(file))
	}
}

func TestATraceThatBeginsAtTheEndHasNoRestOfAnFPDU(t *testing.T) {
	b := newNode(t, New(Config{}), noCRC).peer()
	m := b.memory(30000, hw.LocalWrite|hw.RemoteWrite)
	s, _ := accepted(t, b, plain())
	s.write(fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true}))
	b.awaitUp()
	whole := fpdu(false, wire.Header{Opcode: wire.OpWrite, STag: m.RKey(), TO: m.base, Last: true}, make([]byte, 30000))
	s.write(whole[:9000])
	r := &connections(b)[0].recv
	for begun := false; !begun; runtime.Gosched() {
		if r.right.TryAcquire() {
			begun = r.inPlace.begun
			r.right.Give()
		}
	}
	file, _ := b.trace()
	b.end(false)
	s.write(whole[9000:])
	require.NoError(t, s.conn.Close())
	file.awaitClosed(t)
	_, in := b.ways(t, file, false)
	assert.Empty(t, in)
}

// However octets come, a trace that begins between them has each octet of the stream from an FPDU on:
// at the latest the next one.
func TestATraceOfWhatIsReadInPlaceHasWholeFPDUs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := newAheadRig(rt, rapid.Bool().Draw(rt, "crc"))
		crc := g.r.link.agreed.crc
		var list []stretch
		for to := 0; len(list) < 8; {
			n := rapid.OneOf(rapid.Just(12000), rapid.IntRange(0, 20<<10)).Draw(rt, "n")
			if to+n > lentRoom {
				break
			}
			list = append(list, stretch{to, n, rapid.Bool().Draw(rt, "last")})
			to += n
		}
		to := g.lent
		if rapid.Bool().Draw(rt, "kept") {
			to = g.kept
		}
		stream, _ := segments(crc, to, list)
		stream = append(stream, done(crc)...)
		atOnce := rapid.IntRange(100, 1<<20).Draw(rt, "at once")
		from := rapid.IntRange(0, len(stream)-1).Draw(rt, "from")
		require.NoError(rt, g.take(stream[:from], atOnce))
		file := g.tap()
		require.NoError(rt, g.take(stream[from:], atOnce))
		in := g.traced(file)
		require.True(rt, bytes.HasSuffix(stream, in))
		begin, next := len(stream)-len(in), -1
		boundaries := map[int]bool{}
		for at := 0; at < len(stream); at += wire.FPDUSize(wire.ULPDULength(stream[at:])) {
			if boundaries[at] = true; next < 0 && at >= from {
				next = at
			}
		}
		require.True(rt, boundaries[begin], "it begins with an FPDU")
		if next >= 0 {
			require.LessOrEqual(rt, begin, next, "what begins later is there")
		}
	})
}
