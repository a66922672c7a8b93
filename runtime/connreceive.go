package runtime

import (
	"godat/ep"
	"godat/internal/door"
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

//go:noinline
func (c *Conn) receiveMissing() { c.receive(int(c.missing.Swap(0))) }

// receive posts n receives. Those for which there is no buffer are missing, until a
// later refill.
func (c *Conn) receive(n int) {
	var (
		tags [mostAtOnce]uint64
		dtos [mostAtOnce]ep.DTO
	)
	for n > 0 {
		want := min(n, mostAtOnce)
		got := c.pool.GetAllLent(door.Key{}, tags[:want])
		for i, tag := range tags[:got] {
			d := &dtos[i]
			d.Cookie, d.Segment = connCookie|tag, c.pool.At(int(uint32(tag))).Segment()
		}
		posted, err := c.Endpoint.PostRecvBatch(dtos[:got])
		for _, tag := range tags[posted:got] {
			c.retire(tag)
		}
		n -= posted
		if err != nil || got < want { // the connection is over, or has no buffer now
			c.missing.Add(int32(n))
			return
		}
	}
}
