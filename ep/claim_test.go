package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
	"godat/internal/token"
)

// sinkPair makes two connected endpoints, the first of which completes to a sink. It returns
// what the sink hears of posts, by their cookies.
func (r *rig) sinkPair(attr *Attr) (a, b *Endpoint, heard *[]uint64) {
	d := r.dispatcher(evd.ModeChannel, 64)
	heard = new([]uint64)
	wiring(d).SetSink(func(_ any, _ event.Number, status hw.Status, cookie uint64, _ any) bool {
		assert.Equal(r.t, hw.StatusSuccess, status)
		*heard = append(*heard, cookie)
		return false
	}, func() {})
	r.t.Cleanup(func() { require.NoError(r.t, d.Close()) })
	a = r.endpointOf(Config{PZ: r.pz, Recv: d, Request: d, Conn: r.conn, Attr: attr})
	b = r.endpoint(attr)
	r.connect(a, b)
	r.t.Cleanup(func() { require.NoError(r.t, a.Close()) })
	return a, b, heard
}

// claimed claims the endpoint for a send of 8 bytes.
func (r *rig) claimed(e *Endpoint) *Claim {
	c := e.NewClaim(door.Key{})
	from := r.lmr.Segment(0, 8)
	require.True(r.t, c.Claim(&from))
	return &c
}

func (r *rig) sendClaimed(e *Endpoint, cookie uint64, flags hw.Flags) {
	r.claimed(e).Send(cookie, flags, r.lmr.Segment(0, 8).Addr, 8)
}

// Posts by a claim and by the usual way have one order, on a device that takes requests one
// at a time and on one that does not.
func TestPostsByAClaimKeepTheOrderOfAll(t *testing.T) {
	for _, direct := range []bool{true, false} {
		r := newRig(t)
		a, b, heard := r.sinkPair(&Attr{MaxRequestDTOs: 4, MaxRecvDTOs: 4})
		keep := a.box.direct
		if !direct {
			a.box.direct = nil
		}
		for i := range uint64(100) {
			require.NoError(t, b.PostRecv(i, 0, r.lmr.Segment(8, 8)))
			switch i % 3 {
			case 0:
				r.sendClaimed(a, i, 0)
			case 1:
				require.NoError(t, a.PostSend(i, 0, r.lmr.Segment(0, 8)))
			default:
				c := r.claimed(a)
				c.Release()
				r.sendClaimed(a, i, 0)
			}
			ev := r.next(r.dto)
			require.NoError(t, ev.Err())
			require.Equal(t, i, ev.Cookie)
			require.Equal(t, i, (*heard)[i])
		}
		a.box.direct = keep
	}
}

// Sends that were suppressed take slots until a later one completes, so they need claims to
// say how many there are.
func TestAClaimNeedsASlot(t *testing.T) {
	r := newRig(t)
	a, b, heard := r.sinkPair(&Attr{MaxRequestDTOs: 4, MaxRecvDTOs: 8})
	from := r.lmr.Segment(0, 8)
	for range 4 { // no receive is posted: they wait
		r.sendClaimed(a, 1, 0)
	}
	c := a.NewClaim(door.Key{})
	assert.False(t, c.Claim(&from))
	for range 5 {
		require.NoError(t, b.PostRecv(2, 0, r.lmr.Segment(8, 8)))
	}
	r.await(func() bool { return len(*heard) == 4 })
	r.sendClaimed(a, 3, 0)
	assert.Equal(t, []uint64{1, 1, 1, 1, 3}, *heard)
	r.takeEvents(r.dto, 5)
}

// A sink does not hear of suppressed requests, whichever completion retires them.
func TestASinkHearsOfNoSuppressedRequest(t *testing.T) {
	r := newRig(t)
	a, b, heard := r.sinkPair(nil)
	for i := range uint64(40) {
		require.NoError(t, b.PostRecv(i, 0, r.lmr.Segment(8, 8)))
		flags := hw.Suppress
		if i%8 == 7 {
			flags = 0
		}
		r.sendClaimed(a, i, flags)
	}
	assert.Equal(t, []uint64{7, 15, 23, 31, 39}, *heard)
	r.takeEvents(r.dto, 40)
}

// Whatever others leave to the endpoint during a claim is done when the claim ends.
func TestAClaimEndsBeforeWhatComesDuringIt(t *testing.T) {
	for name, end := range map[string]func(*rig, *Claim){
		"a send":    func(r *rig, c *Claim) { c.Send(1, 0, r.lmr.Segment(0, 8).Addr, 8) },
		"a release": func(_ *rig, c *Claim) { c.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a, b, heard := r.sinkPair(nil)
			require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(8, 8)))
			c := r.claimed(a)
			disconnected := make(chan error, 1)
			go func() { disconnected <- a.Disconnect(Graceful) }()
			r.await(func() bool { return a.box.token.Load()&token.Kicked != 0 })
			assert.True(t, c.Claimed())
			end(r, c)
			require.NoError(t, <-disconnected)
			if ev := r.next(r.dto); name == "a send" {
				require.NoError(t, ev.Err())
				assert.Equal(t, []uint64{1}, *heard)
			}
			for range 2 {
				assert.Equal(t, event.Disconnected, r.next(r.conn).Number)
			}
			assert.False(t, c.Claimed())
			from := r.lmr.Segment(0, 8)
			assert.False(t, c.Claim(&from), "it is not connected")
		})
	}
}

// An endpoint on which a post is being filled is not idle.
func TestAnEndpointWithAPostUnderWayIsNotClaimed(t *testing.T) {
	r := newRig(t)
	a, _, heard := r.sinkPair(nil)
	ticket, _, word, mine := a.box.takeTickets(&a.box.requests, 1)
	require.True(t, mine)
	require.True(t, a.box.token.ReleaseIf(word))
	c, from := a.NewClaim(door.Key{}), r.lmr.Segment(0, 8)
	assert.False(t, c.Claim(&from))
	(&slow{a, &a.box.requests, ticket}).end(r)
	assert.Equal(t, []uint64{2}, *heard)
	assert.True(t, c.Claim(&from))
	c.Release()
}
