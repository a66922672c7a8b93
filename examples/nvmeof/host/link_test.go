package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/ep"
	"godat/examples/nvmeof/intake"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// raw is the other end of a link without a target: what comes is up to the test. It receives
// a capsule into the front of its memory.
type raw struct {
	*testing.T
	ln     *dat.Listener
	conn   *dat.Conn
	region *mem.LMR
}

func openRaw(t *testing.T, slots int) (l *link, other raw) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	ln, err := ia.Listen(t.Context(), "", dat.ConnConfig{Depth: slots, OwnReceives: true})
	require.NoError(t, err)
	accepted := make(chan *dat.Conn, 1)
	go func() {
		c, err := ln.Accept(ep.RequestOf(<-ln.Requests()), nil)
		assert.NoError(t, err)
		accepted <- c
	}()
	l = new(link)
	_, err = ia.Dial(t.Context(), ln.Addr(), dat.ConnConfig{
		Depth: slots, Batches: true, OwnReceives: true,
		Setup: func(c *dat.Conn) ([]byte, error) { return nil, l.make(c, intake.Batches, slots, nvme.PageLen) },
	})
	require.NoError(t, err)
	conn := <-accepted
	region, err := conn.Alloc(nvme.CommandLen, hw.LocalRead|hw.LocalWrite)
	require.NoError(t, err)
	other = raw{t, ln, conn, region}
	other.receive()
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	return l, other
}

func (r raw) receive() {
	require.NoError(r, r.conn.Endpoint.PostRecv(0, hw.Default, r.region.Segment(0, nvme.CommandLen)))
}

// received waits for a capsule, and makes room for the next one.
func (r raw) received() {
	for ev := range r.ln.Events() {
		require.NoError(r, ev.Err())
		if ev.Number == event.DTOCompletion && ev.Op == hw.OpRecv {
			r.receive()
			return
		}
	}
}

// completes sends a completion.
func (r raw) completes(c nvme.Completion) {
	c.Put(r.region.Bytes())
	require.NoError(r, r.conn.Endpoint.PostSend(0, hw.Default, r.region.Segment(0, nvme.CompletionLen)))
}

func TestASlotIsFreeWhenItsCapsuleWasSentAndItsCompletionHasCome(t *testing.T) {
	l, _ := openRaw(t, 4)
	sent := func(cookie uint64) {
		require.False(t, l.handle(&event.Event{
			Number: event.DTOCompletion, Source: l.conn.Endpoint, Op: hw.OpSend, Status: hw.StatusSuccess, Cookie: cookie,
		}))
	}
	completed := func(cid uint16) { require.NoError(t, l.complete(nvme.Completion{CID: cid, Result: uint64(cid)})) }
	for i := range 3 {
		l.submit(&l.slots[i], &nvme.Command{Opcode: nvme.IOFlush}, 0, false)
	}
	completed(1)
	completed(0)
	assert.Empty(t, l.done, "no capsule was sent")
	sent(1) // and so the one before it
	assert.Equal(t, []*Slot{&l.slots[1], &l.slots[0]}, l.done)
	sent(2)
	assert.Len(t, l.done, 2, "its completion has not come")
	completed(2)
	assert.Equal(t, []*Slot{&l.slots[1], &l.slots[0], &l.slots[2]}, l.done)
	assert.EqualValues(t, 2, l.slots[2].Result)
}

func TestACompletionOfNoCommandUnderWayIsAnError(t *testing.T) {
	l, _ := openRaw(t, 2)
	require.Error(t, l.complete(nvme.Completion{CID: 2}), "there is no such slot")
	require.Error(t, l.complete(nvme.Completion{CID: 0}), "it has no command")
	l.submit(&l.slots[0], &nvme.Command{Opcode: nvme.IOFlush}, 0, false)
	require.NoError(t, l.complete(nvme.Completion{CID: 0}))
	require.Error(t, l.complete(nvme.Completion{CID: 0}), "it is completed already, though its capsule's send is not")
}

func TestReceivesForCompletionsArePostedBeforeTheCapsules(t *testing.T) {
	l, other := openRaw(t, 2)
	l.submit(&l.slots[0], &nvme.Command{Opcode: nvme.IOFlush, NSID: 1}, 0, false)
	l.receive(0) // one more than the endpoint takes
	l.flush()
	assert.Error(t, l.err)
	assert.Equal(t, make([]byte, nvme.CommandLen), other.region.Bytes(), "the completion of this capsule could find no receive")
}

func TestAWriteWithImmediateDataBreaksTheConnection(t *testing.T) {
	l, other := openRaw(t, 1)
	require.NoError(t, other.conn.Endpoint.PostRDMAWriteImmediate(0, hw.Default, 1, l.slots[0].remote, other.region.Segment(0, 16)))
	l.submit(&l.slots[0], &nvme.Command{Opcode: nvme.IOFlush}, 0, false)
	assert.ErrorIs(t, l.wait(t.Context()), errImmediate, "no receive is left for the completion")
}
