package ep

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// moves is what a queue has moved, by kind.
func moves(q QueueSnapshot) map[string][2]uint64 {
	all := make(map[string][2]uint64)
	for _, m := range q.Moved {
		all[m.Kind] = [2]uint64{m.Operations, m.Octets}
	}
	return all
}

// However a request is posted and completed, it is counted once, with what it moved.
func TestEachOperationIsCountedWithItsOctets(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRecvDTOs: 64, MaxRequestDTOs: 64})
	for range 40 {
		require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 64)))
	}
	seg := func(n int) []mem.Segment { return []mem.Segment{r.lmr.Segment(1024, n)} }
	require.NoError(t, a.PostSend(1, 0, seg(10)...))
	require.NoError(t, a.PostSend(1, hw.Suppress, seg(20)...))
	require.NoError(t, a.PostSend(1, hw.Suppress, r.lmr.Segment(1024, 3), r.lmr.Segment(1024, 4)))
	require.NoError(t, a.PostRDMAWrite(1, 0, r.lmr.Remote(2048, 30), seg(30)...))
	require.NoError(t, a.PostRDMARead(1, 0, r.lmr.Remote(2048, 5), seg(5)...))
	var dtos []DTO
	for i := range 16 {
		d := DTO{Op: hw.OpSend, Segment: r.lmr.Segment(1024, 2)}
		if i%4 == 3 {
			d.Op, d.Remote = hw.OpWrite, r.lmr.Remote(2048, 2)
		}
		dtos = append(dtos, d)
	}
	n, err := a.PostBatch(dtos)
	require.NoError(t, err)
	require.Equal(t, 16, n)
	r.await(func() bool { return a.box.Requests.Outstanding() == 0 })
	s := a.Snapshot()
	assert.Equal(t, map[string][2]uint64{
		"SEND": {3 + 12, 10 + 20 + 7 + 24}, "RDMA_WRITE": {1 + 4, 30 + 8}, "RDMA_READ": {1, 5},
	}, moves(s.Requests))
	assert.EqualValues(t, 21, s.Requests.Posted)
	assert.Zero(t, s.Requests.Outstanding)
	s = b.Snapshot()
	assert.Equal(t, map[string][2]uint64{"RECEIVE": {15, 61}}, moves(s.Receives))
	assert.Equal(t, 25, s.Receives.Outstanding)
	require.NoError(t, a.Disconnect(Abrupt))
	r.await(func() bool { return b.Snapshot().Receives.Flushed == 25 })
	assert.Zero(t, b.Snapshot().Receives.Failed)
}

// unasked is a queue pair that can't tell how far its send queue has come.
type unasked struct{ hw.Runner }

// Such a device reports a suppressed request only when a later one completes, which may never come.
func TestARequestOfWhichNothingIsReportedHasNoAge(t *testing.T) {
	for name, batch := range map[string]bool{"one by one": false, "a run": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a, b := r.pair(&Attr{MaxRecvDTOs: 8, MaxRequestDTOs: 8})
			a.box.SetQP(unasked{a.box.QP().(hw.Runner)})
			send := func(flags ...hw.Flags) {
				t.Helper()
				var dtos []DTO
				for _, f := range flags {
					dtos = append(dtos, DTO{Op: hw.OpSend, Flags: f, Segment: r.lmr.Segment(0, 4)})
					if !batch {
						require.NoError(t, a.PostSend(0, f, r.lmr.Segment(0, 4)))
					}
				}
				if batch {
					n, err := a.PostBatch(dtos)
					require.NoError(t, err)
					require.Equal(t, len(dtos), n)
				}
			}
			for range 4 {
				require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 64)))
			}
			send(0, hw.Suppress, hw.Suppress)
			r.await(func() bool { return a.box.Requests.Outstanding() == 2 })
			a.Snapshot()
			assert.Zero(t, a.Snapshot().Requests.OldestAge, "the device may have sent them")
			send(0)
			r.await(func() bool { return a.box.Requests.Outstanding() == 0 })
			send(0, hw.Suppress) // no receive is left
			first := a.Snapshot().Requests
			assert.Equal(t, 2, first.Outstanding)
			assert.Zero(t, first.OldestAge, "it was not seen before")
			assert.Positive(t, a.Snapshot().Requests.OldestAge, "the first of them waits for a receive")
			assert.Positive(t, b.Snapshot().Requests.Depth)
		})
	}
}

func TestAQueueIsQuietSinceItsLastSuccessWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		a, b := r.pair(nil)
		assert.Zero(t, a.Snapshot().Requests.QuietAge, "nobody looked before")
		time.Sleep(time.Minute)
		s := a.Snapshot()
		assert.Equal(t, []time.Duration{time.Minute, time.Minute}, []time.Duration{s.Requests.QuietAge, s.Receives.QuietAge})
		b.Snapshot()
		require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 64)))
		require.NoError(t, a.PostSend(1, 0, r.lmr.Segment(0, 4)))
		time.Sleep(time.Minute)
		assert.Zero(t, a.Snapshot().Requests.QuietAge, "nobody knows when in that minute it was")
		assert.Zero(t, b.Snapshot().Receives.QuietAge)
		time.Sleep(time.Second)
		require.NoError(t, a.PostRDMAWrite(2, 0, r.lmr.Remote(2048, 4), r.lmr.Segment(0, 4)))
		synctest.Wait()
		s = a.Snapshot()
		assert.Zero(t, s.Requests.QuietAge, "an operation of another kind counts as well")
		assert.Equal(t, 121*time.Second, s.Receives.QuietAge)
		assert.Equal(t, 61*time.Second, b.Snapshot().Requests.QuietAge)
		assert.Equal(t, time.Second, b.Snapshot().Receives.QuietAge)
	})
}

func TestAStoryHasTheLastChaptersAndCountsWhatRepeats(t *testing.T) {
	r := &record{}
	for i := range 2 * storyLength {
		for range i + 1 {
			r.note(chapter{what: whatFailed, op: hw.Op(i), status: hw.StatusTransport})
		}
	}
	lines := r.story.lines()
	require.Len(t, lines, storyLength)
	for i, line := range lines {
		at := storyLength + i
		assert.Equal(t, at+1, line.Times)
		assert.Equal(t, fmt.Sprintf("%v failed: %v", hw.Op(at), hw.StatusTransport), line.Text)
	}
}

func TestAPeersSilenceIsThatOfTheConnection(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	(*reports)(a).Silent(time.Minute)
	assert.Equal(t, time.Minute, a.Snapshot().Silence)
	assert.Zero(t, b.Snapshot().Silence)
	require.NoError(t, a.Disconnect(Abrupt))
	for range 2 {
		r.next(r.conn)
	}
	assert.Zero(t, a.Snapshot().Silence, "it has ended")
	require.NoError(t, errors.Join(a.Reset(), b.Reset()))
	r.connect(a, b)
	assert.Zero(t, a.Snapshot().Silence, "another one is up")
}

// A peer chooses the code of a Terminate, so there may be any number.
func TestTheKindsOfEndsAreBounded(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	var n ends
	_, ok := e.box.Token.TryTake()
	require.True(t, ok)
	for code := range 2 * mostEnds {
		n.note((*machine)(e).end(0, &hw.Cause{Layer: hw.LayerDDP, Code: code}))
	}
	require.True(t, e.box.Token.Release())
	counts, last := n.snapshot()
	require.Len(t, counts, mostEnds+1)
	assert.Equal(t, EndCount{Event: "CLOSED", Layer: "DDP", Code: -1, Count: mostEnds}, counts[0])
	require.Len(t, last, lastEnds)
	assert.Equal(t, 2*mostEnds-1, last[lastEnds-1].Cause.Code)
	assert.Equal(t, 2*mostEnds-lastEnds, last[0].Cause.Code)
}

// Orderly ends of a busy server do not push its last break out of the list, nor do breaks the orderly ends.
func TestABreakStaysAmongManyOrderlyEnds(t *testing.T) {
	var n ends
	note := func(number event.Number, times int) {
		for range times {
			n.note(end{endKind: endKind{number: number}})
		}
	}
	events := func() (events []string) {
		_, last := n.snapshot()
		for _, e := range last {
			events = append(events, e.Event)
		}
		return events
	}
	note(event.Broken, 3)
	note(event.Disconnected, 2*lastEnds)
	note(0, 1)
	require.Len(t, events(), lastEnds)
	assert.Equal(t, []string{"BROKEN", "BROKEN", "BROKEN", "DISCONNECTED"}, events()[:4])
	assert.Equal(t, "CLOSED", events()[lastEnds-1])
	note(event.Broken, 2*lastEnds)
	require.Len(t, events(), lastEnds)
	assert.Equal(t, "DISCONNECTED", events()[0])
	assert.Equal(t, "CLOSED", events()[lastEnds/2-1])
	assert.Equal(t, "BROKEN", events()[lastEnds/2])
}
