package target

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
	dat "godat/runtime"
)

// rawSlots are the slots of a queue of some entries on loop, its connection, and the
// memory into which the other end receives. What a flush sends is there when it returns.
func rawSlots(t *testing.T, entries int) (*slots, *dat.Conn, []byte) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	ln, err := ia.Listen(t.Context(), "", dat.ConnConfig{
		Depth: entries, OwnReceives: true, Attr: &ep.Attr{MaxRecvDTOs: entries + 1},
	})
	require.NoError(t, err)
	host, err := ln.Dial(ln.Addr(), nil)
	require.NoError(t, err)
	c, err := ln.Accept(ep.RequestOf(<-ln.Requests()), nil)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, (<-ln.Events()).Err())
	}
	memory, err := host.Alloc(nvme.CompletionLen, hw.LocalWrite)
	require.NoError(t, err)
	_, err = host.Endpoint.PostRecvBatch([]ep.DTO{{Segment: memory.Segment(0, nvme.CompletionLen)}})
	require.NoError(t, err)
	s := new(slots)
	require.NoError(t, s.make(c, entries, requestsPerEntry*entries))
	return s, c, memory.Bytes()
}

func TestAQueueReceivesOneCommandMoreThanItHasEntries(t *testing.T) {
	_, c, _ := rawSlots(t, 4)
	posted, _, err := c.Endpoint.RecvQuery()
	require.NoError(t, err)
	assert.Equal(t, 5, posted, "the command that is one too many must come in: it breaks the connection")
}

func TestTheReceiveOfASlotIsPostedBeforeItsCompletion(t *testing.T) {
	s, c, got := rawSlots(t, 4)
	s.completion(nvme.Completion{CID: 7})
	s.receive(&s.commands[0]) // one more than the endpoint takes
	require.Error(t, s.flush(c.Endpoint))
	assert.Equal(t, make([]byte, nvme.CompletionLen), got, "a host with this completion could send a command that finds no receive")

	require.NoError(t, s.flush(c.Endpoint))
	completion, err := nvme.ParseCompletion(got)
	require.NoError(t, err)
	assert.EqualValues(t, 7, completion.CID, "it was only put off")
}

func TestAWriteOnLoopIsCompletedBehindAFence(t *testing.T) {
	s, c, _ := rawSlots(t, 4)
	ns := &namespace{memory: make([]byte, 8192), volatile: true, shift: 12, blocks: 2}
	q := &queue{slots: *s, conn: c, from: &listener{fences: true}, outstanding: 2}
	q.slots.receives = q.slots.receives[:0]
	write := &q.slots.commands[0]
	write.q, write.disk, write.sqe.Opcode = q, &disk{namespace: ns}, nvme.IOWrite
	write.sqe.Data = nvme.Descriptor{Type: nvme.Keyed, Length: 4096}
	write.writeBlocks(0, 4096)
	require.Len(t, q.slots.requests, 2)
	assert.Equal(t, hw.OpRead, q.slots.requests[0].Op)
	assert.Equal(t, hw.Suppress, q.slots.requests[0].Flags)
	assert.Equal(t, hw.OpSend, q.slots.requests[1].Op)
	assert.Equal(t, hw.Suppress|hw.BarrierFence, q.slots.requests[1].Flags, "the completion waits for the data")

	forced := &q.slots.commands[1]
	forced.q, forced.disk, forced.sqe.Opcode, forced.sqe.Data, forced.sqe.CDW12 = q, write.disk, nvme.IOWrite, write.sqe.Data, nvme.ForceUnitAccess
	forced.writeBlocks(0, 4096)
	require.Len(t, q.slots.requests, 3, "the flush comes first")
	assert.Equal(t, hw.Default, q.slots.requests[2].Flags, "the end of the read is an event")
}
