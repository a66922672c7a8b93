//go:build !race

package iwarp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

// Two peers may write to the same place at once: the contents are then undefined, but the
// writes are legal. The race detector would report them all the same. The peers'
// connections, whose CRCs cover the contents, must not break.
//
// The test posts each write when the one before it has left, so that the receivers wait:
// then they would read straight into memory, if they did so with CRCs.
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
