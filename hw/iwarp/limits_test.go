package iwarp

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// A peer can make this end hold only a bounded amount of memory.

// idle is b's connection, once all goroutines wait.
func idle(b *peer) *connection {
	synctest.Wait()
	return b.qp.(*queuePair).conn
}

func TestAnIdleConnectionHoldsNoBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		p := New(ways.config())
		na, nb := newNode(t, p, nil), newNode(t, p, nil)
		a, b := na.peer(), nb.peer()
		m := nb.memory(1<<16, hw.LocalWrite)
		out := na.memory(1<<16, hw.LocalRead)
		b.recv(m.sge(0, 1<<16))
		join(a, b)
		a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{out.sge(0, 1<<16)}})
		b.received(0)
		for _, p := range []*peer{a, b} {
			l := idle(p)
			assert.Nil(t, l.recv.in.buf)
			assert.Nil(t, l.send.out.sendBuf)
		}
	})
}

func TestAPeersUnfinishedFPDUTakesOneBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		b := newNode(t, New(ways.config()), bounds).peer()
		b.recv()
		s := acceptedByPipe(t, ways, b, plain())
		b.awaitUp()
		s.write([]byte{0xff, 0xff, 0x41}) // a small part of the longest FPDU
		l := idle(b)
		assert.Equal(t, 3, l.recv.in.w-l.recv.in.r)
		assert.Less(t, l.recv.need, readSize)
		assert.Nil(t, l.send.out.sendBuf)
		_ = s.conn.Close()
	})
}

// If a peer asks for gigabytes and reads nothing, this end holds one buffer of them.
func TestReadsThatThePeerDoesNotTakeAreNotBuffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		n := newNode(t, New(ways.config()), bounds)
		b, m := n.peer(), n.memory(64<<20, hw.RemoteRead)
		s := acceptedByPipe(t, ways, b, plain())
		b.awaitUp()
		for i := range uint32(4) {
			r := wire.ReadRequest{SinkSTag: 1, Size: 64 << 20, SrcSTag: m.RKey(), SrcTO: m.base}
			s.write(fpdu(false, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: i + 1}, r.Append(nil)))
		}
		l := idle(b)
		assert.NotZero(t, l.send.out.queued)
		assert.LessOrEqual(t, cap(l.send.out.arena), arenaSize)
		assert.LessOrEqual(t, l.send.out.queued-l.send.out.written, l.send.out.most+uint64(wire.FPDUSize(1<<16-1)))
		_ = s.conn.Close()
		b.awaitDown()
	})
}

// A flood of empty messages does not keep this end from sending.
func TestAFloodOfEmptyMessagesDoesNotStopTheSender(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	b := n.peer()
	s, _ := accepted(t, b, plain())
	b.awaitUp()
	flood := make([]byte, 0, 1000*len(rtrFPDU))
	for range 1000 {
		flood = append(flood, rtrFPDU...)
	}
	s.meanwhile(func() {
		for {
			if _, err := s.conn.Write(flood); err != nil {
				return
			}
		}
	})
	for i := range 100 {
		b.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled})
		h, _ := s.next()
		require.Equal(t, wire.Header{Opcode: wire.OpSend, Last: true, MSN: uint32(i + 1)}, h)
		require.Equal(t, hw.StatusSuccess, b.sent(i).Status)
	}
	_ = s.conn.Close()
	b.awaitDown()
}

// A reject, too, answers an enhanced block with one: siw reads beyond the end of a reply
// without a block.
func TestARejectAnswersTheEnhancedBlock(t *testing.T) {
	for _, enhanced := range []bool{true, false} {
		n := newNode(t, New(Config{}), noCRC)
		ln, requests := n.listen(hw.ListenConfig{})
		s := dialScript(t, ln)
		req := wire.MPARequest{Revision: 1}
		if enhanced {
			req = plain()
		}
		s.write(req.Append(nil))
		require.NoError(t, (<-requests).Reject([]byte("no")))
		assert.Equal(t, wire.MPAReply{
			Revision: req.Revision, Reject: true, Enhanced: enhanced, Private: []byte("no"),
		}, s.reply())
	}
}

func TestThePrivateDataThatSiwTakesIsTheDefault(t *testing.T) {
	assert.Equal(t, 248, newNode(t, New(Config{}), nil).dev.Attr().MaxPrivate)
}
