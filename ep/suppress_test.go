package ep

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// Requests that complete silently give their places back, whatever the length of
// the dispatcher and the depth of the endpoints, and even if another endpoint fed
// the dispatcher before and then stopped.
func TestSuppressedRequestsAloneNeverUseUpAnyDispatcher(t *testing.T) {
	for name, way := range map[string]struct {
		mode  evd.Mode
		batch int
	}{
		"queue": {evd.ModeQueue, 1}, "channel": {evd.ModeChannel, 1}, "batches": {evd.ModeBatch, 1},
		"posted in batches": {evd.ModeQueue, 5}, "in batches that fill it": {evd.ModeQueue, 7},
	} {
		for _, qlen := range []int{1, 2, 3, 7} {
			for _, depth := range []int{1, 2, 5, 64, 256} {
				t.Run(fmt.Sprintf("%s/%d/%d", name, qlen, depth), func(t *testing.T) {
					r := newRig(t)
					to := r.dispatcher(way.mode, qlen)
					defer wiring(to).Abort()
					var ends [3]*Endpoint
					for i := range ends {
						ends[i] = r.endpointOf(Config{PZ: r.pz, Request: to, Conn: r.conn, Attr: &Attr{MaxRequestDTOs: depth}})
						r.connect(ends[i], r.endpoint(nil))
					}
					for _, e := range append(ends[:], ends[0]) {
						r.suppressed(e, 2*depth+300, way.batch)
					}
					for _, e := range ends {
						require.NoError(t, e.Close())
					}
				})
			}
		}
	}
}

// suppressed posts n suppressed writes.
func (r *rig) suppressed(e *Endpoint, n, batch int) {
	deadline := time.Now().Add(20 * time.Second)
	dtos := make([]DTO, batch)
	for i := range dtos {
		dtos[i] = DTO{Op: hw.OpWrite, Flags: hw.Suppress, Remote: r.lmr.Remote(0, 8), Segments: []mem.Segment{r.lmr.Segment(8, 8)}}
	}
	for n > 0 {
		k, err := e.PostBatch(dtos[:min(n, batch)])
		if n -= k; err == nil {
			continue
		}
		require.ErrorIs(r.t, err, hw.ErrInsufficientResources)
		require.True(r.t, time.Now().Before(deadline), "%d posts are refused for ever", n)
		runtime.Gosched()
	}
}

// A function does not hear of suppressed requests, whichever completion retires them.
func TestAFunctionHearsOfNoSuppressedRequest(t *testing.T) {
	r := newRig(t)
	var heard []uint64
	to, err := evd.New(evd.Config{Mode: evd.ModeFunc, Func: func(ev event.Event) {
		if ev.Number == event.DTOCompletion {
			assert.Equal(t, hw.StatusSuccess, ev.Status)
			heard = append(heard, ev.Cookie)
		}
	}})
	require.NoError(t, err)
	a, b := r.endpointOf(Config{PZ: r.pz, Request: to, Conn: r.conn}), r.endpoint(nil)
	r.connect(a, b)
	for i := range uint64(40) {
		require.NoError(t, b.PostRecv(i, 0, r.lmr.Segment(8, 8)))
		flags := hw.Suppress
		if i%8 == 7 {
			flags = 0
		}
		require.NoError(t, a.PostSend(i, flags, r.lmr.Segment(0, 8)))
	}
	assert.Equal(t, []uint64{7, 15, 23, 31, 39}, heard)
	require.NoError(t, a.Close())
	require.NoError(t, to.Close())
}
