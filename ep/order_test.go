package ep

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/token"
	"godat/internal/yield"
	"godat/mem"
)

// A poster takes a ticket at each point of a Modify, and fills its slot later. The
// receive stays posted, once.
func TestModifyKeepsAReceiveThatIsBeingFilled(t *testing.T) {
	r := newRig(t)
	depth := 4
	yield.Interleave(func() (first, second, check func()) {
		depth *= 2
		e := r.endpoint(&Attr{MaxRecvDTOs: depth / 2})
		q := &e.box.Recvs
		require.NoError(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)))
		filled := make(chan struct{})
		var modified atomic.Bool
		first = func() {
			require.NoError(t, e.Modify(Param{Attr: Attr{MaxRecvDTOs: depth}}, "MaxRecvDTOs"))
			modified.Store(true)
		}
		second = func() {
			if e.box.Token.Load()&token.Held == 0 || q.Depth() == 0 || !wiring(r.dto).Main().Reserve(1) {
				close(filled) // the poster would get the token, or no ticket
				return
			}
			ticket, ok, mine := e.box.Inside().Claim(q)
			require.True(t, ok && !mine)
			go func() {
				defer close(filled)
				// A Modify that does not wait for the ticket ends soon.
				for i := 0; i < 10_000 && !modified.Load(); i++ {
					runtime.Gosched()
				}
				e.box.Inside().Fill(q, ticket, hw.OpRecv, 2, wiring(r.dto).Main())
				e.box.Inside().Publish(q, ticket)
			}()
		}
		check = func() {
			<-filled
			c, err := e.Counters()
			require.NoError(t, err)
			require.NoError(t, e.Close())
			var cookies []uint64
			for range c.Receives {
				cookies = append(cookies, r.next(r.dto).Cookie)
			}
			assert.Equal(t, []uint64{1, 2}[:c.Receives], cookies)
			r.none(r.dto)
		}
		return first, second, check
	})
}

// The first post makes the slots, at each point of another first post or of a Modify. No
// post is lost, and there are as many slots as were asked for.
func TestTheFirstPostMakesTheSlotsBesideAnother(t *testing.T) {
	const depth, larger = 2, 5
	for name, other := range map[string]func(*Endpoint, *rig) (places int){
		"first post": func(e *Endpoint, r *rig) int {
			require.NoError(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)))
			return depth
		},
		"Modify": func(e *Endpoint, _ *rig) int {
			require.NoError(t, e.Modify(Param{Attr: Attr{MaxRecvDTOs: larger}}, "MaxRecvDTOs"))
			return larger
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			yield.Interleave(func() (first, second, check func()) {
				e := r.endpoint(&Attr{MaxRecvDTOs: depth})
				posted, places := 0, 0
				post := func() {
					if e.PostRecv(9, 0, r.lmr.Segment(8, 8)) == nil {
						posted++
					}
				}
				return func() { places = other(e, r) }, post, func() {
					for range larger {
						post()
					}
					c, err := e.Counters()
					require.NoError(t, err)
					assert.EqualValues(t, places, c.Receives)
					require.NoError(t, e.Close())
					seen := 0
					for range places {
						if r.next(r.dto).Cookie == 9 {
							seen++
						}
					}
					assert.Equal(t, posted, seen)
					r.none(r.dto)
				}
			})
		})
	}
}

// An alarm may go off while the step replaces it.
func TestAnAlarmThatWasReplacedDoesNotCount(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	require.NoError(t, e.Connect(ConnectConfig{Qual: r.psp.Qual(), Timeout: time.Hour}))
	cr := RequestOf(r.next(r.cr))
	replaced := &alarm{box: &e.box, running: &r.adapter.alarms}
	r.adapter.alarms.Add(1)
	replaced.ring()
	require.Equal(t, ActiveConnectionPending, e.State())
	r.none(r.conn)
	e.alarm.rang.Store(true)
	e.box.Tell(line.TellTimeout)
	require.Equal(t, event.TimedOut, r.next(r.conn).Number)
	require.NoError(t, cr.Reject(nil))
}

// drained is a queue pair that fails the test if a request is posted to it after
// Drain: the contract forbids that.
type drained struct {
	hw.QP
	t     *testing.T
	drain bool
}

func (d *drained) Drain() {
	d.drain = true
	d.QP.Drain()
}

func (d *drained) PostSend(wrs []hw.SendWR) (int, error) {
	assert.False(d.t, d.drain, "a request was posted after Drain")
	return d.QP.PostSend(wrs)
}

// A request is posted at each point of a graceful disconnect. It is refused,
// precedes Drain, or is flushed: providers take no request after Drain.
func TestNothingIsPostedToTheSendQueueAfterDrain(t *testing.T) {
	r := newRig(t)
	yield.Interleave(func() (first, second, check func()) {
		a, b := r.pair(nil)
		require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 8)))
		a.box.SetQP(&drained{QP: a.box.QP(), t: t})
		posted := false
		return func() { require.NoError(t, a.Disconnect(Graceful)) },
			func() {
				err := a.PostSend(2, 0, r.lmr.Segment(8, 8))
				posted = err == nil
				if err != nil {
					assert.ErrorIs(t, err, hw.ErrInvalidState)
				}
			},
			func() {
				for range 2 {
					require.Equal(t, event.Disconnected, r.next(r.conn).Number)
				}
				seen := map[uint64]int{}
				for range 1 + map[bool]int{true: 1}[posted] {
					seen[r.next(r.dto).Cookie]++
				}
				assert.Equal(t, 1, seen[1])
				r.none(r.dto)
				require.NoError(t, a.Close())
				require.NoError(t, b.Close())
			}
	})
}

// A bind that was checked while the endpoint was connected may get its ticket after
// the connection has ended, while Modify runs. It is flushed, and its window learns
// of that.
func TestModifyKeepsABindThatCameLate(t *testing.T) {
	r := newRig(t)
	l, w := r.unshared(), r.rmr()
	t.Cleanup(func() {
		require.NoError(t, r.adapter.Close())
		require.NoError(t, w.Free())
		require.NoError(t, l.Free())
	})
	depth := 4
	yield.Interleave(func() (first, second, check func()) {
		depth *= 2
		e := r.endpoint(&Attr{MaxRequestDTOs: depth / 2})
		q := &e.box.Requests
		require.True(t, e.box.Inside().Open(q))
		posted := false
		first = func() {
			require.NoError(t, e.Modify(Param{Attr: Attr{MaxRequestDTOs: depth}}, "MaxRequestDTOs"))
		}
		second = func() {
			if e.box.Token.Load()&token.Held == 0 || q.Depth() == 0 {
				return // the poster would get the token, or no ticket
			}
			to := mem.Binding{Segment: l.Segment(0, 64), Privileges: hw.RemoteRead}
			require.NoError(t, e.box.Inside().Bind(&e.windows, 9, w, to))
			posted = true
		}
		check = func() {
			if posted {
				ev := r.next(r.dto)
				assert.Equal(t, hw.StatusFlushed, ev.Status)
				assert.Equal(t, uint64(9), ev.Cookie)
				assert.Same(t, w, RMROf(ev))
			}
			r.none(r.dto)
			require.NoError(t, e.Close())
		}
		return first, second, check
	})
}
