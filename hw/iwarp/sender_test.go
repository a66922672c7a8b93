package iwarp

import (
	"context"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// piped connects a peer to a script by a pipe, with CRCs if params say so. The goroutine that
// made the connection has become the receiver when piped returns, so a post finds the token
// free, and the writer has nothing to do.
func piped(t *testing.T, params map[string]string, opts ...func(*hw.QPConfig)) (*peer, *script) {
	near, far := net.Pipe()
	dial := func(context.Context, string) (net.Conn, error) { return near, nil }
	a := newNode(t, New(Config{Dial: dial}), params).peer(opts...)
	a.recv()
	require.NoError(t, a.qp.Connect(hw.ConnectConfig{Addr: "there", Qual: 1}))
	s := newScript(t, far)
	reply := obliging(s.request())
	reply.CRC = params["crc"] != "false"
	s.write(reply.Append(nil))
	s.write(fpdu(reply.CRC, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}))
	a.awaitUp()
	require.Equal(t, hw.WC{Op: hw.OpRecv}, a.received(0))
	for connections(a)[0].busy.Load() { // until the writer's last write has returned
		runtime.Gosched()
	}
	return a, s
}

func TestAPostBesideATokenHolderIsSentByTheHolder(t *testing.T) {
	a := newNode(t, New(Config{}), noCRC).peer()
	s := scripted(t, a)
	l := connections(a)[0]
	l.takeToken()
	a.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled})
	require.False(t, l.token.Release(), "there is something to look at")
	l.run(byPoster)
	h, _ := s.next()
	assert.Equal(t, wire.OpSend, h.Opcode)
	assert.Equal(t, hw.WC{Op: hw.OpSend}, a.sent(0))
}

// On a pipe the writer writes, and is busy until the peer has read. Requests posted
// meanwhile are sent after that, and give the writer no second job.
func TestAPostLeavesABusyWriterAlone(t *testing.T) {
	a, s := piped(t, noCRC)
	l := connections(a)[0]

	one := hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled}
	a.post(one)
	for len(l.send.writer.wake) > 0 { // until the writer is awake
		runtime.Gosched()
	}
	a.post(one)
	require.Empty(t, l.send.writer.wake)
	for i := range 2 {
		h, _ := s.next()
		require.Equal(t, wire.Header{Opcode: wire.OpSend, Last: true, MSN: uint32(i + 1)}, h)
		assert.Equal(t, hw.WC{Op: hw.OpSend}, a.sent(i))
	}
}

// When the receiver has gone, the poster of a receive has the queue flushed.
func TestAReceiveThatIsPostedAfterTheReceiverLeftIsFlushed(t *testing.T) {
	a := newNode(t, New(Config{}), noCRC).peer()
	s := scripted(t, a)
	require.NoError(t, s.conn.Close())
	a.awaitDown()
	<-connections(a)[0].rxDone
	a.recv()
	assert.Equal(t, hw.WC{Status: hw.StatusFlushed, Op: hw.OpRecv}, a.received(0))
}

// hasty is a Facts that runs first before it reports Established.
type hasty struct {
	hw.Facts
	first func()
}

func (h *hasty) Established(info hw.ConnInfo) {
	h.first()
	h.Facts.Established(info)
}

// After the end of both queues the owner may close the queue pair, and nothing may be
// reported.
func TestNoQueueEndsWhileTheConnectionIsAnnounced(t *testing.T) {
	var a *peer
	shorten := func() {
		a.broken = true
		a.qp.Break(true)
		a.mu.Lock()
		assert.Empty(t, a.sends)
		assert.Empty(t, a.recvs)
		a.mu.Unlock()
	}
	a = newNode(t, New(Config{}), noCRC).peer(func(c *hw.QPConfig) { c.Facts = &hasty{c.Facts, shorten} })
	_, s := answering(t, a, hw.ConnectConfig{})
	reply := obliging(s.request())
	s.write(reply.Append(nil))
	a.awaitUp()
	a.end(true)
}

func TestADeregisteredRegionIsOutOfAPeersReach(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	b, m := n.peer(), n.memory(8, hw.AllPrivileges)
	s, _ := accepted(t, b, plain())
	key := m.RKey()
	require.NoError(t, m.Deregister())
	s.write(fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true, STag: key, TO: m.base}, []byte("x")))
	assert.Equal(t, wire.TermTaggedSTag, s.terminate().Code)
	assert.Equal(t, make([]byte, 8), m.buf)
}

func TestARemoteKeyIsNotALocalKey(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	a, m := n.peer(), n.memory(8, hw.AllPrivileges)
	scripted(t, a)
	a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{{Addr: m.base, Len: 8, LKey: m.RKey()}}})
	assert.Equal(t, hw.StatusLocalProtection, a.sent(0).Status)
}

// A server answers a batch of reads with one call: blocks of 4 KiB, with an answer behind
// each. Over a pipe a Read gets what one Write has.
func TestABatchOfBlocksGoesOutWithOneWrite(t *testing.T) {
	const blocks, size = 32, 4096
	a, s := piped(t, map[string]string{"crc": "true", "fpdu": "16384"}, func(c *hw.QPConfig) { c.SendDepth = 2 * blocks })
	m := a.memory(size, hw.LocalRead)
	block, answer := m.sge(0, size), m.sge(0, 64)
	runner := a.qp.(hw.Runner)
	for range blocks {
		require.Equal(t, 1, runner.PostRun(hw.OpWrite, hw.WRMore, 0, &block, 0, 1, 1, 0))
		require.Equal(t, 1, runner.PostRun(hw.OpSend, hw.WRMore, 0, &answer, 0, 1, 0, 0))
	}
	runner.PostRun(hw.OpSend, 0, 0, &answer, 0, 0, 0, 0)
	got, err := s.conn.Read(make([]byte, 2*arenaSize))
	require.NoError(t, err)
	fpdus := wire.FPDUSize(wire.TaggedHeaderSize+size) + wire.FPDUSize(wire.UntaggedHeaderSize+64)
	assert.Equal(t, blocks*fpdus, got)
	require.NoError(t, s.conn.Close())
	a.awaitDown()
}
