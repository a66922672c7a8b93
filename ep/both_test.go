package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
)

// inert is a queue pair that takes plain requests and receives, and does nothing.
type inert struct{ hw.Direct }

func (inert) PostOne(hw.Op, hw.WRFlags, uint64, *hw.SGE, uint32, uint64) bool { return true }
func (inert) RecvOne(uint64, *hw.SGE) bool                                    { return true }

// A send and its receive are completed together if one ring takes both events. Otherwise
// nothing has happened, and two calls complete them.
func TestASendAndItsReceiveCompleteTogetherIfOneRingTakesBothEvents(t *testing.T) {
	type ends struct{ a, b *Endpoint }
	for name, c := range map[string]struct {
		mode    evd.Mode
		apart   bool // the receive's events go to another dispatcher
		flags   hw.Flags
		earlier bool // a request before the send has not completed
		before  func(e ends)
		sink    func(q *queue) hw.DirectSink
		want    bool
	}{
		"one ring":                       {want: true},
		"two rings":                      {apart: true},
		"a channel":                      {mode: evd.ModeChannel},
		"a suppressed send":              {flags: hw.Suppress},
		"a silent request came before":   {earlier: true},
		"the sender waits for its event": {before: func(e ends) { e.a.box.requests.watched.Or(solicitedOnly) }},
		"the receiver is asked for more": {before: func(e ends) { e.b.box.recvs.watched.Or(solicitedOnly) }},
		"a sink of another kind":         {sink: func(q *queue) hw.DirectSink { return struct{ hw.DirectSink }{q} }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			d, other := r.dispatcher(c.mode, 64), r.dispatcher(c.mode, 64)
			if !c.apart {
				require.NoError(t, other.Close())
				other = d
			}
			e := ends{
				r.endpointOf(Config{PZ: r.pz, Request: d, Conn: r.conn}),
				r.endpointOf(Config{PZ: r.pz, Recv: other, Conn: r.conn}),
			}
			r.connect(e.a, e.b)
			a, b := &e.a.box, &e.b.box
			realA, realB := a.direct, b.direct
			a.direct, b.direct = inert{realA}, inert{realB}
			sent, received := a.requests.retired.Load(), b.recvs.retired.Load()
			ticket := sent
			if c.earlier {
				require.NoError(t, e.a.PostSend(1, hw.Suppress, r.lmr.Segment(0, 8)))
				ticket++
			}
			require.NoError(t, e.a.PostSend(2, c.flags, r.lmr.Segment(0, 8)))
			require.NoError(t, e.b.PostRecv(3, 0, r.lmr.Segment(8, 8)))
			if c.before != nil {
				c.before(e)
			}
			sink := hw.DirectSink(&b.recvs)
			if c.sink != nil {
				sink = c.sink(&b.recvs)
			}
			id, recvID := a.requests.id|uint64(ticket&a.requests.mask), b.recvs.id|uint64(received&b.recvs.mask)
			assert.Equal(t, c.want, a.requests.CompleteSend(id, sink, recvID, 5))
			if !c.want {
				assert.Equal(t, sent, a.requests.retired.Load())
				assert.Equal(t, received, b.recvs.retired.Load())
				b.recvs.watched.Store(0)
				a.requests.watched.Store(0)
				b.recvs.CompleteOne(recvID, hw.OpRecv, 5, 0)
				a.requests.CompleteOne(id, hw.OpSend, 5, 0)
			}
			assert.Equal(t, ticket+1, a.requests.retired.Load())
			assert.Equal(t, received+1, b.recvs.retired.Load())
			ev := r.takeEvents(other, 1)[0]
			assert.Equal(t, []any{hw.OpRecv, uint64(3), uint32(5), any(e.b)}, []any{ev.Op, ev.Cookie, ev.Length, ev.Source})
			if c.flags == 0 {
				ev = r.takeEvents(d, 1)[0]
				assert.Equal(t, []any{hw.OpSend, uint64(2), uint32(5), any(e.a)}, []any{ev.Op, ev.Cookie, ev.Length, ev.Source})
			}
			a.direct, b.direct = realA, realB
			require.NoError(t, e.a.Close())
			require.NoError(t, e.b.Close())
			require.NoError(t, d.Close())
			require.NoError(t, other.Close())
		})
	}
}

// The consumer posts at both ends as soon as it has an event, while the poster is still in
// the call that completes both.
func TestAConsumerThatHasBothEventsMayPostAgainAtBothEnds(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRequestDTOs: 1, MaxRecvDTOs: 1})
	seg := r.lmr.Segment(0, 8)
	require.NoError(t, b.PostRecv(0, 0, seg))
	const rounds = 2000
	next, done := make(chan bool), make(chan struct{})
	answer := func() (ok bool) {
		ok = assert.Equal(t, hw.OpRecv, r.next(r.dto).Op) &&
			assert.NoError(t, b.PostRecv(0, 0, seg), "the only receive has just completed")
		return assert.Equal(t, hw.OpSend, r.next(r.dto).Op) && ok
	}
	go func() {
		defer close(done)
		defer close(next)
		for range rounds {
			if !answer() || !assert.NoError(t, a.PostSend(0, 0, seg), "the only send has just completed") || !answer() {
				return
			}
			next <- true
		}
	}()
	for ok := true; ok; ok = <-next {
		require.NoError(t, a.PostSend(0, 0, seg))
	}
	<-done
}
