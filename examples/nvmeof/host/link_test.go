package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// openRaw returns a link without a target: what comes is up to the test. The other end
// receives a capsule into the memory.
func openRaw(t *testing.T, slots int) (l *link, memory []byte) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	ln, err := ia.Listen(t.Context(), "", dat.ConnConfig{Depth: slots, OwnReceives: true})
	require.NoError(t, err)
	l = new(link)
	c, err := ln.Dial(ln.Addr(), nil)
	require.NoError(t, err)
	other, err := ln.Accept(dat.RequestOf(<-ln.Requests()), nil)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, (<-ln.Events()).Err())
	}
	require.NoError(t, l.make(c, slots, nvme.PageLen))
	region, err := other.Alloc(nvme.CommandLen, dat.LocalWrite)
	require.NoError(t, err)
	_, err = other.Endpoint.PostRecvBatch([]dat.DTO{{Segment: region.Segment(0, nvme.CommandLen)}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	return l, region.Bytes()
}

func TestASlotIsFreeWhenItsCapsuleWasSentAndItsCompletionHasCome(t *testing.T) {
	l, _ := openRaw(t, 4)
	sent := func(cookie uint64) {
		require.False(t, l.handle(&dat.Event{
			Number: dat.DTOCompletion, Source: l.conn.Endpoint, Op: dat.OpSend, Status: dat.StatusSuccess, Cookie: cookie,
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
	l, got := openRaw(t, 2)
	l.submit(&l.slots[0], &nvme.Command{Opcode: nvme.IOFlush, NSID: 1}, 0, false)
	l.receive(0) // one more than the endpoint takes
	l.flush()
	assert.Error(t, l.err)
	assert.Equal(t, make([]byte, nvme.CommandLen), got, "the completion of this capsule could find no receive")
}
