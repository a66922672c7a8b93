package stream

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// grown has one end write through the second ring of the other: a ring that is full while nobody reads has one
// offered, where a reader that takes each piece at once needs none.
func grown(t *testing.T, from, to *Conn) {
	t.Helper()
	_, err := from.Write(body(leastRing, 1))
	require.NoError(t, err)
	require.Eventually(t, from.line.flow.out.hasOffer.Load, time.Minute, 10*time.Microsecond)
	_, err = io.ReadFull(to, make([]byte, leastRing))
	require.NoError(t, err)
	crossing(t, from, to, body(leastRing/2, 1))
	require.NotEqual(t, uint32(leastRing), from.line.flow.out.peer.Len)
}

// An image is as large as what is written from it needs, whatever the peer's ring may hold.
func TestAnImageFollowsWhatIsWritten(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		o := &client.line.flow.out
		alone := func(want []byte) { // no write waits for the image, however late a device says that it has sent
			crossing(t, client, server, want)
			require.Eventually(t, func() bool { return o.imageRoom() == len(o.image.mem) }, time.Minute, 10*time.Microsecond)
		}
		grown(t, client, server)
		for n := range 50 {
			alone(body(1000+n, 2))
		}
		assert.Len(t, o.image.mem, leastImage)
		for n := range 2 {
			alone(body(12_000, byte(3+n)))
		}
		assert.Len(t, o.image.mem, 2*leastImage)
		assert.Equal(t, uint32(defaultRing), o.peer.Len)
	})
}

// Where writes wait for the image though the peer's ring has room, the next image is larger:
// a device whose sends take long has as many under way as the ring holds.
func TestAnImageThatWritesWaitForBecomesLarger(t *testing.T) {
	f := &bareConn(leastImage).line.flow
	o := &f.out
	o.peer.Len = defaultRing
	require.Equal(t, leastImage, o.imageSize(4000))
	o.produced.Store(leastImage)
	o.imaged = leastImage
	assert.Zero(t, f.vacant(4000), "all of the image is on its way")
	assert.Equal(t, 2*leastImage, o.imageSize(4000))
	for _, c := range []struct{ peer, want, size int }{
		{leastRing, 4000, leastRing},
		{1 << 20, 9000, 2 * leastImage},
		{1 << 20, 2 * leastImage, 4 * leastImage},
		{1 << 20, mostPiece, mostImage},
		{1 << 20, 10 * mostPiece, mostImage},
	} {
		o.peer.Len = uint32(c.peer)
		assert.Equal(t, c.size, o.imageSize(c.want), "%+v", c)
	}
}
