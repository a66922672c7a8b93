//go:build !race

package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw/event"
)

func TestPostingToASharedQueueAllocatesNothing(t *testing.T) {
	r := newRig(t)
	q := r.srq(0, 0)
	from, _ := r.feeder(q, r.dto)
	first, second := r.lmr.Segment(0, 8), r.lmr.Segment(8, 8)
	var buf [8]event.Event
	assert.Zero(t, testing.AllocsPerRun(200, func() {
		if q.PostRecv(1, first, second) != nil || from.PostSend(2, 0, first) != nil {
			t.Error("a post failed")
		}
		for {
			if n, _ := r.dto.Dequeue(buf[:]); n == 0 {
				break
			}
		}
	}))
}
