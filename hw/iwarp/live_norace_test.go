//go:build !race

package iwarp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

// What two peers write to the same place at once is undefined, but legal; the race
// detector would report it all the same. Their connections, whose CRCs cover it, must
// not suffer.
//
// Each write is posted when the one before it has left: so the receivers wait, and
// read what comes where it belongs, if they do so at all.
func TestTwoPeersMayWriteTheSameMemoryAtOnce(t *testing.T) {
	const size, writes = 64 << 10, 300
	p := New(Config{})
	na, nb := newNode(t, p, nil), newNode(t, p, nil)
	src, dst := na.memory(size, hw.LocalRead), nb.memory(size, hw.RemoteWrite)
	for i := range src.buf {
		src.buf[i] = byte(i * 7)
	}
	var wg sync.WaitGroup
	for k := range 2 {
		a, b := na.peer(), nb.peer()
		b.recv()
		join(a, b)
		wg.Go(func() {
			for i := range writes {
				a.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{src.sge(k, size-1)}, RKey: dst.RKey(), RemoteAddr: dst.base})
				if !assert.Equal(t, hw.StatusSuccess, a.sent(i).Status) {
					return
				}
			}
			a.post(hw.SendWR{Op: hw.OpSend})
			assert.Equal(t, hw.StatusSuccess, b.received(0).Status)
		})
	}
	wg.Wait()
}
