package iwarp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// The socket is full, and the FPDUs of several writes wait, each from a region of its own.
// The test deregisters one region: the peer gets all writes before it whole, and nothing
// of that one.
func TestRequestsBeforeAFreedRegionAreSentAndThoseBehindItAreNot(t *testing.T) {
	const size, writes = 4 << 10, 4096
	n := newNode(t, New(Config{}), noCRC)
	a := n.peer(func(c *hw.QPConfig) { c.SendDepth = writes })
	_, s := answering(t, a, hw.ConnectConfig{})
	reply := obliging(s.request())
	reply.BigFPDU = true // an FPDU for each
	s.write(reply.Append(nil))
	a.awaitUp()
	connections(a)[0].carry(haulFor(2, true)) // so that much is left behind the first write
	var regions [writes]*memory
	var wrs []hw.SendWR
	for i := range regions {
		regions[i] = n.memory(size, hw.LocalRead)
		wrs = append(wrs, hw.SendWR{Op: hw.OpWrite, SGL: []hw.SGE{regions[i].sge(0, size)}, RKey: uint32(i)})
	}
	a.post(wrs...)
	got := uint32(0)
	expect := func() {
		h, body := s.next()
		require.Equal(t, got, h.STag)
		require.Len(t, body, size)
		got++
	}
	victim, ok := waiting(connections(a)[0])
	for ; !ok; victim, ok = waiting(connections(a)[0]) {
		expect()
	}
	require.NoError(t, regions[victim].Deregister())
	for got < uint32(victim) {
		expect()
	}
	h, _ := s.next()
	assert.Equal(t, wire.OpTerminate, h.Opcode)
	s.eof()
	a.awaitDown()
	a.end(false)
	for i, wc := range a.sends[:writes-int(victim)] { // the writes before the victim were not signaled
		want := hw.StatusFlushed
		if i == 0 {
			want = hw.StatusLocalProtection
		}
		assert.Equal(t, want, wc.Status, "write %d", int(victim)+i)
	}
}

// A response waits in the outbox, and the slot of its request in the queue is used again, when its
// region dies. The Terminate quotes the request of that response.
func TestARefusalQuotesTheRequestThatItRefuses(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	a, m := n.peer(), n.memory(4<<10, hw.RemoteRead)
	scripted(t, a)
	tx := connections(a)[0]
	tx.takeToken()
	victim := response{stag: 7, size: uint32(len(m.buf)), srcKey: m.RKey(), src: m.base, to: 5, msn: 1}
	tx.answers.push(victim)
	require.True(t, tx.send.assemble())
	require.Zero(t, tx.answers.outstanding(), "another request may come")
	for i := range tx.answers.slots {
		tx.answers.push(response{stag: 8, msn: uint32(2 + i)})
	}
	freed := make(chan error, 1)
	go func() { freed <- m.Deregister() }()
	require.Eventually(t, func() bool { return n.dev.(*device).Keys.Lookup(victim.srcKey).Size == 0 }, patience, time.Millisecond)
	tx.send.recheck()
	require.NotNil(t, tx.send.last)
	assert.Equal(t, victim.refusal(wire.ErrSTag), tx.send.last.term)
	tx.run(byPoster)
	require.NoError(t, <-freed)
	a.end(false)
}

// carry changes the haul of a connection that has nothing to send.
func (c *connection) carry(h haul) {
	c.takeToken()
	c.haul, c.send.out.most = h, h.write
	c.run(byPoster)
}

// waiting waits until the socket is full, and returns the request of an FPDU that has not
// begun to leave and has other FPDUs before it and behind it, if there is one.
func waiting(l *connection) (slot uint64, ok bool) {
	l.awaitFull()
	l.takeToken()
	defer l.run(byPoster)
	if l.send.out.sendBuf == nil { // another holder has sent it all meanwhile
		return 0, false
	}
	n := len(l.send.out.frames)
	if n < 6 || l.send.out.start(n-6) <= l.send.out.written {
		return 0, false
	}
	return l.send.out.frames[n-3].slot, true
}
