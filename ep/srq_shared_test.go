package ep

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/mem"
)

func TestManyEndpointsShareAQueue(t *testing.T) {
	const (
		endpoints = 6
		messages  = 200
		depth     = 12
	)
	r := newRig(t)
	q := r.srq(depth, 0)
	recv := r.dispatcher(evd.ModeQueue, 2*depth)
	t.Cleanup(func() {
		require.NoError(t, r.adapter.Close())
		require.NoError(t, recv.Close())
	})
	from := make([]*Endpoint, endpoints)
	number := make(map[*Endpoint]int)
	for i := range from {
		e := r.endpointOf(Config{PZ: r.pz, Conn: r.conn, Attr: &Attr{MaxRequestDTOs: 8}})
		to := r.taker(q, recv)
		r.connect(e, to)
		from[i], number[to] = e, i
	}
	for i := range depth {
		require.NoError(t, q.PostRecv(uint64(i), r.lmr.Segment(8*i, 8)))
	}
	errs := make(chan error, endpoints+1)
	for i, e := range from {
		go func() { errs <- r.sendNumbers(e, 1024+i*64, messages) }()
	}
	stop := make(chan struct{})
	go func() { errs <- resizeUntil(stop, q, depth) }()
	var seen [endpoints]int
	for range endpoints * messages {
		ev := r.next(recv)
		require.Equal(t, hw.StatusSuccess, ev.Status)
		i, ok := number[Of(ev)]
		require.True(t, ok)
		at := 8 * ev.Cookie
		require.EqualValues(t, seen[i], uint64(r.lmr.Bytes()[at])|uint64(r.lmr.Bytes()[at+1])<<8, "each endpoint's messages come in order")
		seen[i]++
		require.NoError(t, q.PostRecv(ev.Cookie, r.lmr.Segment(int(at), 8)))
	}
	close(stop)
	for range endpoints + 1 {
		require.NoError(t, <-errs)
	}
	available, outstanding := r.counts(q)
	assert.Equal(t, depth, available)
	assert.Equal(t, depth, outstanding)
}

// sendNumbers sends 0, 1, 2… from its own part of the region.
func (r *rig) sendNumbers(e *Endpoint, off, n int) error {
	shot := r.dto.NewOneShot()
	defer shot.Release()
	for i := range n {
		at := off + i%8*8
		r.lmr.Bytes()[at], r.lmr.Bytes()[at+1] = byte(i), byte(i>>8)
		d := []DTO{{Op: hw.OpSend, Segments: []mem.Segment{r.lmr.Segment(at, 8)}, OneShot: shot}}
		if k, err := e.PostBatch(d); err != nil || k != 1 {
			return fmt.Errorf("send %d: %w", i, err)
		}
		if ev, err := shot.Wait(r.t.Context()); err != nil || ev.Status != hw.StatusSuccess {
			return fmt.Errorf("send %d: %v %w", i, ev, err)
		}
	}
	return nil
}

func resizeUntil(stop chan struct{}, q *SRQ, depth int) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
			if err := q.Resize(depth + i%50); err != nil {
				return err
			}
			runtime.Gosched() // to senders that wait for the one processor
		}
	}
}
