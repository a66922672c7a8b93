package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

func TestADTONamesOneSegmentWithoutAList(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	copy(r.lmr.Bytes(), "one segment")
	n, err := b.PostRecvBatch([]DTO{{Cookie: 1, Segment: r.lmr.Segment(1024, 64)}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = a.PostBatch([]DTO{{Op: hw.OpSend, Cookie: 2, Segment: r.lmr.Segment(0, 11)}})
	require.NoError(t, err)
	assert.EqualValues(t, 11, r.completionOf(1).Length)
	require.NoError(t, r.completionOf(2).Err())
	assert.Equal(t, "one segment", string(r.lmr.Bytes()[1024:1024+11]))
}

func TestADTOWithoutMemorySendsAnEmptyMessage(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	require.NoError(t, b.PostRecv(1, hw.Default, r.lmr.Segment(0, 64)))
	_, err := a.PostBatch([]DTO{{Op: hw.OpSend, Cookie: 2}})
	require.NoError(t, err)
	ev := r.completionOf(1)
	require.NoError(t, ev.Err())
	assert.Zero(t, ev.Length)
}

func TestAListOfSegmentsGoesBeforeTheOne(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	require.NoError(t, b.PostRecv(1, hw.Default, r.lmr.Segment(1024, 64)))
	_, err := a.PostBatch([]DTO{{
		Op: hw.OpSend, Cookie: 2, Segment: r.lmr.Segment(0, 50),
		Segments: []mem.Segment{r.lmr.Segment(0, 3), r.lmr.Segment(8, 4)},
	}})
	require.NoError(t, err)
	assert.EqualValues(t, 7, r.completionOf(1).Length)
}

func TestTheOneSegmentIsCheckedAsAListIs(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(nil)
	_, err := a.PostBatch([]DTO{{Op: hw.OpSend, Segment: r.lmr.Segment(64<<10, 1)}})
	require.ErrorIs(t, err, hw.ErrProtection)
	_, err = a.PostBatch([]DTO{{Op: hw.OpSend, Segment: mem.Segment{Addr: 1, Len: 1, Context: 77}}})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
}

func TestAnOutboxPostsWhatItGatheredInOrder(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	for i := range 5 {
		require.NoError(t, b.PostRecv(uint64(100+i), hw.Default, r.lmr.Segment(1024+64*i, 64)))
	}
	o := NewOutbox(a, 3)
	for i := range 5 {
		require.NoError(t, o.Add(DTO{Op: hw.OpSend, Flags: hw.Suppress, Segment: r.lmr.Segment(0, 10+i)}))
	}
	assert.Equal(t, 2, len(o.dtos), "the first three went out when it was full")
	require.NoError(t, o.Flush())
	assert.Zero(t, len(o.dtos))
	require.NoError(t, o.Flush(), "with nothing in it")
	for i := range 5 {
		assert.EqualValues(t, 10+i, r.completionOf(uint64(100+i)).Length)
	}
}

func TestAnOutboxKeepsWhatFoundNoRoom(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRequestDTOs: 2})
	o := NewOutbox(a, 4)
	for i := range 3 {
		require.NoError(t, o.Add(DTO{Op: hw.OpSend, Cookie: uint64(i), Segment: r.lmr.Segment(0, 8)}))
	}
	require.ErrorIs(t, o.Flush(), hw.ErrInsufficientResources, "no receive is posted, so two sends wait")
	require.Equal(t, 1, len(o.dtos))
	for i := range 3 {
		require.NoError(t, b.PostRecv(uint64(100+i), hw.Default, r.lmr.Segment(1024+64*i, 64)))
	}
	for i := range 2 {
		require.NoError(t, r.completionOf(uint64(i)).Err())
	}
	require.NoError(t, o.Flush())
	require.NoError(t, r.completionOf(2).Err())
}

func TestAnOutboxKeepsWhatIsWrongUntilItIsReset(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(nil)
	o := NewOutbox(a, 1)
	require.NoError(t, o.Add(DTO{Op: hw.OpSend, Segment: mem.Segment{Addr: 1, Len: 1, Context: 77}}))
	require.ErrorIs(t, o.Add(DTO{Op: hw.OpSend}), hw.ErrInvalidHandle, "it is full, and can't be flushed")
	require.ErrorIs(t, o.Flush(), hw.ErrInvalidHandle)
	assert.Len(t, o.dtos, 1)
	o.Reset()
	assert.Empty(t, o.dtos)
	require.NoError(t, o.Flush())
	assert.Panics(t, func() { NewOutbox(a, 0) })
	assert.Panics(t, func() { NewOutbox(a, maxDepth+1) })
}

// A filter hears of requests that are suppressed, each once and in their order, when one
// behind them completes; an outbox asks for that completion once in each flush.
func TestAFilterHearsOfAllThatAnOutboxHasSent(t *testing.T) {
	const n = 21 // of twice as many in a flush the endpoint signals two to the provider by itself
	r := newRig(t)
	to := r.dispatcher(evd.ModeChannel, 2*n)
	var heard []uint64
	wiring(to).SetFilter(func(_ any, number event.Number, status hw.Status, cookie uint64, _ any) bool {
		assert.Equal(t, event.DTOCompletion, number)
		assert.Equal(t, hw.StatusSuccess, status)
		heard = append(heard, cookie)
		return false
	})
	a := r.endpointOf(Config{PZ: r.pz, Request: to, Conn: r.conn, Attr: &Attr{MaxRequestDTOs: 2 * n}})
	r.connect(a, r.endpoint(nil))
	o := NewOutbox(a, 2*n)
	var want []uint64
	for round := range uint64(3) {
		for i := range uint64(n) {
			for _, next := range []func() (*DTO, error){o.Next, func() (*DTO, error) { return Own{}.Next(o) }} {
				d, err := next()
				require.NoError(t, err)
				require.Equal(t, DTO{Flags: d.Flags, OneShot: d.OneShot}, *d, "it is empty")
				d.Op, d.Segment, d.Remote, d.Cookie = hw.OpWrite, r.lmr.Segment(0, 8), r.lmr.Remote(8, 8), 2*(100*round+i)
				if d.Flags == hw.Suppress {
					d.Cookie++
				}
				want = append(want, d.Cookie)
				d.Flags |= hw.Suppress
			}
		}
		require.NoError(t, o.Flush())
		require.Equal(t, want, heard)
	}
	require.NoError(t, a.Close())
	require.NoError(t, to.Close())
}

// A call that meets one of another goroutine says so, and leaves the requests as they are.
func TestACallOfAnOutboxThatMeetsAnotherIsRefused(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(nil)
	o := NewOutbox(a, 2)
	require.NoError(t, o.Add(DTO{Op: hw.OpSend, Segment: r.lmr.Segment(0, 8)}))
	require.True(t, o.enter(), "another goroutine's call begins")
	for _, err := range []error{o.Add(DTO{}), o.Flush()} {
		require.ErrorIs(t, err, hw.ErrInvalidState)
		assert.ErrorContains(t, err, "mutex")
	}
	o.leave()
	assert.Len(t, o.dtos, 1)
	require.NoError(t, o.Add(DTO{Op: hw.OpSend, Segment: r.lmr.Segment(0, 8)}))
	require.NoError(t, o.Add(DTO{Op: hw.OpSend, Segment: r.lmr.Segment(0, 8)}), "which flushes the two")
	assert.Len(t, o.dtos, 1)
}
