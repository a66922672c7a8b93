package wire_test

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crcLengths are around each border: of words, of the vectors, of blocks, and of what is
// left.
func crcLengths() []int {
	list := []int{127, 128, 255, 256, 319, 320, 383, 384, 448, 503, 504, 511, 575, 576, 640, 1440}
	for n := range 70 {
		list = append(list, n)
	}
	for _, n := range []int{1 << 10, 2 << 10, 8 << 10, 24 << 10, 64 << 10} {
		list = append(list, n-1, n, n+1, n+255, n+256, n+261)
	}
	return list
}

func TestACRCIsThatOfPackageCRC32(t *testing.T) {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, 100<<10)
	_, _ = r.Read(b)
	for _, n := range crcLengths() {
		for _, at := range []int{0, 1, 14, 63} {
			p, sum := b[at:at+n], uint32(r.Uint64())
			want := crc32.Update(sum, castagnoli, p)
			require.Equal(t, want, wire.UpdateCRC(sum, p), "%d bytes at %d", n, at)

			to := make([]byte, n+3)
			to[1+n] = 0xa5
			require.Equal(t, want, wire.CopyCRC(sum, to[1:], p), "%d bytes at %d", n, at)
			require.Equal(t, p, to[1:1+n])
			require.Equal(t, byte(0xa5), to[1+n], "nothing behind is written")
		}
	}
}

func TestACopyWithoutRoomPanicsAndWritesNothing(t *testing.T) {
	for _, n := range []int{100, 4096, 40 << 10} {
		to := make([]byte, n)
		require.Panics(t, func() { wire.CopyCRC(0, to[:n-1:n-1], bytes.Repeat([]byte{1}, n)) })
		require.Equal(t, make([]byte, n), to)
	}
}

func TestACRCAllocatesNothing(t *testing.T) {
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	require.Zero(t, testing.AllocsPerRun(10, func() { wire.CopyCRC(wire.UpdateCRC(0, a), b, a) }))
}

// Another peer may write to memory that is being sent. Its octets are undefined then, but
// the CRC must be that of the copy. Here the copy itself writes to what is being copied,
// because the two overlap: a second look at an octet finds another one.
func TestACRCIsThatOfTheCopyWhoeverWritesMeanwhile(t *testing.T) {
	const n, most = 20<<10 + 77, 192
	for _, by := range []int{-192, -128, -64, -1, 1, 64, 128, 192} {
		b := make([]byte, most+n+most)
		_, _ = rand.NewChaCha8([32]byte{2}).Read(b)
		to := b[most+by:][:n]
		sum := wire.CopyCRC(0, to, b[most:][:n])
		require.Equal(t, crc32.Checksum(to, castagnoli), sum, "by %d", by)
	}
}
