//go:build !race

package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// A bind enters two values in the device's table of keys, which never change and so
// are new each time: the name that is told, and what it is bound to.
func TestABindAllocatesNothingButItsKey(t *testing.T) {
	r := newRig(t)
	_, b := r.pair(nil)
	w := r.rmr()
	to := mem.Binding{Segment: r.lmr.Segment(0, 8), Privileges: hw.RemoteWrite}
	var buf [8]evd.Event
	for _, c := range []struct {
		to     mem.Binding
		allocs float64
	}{{to, 2}, {mem.Binding{}, 0}} {
		assert.Equal(t, c.allocs, testing.AllocsPerRun(200, func() {
			if _, err := b.PostBind(1, 0, w, c.to); err != nil {
				t.Error(err)
			}
			for {
				if n, _ := r.dto.Dequeue(buf[:]); n == 0 {
					break
				}
			}
		}))
	}
	sink, remote := r.lmr.Remote(0, 8), r.lmr.Remote(8, 8)
	assert.Zero(t, testing.AllocsPerRun(200, func() {
		if err := b.PostRDMAReadToRMR(1, 0, sink, remote); err != nil {
			t.Error(err)
		}
		if n, _ := r.dto.Dequeue(buf[:]); n != 1 {
			t.Error(n)
		}
	}), "read")
}
