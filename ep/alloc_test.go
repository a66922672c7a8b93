//go:build !race

package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

func TestPostsAllocateNothing(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRequestIOV: 8, MaxRecvIOV: 8})
	segs := make([]mem.Segment, 6)
	for i := range segs {
		segs[i] = r.lmr.Segment(64*i, 10)
	}
	out := NewOutbox(a, 2)
	batch := []DTO{{Op: hw.OpWrite, Segments: segs[:1], Remote: r.lmr.Remote(0, 10)}, {Op: hw.OpSend, Segments: segs[:2]}}
	var buf [8]event.Event
	both := func(err1, err2 error) {
		if err1 != nil || err2 != nil {
			t.Error(err1, err2)
		}
	}
	for name, post := range map[string]func(){
		"single":       func() { both(b.PostRecv(1, 0, segs[0]), a.PostSend(1, 0, segs[1])) },
		"six segments": func() { both(b.PostRecv(1, 0, segs...), a.PostSend(1, 0, segs...)) },
		"RDMA": func() {
			both(a.PostRDMAWrite(1, 0, r.lmr.Remote(0, 10), segs[0]), b.PostRDMARead(1, 0, r.lmr.Remote(0, 10), segs[0]))
		},
		"batch": func() {
			_, err := a.PostBatch(batch)
			both(b.PostRecv(1, 0, segs[0], segs[1]), err)
		},
		"lists of one": func() {
			_, err := b.PostRecvBatch([]DTO{{Segment: r.lmr.Segment(0, 64)}})
			_, err2 := a.PostBatch([]DTO{{Op: hw.OpSend, Segment: r.lmr.Segment(64, 64)}})
			both(err, err2)
		},
		"outbox": func() {
			both(b.PostRecv(1, 0, segs[0]), out.Add(DTO{Op: hw.OpSend, Segment: r.lmr.Segment(64, 10)}))
			both(out.Flush(), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Zero(t, testing.AllocsPerRun(200, func() {
				post()
				for {
					if n, _ := r.dto.Dequeue(buf[:]); n == 0 {
						break
					}
				}
			}))
		})
	}
}
