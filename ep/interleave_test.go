package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/yield"
	"godat/mem"
)

// Whatever the point of a post at which another comes, both are handed on before
// the last of the two has returned.
func TestAPostAtAnyPointOfAnotherIsDone(t *testing.T) {
	for name, post := range map[string]func(r *rig, e *Endpoint, cookie uint64) error{
		"the short way": func(r *rig, e *Endpoint, cookie uint64) error {
			return e.PostSend(cookie, 0, r.lmr.Segment(0, 8))
		},
		"the step": func(r *rig, e *Endpoint, cookie uint64) error {
			_, err := e.PostBatch([]DTO{{Op: hw.OpSend, Cookie: cookie, Segments: []mem.Segment{r.lmr.Segment(0, 8)}}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a, b := r.pair(nil)
			yield.Interleave(func() (first, second, check func()) {
				require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(8, 8)))
				require.NoError(t, b.PostRecv(2, 0, r.lmr.Segment(8, 8)))
				do := func(cookie uint64) func() {
					return func() { require.NoError(t, post(r, a, cookie)) }
				}
				return do(11), do(12), func() {
					var cookies []uint64
					for range 4 {
						ev := r.next(r.dto)
						require.NoError(t, ev.Err())
						cookies = append(cookies, ev.Cookie)
					}
					assert.ElementsMatch(t, []uint64{1, 2, 11, 12}, cookies)
				}
			})
		})
	}
}
