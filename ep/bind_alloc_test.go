//go:build !race

package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

func TestBindsAllocateNothing(t *testing.T) {
	r := newRig(t)
	_, b := r.pair(nil)
	w := r.rmr()
	var buf [8]event.Event
	for _, to := range []mem.Binding{{Segment: r.lmr.Segment(0, 8), Privileges: hw.RemoteWrite}, {}} {
		assert.Zero(t, testing.AllocsPerRun(200, func() {
			if _, err := b.PostBind(1, 0, w, to); err != nil {
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
