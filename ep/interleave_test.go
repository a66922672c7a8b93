package ep

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/token"
	"godat/internal/yield"
	"godat/mem"
)

// A second post runs at each point of a first one. All operations of both are handed on
// before the later of the two returns.
func TestAPostAtAnyPointOfAnotherIsDone(t *testing.T) {
	send := func(r *rig, cookie uint64) DTO {
		return DTO{Op: hw.OpSend, Cookie: cookie, Segments: []mem.Segment{r.lmr.Segment(0, 4), r.lmr.Segment(4, 4)}}
	}
	for name, c := range map[string]struct {
		posts int
		post  func(r *rig, e *Endpoint, cookie uint64) error
	}{
		"the short way": {1, func(r *rig, e *Endpoint, cookie uint64) error {
			return e.PostSend(cookie, 0, r.lmr.Segment(0, 8))
		}},
		"two segments": {1, func(r *rig, e *Endpoint, cookie uint64) error {
			_, err := e.PostBatch([]DTO{send(r, cookie)})
			return err
		}},
		"the step": {2, func(r *rig, e *Endpoint, cookie uint64) error {
			_, err := e.PostBatch([]DTO{send(r, cookie), send(r, cookie)})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a, b := r.pair(nil)
			yield.Interleave(func() (first, second, check func()) {
				var want []uint64
				for range c.posts {
					require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(8, 8)))
					require.NoError(t, b.PostRecv(2, 0, r.lmr.Segment(8, 8)))
					want = append(want, 1, 2, 11, 12)
				}
				do := func(cookie uint64) func() {
					return func() { require.NoError(t, c.post(r, a, cookie)) }
				}
				return do(11), do(12), func() {
					var cookies []uint64
					for range want {
						ev := r.next(r.dto)
						require.NoError(t, ev.Err())
						cookies = append(cookies, ev.Cookie)
					}
					assert.ElementsMatch(t, want, cookies)
				}
			})
		})
	}
}

// At each point of a post, the endpoint gives up the dispatcher that the post was
// checked for, and that dispatcher is closed. If the post was taken it completes
// once, where the program can see it.
func TestADispatcherOutlivesAPostThatWasCheckedForIt(t *testing.T) {
	receive := func(r *rig, e *Endpoint) error { return e.PostRecv(1, 0, r.lmr.Segment(0, 8)) }
	send := func(r *rig, e *Endpoint) error { return e.PostSend(1, 0, r.lmr.Segment(0, 8)) }
	disconnected := func(r *rig, e *Endpoint) {
		r.accept(e)
		require.NoError(r.t, e.Disconnect(Abrupt))
		r.next(r.conn)
		r.next(r.conn)
	}
	again := func(e *Endpoint, now *evd.Dispatcher) error {
		if err := e.Reset(); err != nil {
			return err
		}
		return e.Modify(Param{Request: now}, "Request")
	}
	for name, c := range map[string]struct {
		overcommit bool
		mode       evd.Mode // the mode of the dispatcher that the endpoint leaves
		prepare    func(r *rig, e *Endpoint)
		post       func(r *rig, e *Endpoint) error
		posts      int // by post; 0 means 1
		leave      func(e *Endpoint, now *evd.Dispatcher) error
	}{
		"a receive": {post: receive},
		"a receive of two segments": {post: func(r *rig, e *Endpoint) error {
			return e.PostRecv(1, 0, r.lmr.Segment(0, 8), r.lmr.Segment(8, 8))
		}},
		"a batch of receives": {post: func(r *rig, e *Endpoint) error {
			segs := []mem.Segment{r.lmr.Segment(0, 4), r.lmr.Segment(4, 4)}
			_, err := e.PostRecvBatch([]DTO{{Cookie: 1, Segments: segs}, {Cookie: 1, Segments: segs}})
			return err
		}, posts: 2},
		"a receive, over-committed": {post: receive, overcommit: true},
		"a receive, to a channel":   {post: receive, mode: evd.ModeChannel},
		"a receive, to batches":     {post: receive, mode: evd.ModeBatch},
		"a send that was checked before a Reset": {
			prepare: disconnected, post: send, leave: again,
		},
		"a bind that was checked before a Reset": {
			prepare: disconnected, leave: again,
			post: func(r *rig, e *Endpoint) error {
				_, err := e.PostBind(1, 0, r.rmr(), mem.Binding{Segment: r.lmr.Segment(0, 64), Privileges: hw.RemoteRead})
				return err
			},
		},
		"a read into a window that was checked before a Reset": {
			prepare: disconnected, leave: again,
			post: func(r *rig, e *Endpoint) error {
				return e.PostRDMAReadToRMR(1, 0, r.lmr.Remote(0, 8), r.lmr.Remote(8, 8))
			},
		},
		"a receive that was checked before a Close": {
			post: receive, leave: func(e *Endpoint, _ *evd.Dispatcher) error { return e.Close() },
		},
	} {
		if c.leave == nil {
			c.leave = func(e *Endpoint, now *evd.Dispatcher) error { return e.Modify(Param{Recv: now}, "Recv") }
		}
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			yield.Interleave(func() (first, second, check func()) {
				old, err := evd.New(evd.Config{QLen: 8, Overcommit: c.overcommit, Mode: c.mode})
				require.NoError(t, err)
				now := r.dispatcher(evd.ModeQueue, 8)
				e := r.endpointOf(Config{PZ: r.pz, Recv: old, Request: old, Conn: r.conn})
				other := "Request" // the other direction leaves it too, so that it is not in use for that
				if c.prepare != nil {
					c.prepare(r, e)
					other = "Recv"
				}
				var (
					refused, inUse error
					left           bool
					seen           int
				)
				look := func(d *evd.Dispatcher) {
					if d.Mode() != evd.ModeQueue { // it is closed by now; Events still gives what came before
						for range d.Events(context.Background()) {
							seen++
						}
						return
					}
					var buf [8]event.Event
					n, err := d.Dequeue(buf[:])
					require.NoError(t, err)
					seen += n
				}
				leave := func() {
					if left || e.box.Token.Load()&token.Held != 0 { // Modify would wait for the post
						return
					}
					left = true
					require.NoError(t, c.leave(e, now))
					if e.State() != closed {
						require.NoError(t, e.Modify(Param{}, other))
					}
					if c.mode == evd.ModeQueue {
						look(old) // before Close, which drops queued events
					}
					inUse = old.Close()
				}
				return func() { refused = c.post(r, e) }, leave, func() {
					leave()
					require.NoError(t, e.Close())
					if inUse != nil {
						require.ErrorIs(t, inUse, invalidState(hw.StateEVDInUse))
						if c.mode == evd.ModeQueue {
							look(old)
						}
						require.NoError(t, old.Close())
					}
					if c.mode != evd.ModeQueue {
						look(old)
					}
					look(now)
					require.NoError(t, now.Close())
					if refused == nil {
						assert.Equal(t, max(1, c.posts), seen)
					} else {
						assert.Zero(t, seen)
						assert.NotErrorIs(t, refused, hw.ErrInsufficientResources, "the dispatcher was the endpoint's no more")
					}
				}
			})
		})
	}
}
