package runtime

import (
	"godat/ep"
	"godat/internal/yield"
	"godat/mem"
)

// mostAtOnce is the most receives that a connection posts as one batch.
const mostAtOnce = 16

// refill posts the missing receives when there are enough of them for a batch: together
// they cost little more than one. The connection has so many receives beyond Depth that
// at least Depth are posted while the others wait.
func (c *Conn) refill() {
	if int(c.missing.Load()) >= c.cfg.batch {
		c.receiveMissing()
	}
}

// receiveMissing posts the missing receives. Those for which there is no buffer are missing
// until a later refill. A buffer may come back while none seems to be missing, so it looks for one
// once more when it has said how many are.
//
//go:noinline
func (c *Conn) receiveMissing() {
	for c.receiveSome() && int(c.missing.Load()) >= c.cfg.batch && c.buffers.AnyFree() {
	}
}

// receiveSome posts the missing receives, as far as there are buffers. It reports whether buffers
// are all that it lacked.
func (c *Conn) receiveSome() (lacks bool) {
	var cookies [mostAtOnce]uint64
	for n := int(c.missing.Swap(0)); n > 0; {
		want := min(n, mostAtOnce)
		got := c.buffers.LendAll(connCookie, cookies[:want])
		posted, err := got, error(nil)
		if !c.own.PostPieces(c.piece, c.step, cookies[:got]) {
			posted, err = c.receiveSlowly(cookies[:got])
		}
		for _, cookie := range cookies[posted:got] {
			c.retire(cookie)
		}
		n -= posted
		if err != nil || got < want { // the connection is over, or has no buffer now
			yield.Point()
			c.missing.Add(int32(n))
			return err == nil
		}
	}
	return false
}

// receiveSlowly posts a receive into the buffer of each cookie by DTOs, and returns how many
// it posted.
func (c *Conn) receiveSlowly(cookies []uint64) (posted int, err error) {
	var dtos [mostAtOnce]ep.DTO
	for i, cookie := range cookies {
		d := &dtos[i]
		d.Cookie, d.Segment = cookie, c.pool.At(int(uint32(cookie))).Segment()
	}
	return c.own.PostRecvs(dtos[:len(cookies)])
}

// pieces returns all of the first of a pool's buffers, of that size, and the distance from each to the next.
func pieces(pool *mem.BufferPool, size int) (first mem.Segment, step uint64) {
	first = pool.At(0).Segment()
	first.Len = uint32(size)
	return first, pool.At(1).Segment().Addr - first.Addr // there are buffersPerDepth, at least
}
