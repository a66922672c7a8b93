package iwarp

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// keeper is a sink that records what is called, beside the completions.
type keeper struct {
	recorder
	calls []string
	one   func() // called with each completion that is kept
}

func (k *keeper) CompleteOne(id uint64, op hw.Op, n uint32, flags hw.WCFlags) {
	if flags&hw.WCMore != 0 {
		k.call("one")
	}
	if k.one != nil {
		k.one()
	}
	k.Complete([]hw.WC{{ID: id, Len: n, Op: op}})
}

func (k *keeper) Flush() { k.call("flush") }

func (k *keeper) call(what string) { k.p.note(func() { k.calls = append(k.calls, what) }) }

// awaitCalls waits until those are the calls, and forgets them.
func (k *keeper) awaitCalls(calls ...string) {
	k.p.tb.Helper()
	k.p.await("calls", func() bool { return len(k.calls) >= len(calls) })
	k.p.note(func() {
		assert.Equal(k.p.tb, calls, k.calls)
		k.calls = nil
	})
}

// The completions of the messages that one read takes reach the program together. Each has
// given its place in the queue back before.
func TestMessagesOfOneReadAreHandedOutTogether(t *testing.T) {
	const together = 3
	var sink keeper
	a, s := piped(t, noCRC, func(c *hw.QPConfig) {
		sink.recorder = c.RecvSink.(recorder)
		c.RecvSink, c.RecvDepth = &sink, together
	})
	require.Empty(t, sink.calls, "one message is not kept")
	sink.one = func() { a.recv() } // fails without a place
	for range together {
		a.recv()
	}
	var octets []byte
	for i := range uint32(together) {
		octets = append(octets, fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 2 + i})...)
	}
	s.write(octets)
	sink.awaitCalls("one", "one", "one", "flush")

	sink.one = nil
	octets = nil
	for i, op := range []wire.Opcode{wire.OpSend, wire.OpSendSE, wire.OpSend} {
		octets = append(octets, fpdu(false, wire.Header{Opcode: op, Last: true, MSN: uint32(5 + i)})...)
	}
	s.write(octets)
	require.Equal(t, hw.WC{Op: hw.OpRecv}, a.received(1+together+2))
	require.Equal(t, hw.WC{Op: hw.OpRecv, Flags: hw.WCSolicited}, a.received(1+together+1), "in order")
	sink.awaitCalls("one")
}

// Another connection of the zone uses memory, for which an invalidation waits. The program gets
// the messages before it meanwhile.
func TestNoCompletionIsKeptWhileAnInvalidationWaits(t *testing.T) {
	var sink keeper
	a, s := piped(t, noCRC, func(c *hw.QPConfig) {
		sink.recorder = c.RecvSink.(recorder)
		c.RecvSink = &sink
	})
	m, w := a.memory(64, hw.LocalRead|hw.LocalWrite), a.window(a.qp)
	bind := bindTo(w, m)
	a.post(bind)
	require.Equal(t, hw.WC{Op: hw.OpBind}, a.sent(0))
	for range 2 {
		a.recv()
	}
	l := connections(a)[0]
	l.takeToken() // as if it were sending
	release := sync.OnceFunc(func() { l.run(byPoster) })
	defer release()
	s.write(append(
		fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 2}),
		fpdu(false, wire.Header{Opcode: wire.OpSendInvalidate, Last: true, MSN: 3, STag: bind.Bind.Key})...))
	sink.awaitCalls("one", "flush")
	a.note(func() { assert.Len(t, a.recvs, 2, "the invalidation waits") })
	release()
	require.Equal(t, hw.WC{Op: hw.OpRecvInvalidate, Flags: hw.WCInvalidated, Imm: bind.Bind.Key}, a.received(2))
}

// The completions of the requests that one write takes reach the program together. Each has
// given its place in the queue back before.
func TestRequestsOfOneWriteAreHandedOutTogether(t *testing.T) {
	const together = 3
	var sink keeper
	a, s := piped(t, noCRC, func(c *hw.QPConfig) {
		sink.recorder = c.SendSink.(recorder)
		c.SendSink = &sink
	})
	sq := connections(a)[0].send.sq
	done := uint64(0)
	sink.one = func() {
		done++
		assert.Equal(t, done, sq.Freed.Load())
	}
	wrs := slices.Repeat([]hw.SendWR{{Op: hw.OpSend, Flags: hw.WRSignaled}}, together)
	a.post(wrs...)
	for range together {
		s.next()
	}
	sink.awaitCalls("one", "one", "one", "flush")
}
