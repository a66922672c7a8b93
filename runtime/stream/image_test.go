package stream

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An image is as large as what is written from it needs, whatever the peer's ring may hold.
func TestAnImageFollowsWhatIsWritten(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		for client.line.flow.out.peer.Len == leastRing { // until the server has offered its second ring
			crossing(t, client, server, body(3*leastRing/4, 1))
		}
		for n := range 50 {
			crossing(t, client, server, body(1000+n, 2))
		}
		assert.Len(t, client.line.flow.out.image.mem, leastImage)
		crossing(t, client, server, body(12_000, 3))
		crossing(t, client, server, body(12_000, 4)) // by now the sends of the old image are done
		assert.LessOrEqual(t, len(client.line.flow.out.image.mem), 2*leastImage)
		assert.Equal(t, uint32(defaultRing), client.line.flow.out.peer.Len)
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
