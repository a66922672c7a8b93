package iwarp

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// The success of a write means only that TCP has its bytes, and will deliver them or
// break the connection.
func TestAWriteSucceedsBeforeThePeerHasReadIt(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	a, m := n.peer(), n.memory(8, hw.AllPrivileges)
	s := scripted(t, a)
	a.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 8)}, RKey: 1})
	assert.Equal(t, hw.WC{Op: hw.OpWrite, Len: 8}, a.sent(0))
	h, _ := s.next() // the peer reads no sooner
	assert.Equal(t, wire.OpWrite, h.Opcode)
}

// A read behind the write shows the write's outcome: the read's answer comes after the
// peer has placed the write, and not at all if the peer has refused it.
func TestAWriteThatThePeerRefusesSucceedsAndTheReadBehindItDoesNot(t *testing.T) {
	n := newNode(t, New(Config{}), nil)
	a, b, m := n.peer(), n.peer(), n.memory(16, hw.AllPrivileges)
	gone := n.memory(8, hw.AllPrivileges)
	key, at := gone.RKey(), gone.base
	require.NoError(t, gone.Deregister())
	join(a, b)
	a.post(
		hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 8)}, RKey: key, RemoteAddr: at},
		hw.SendWR{Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(8, 8)}, RKey: m.RKey(), RemoteAddr: m.base},
	)
	assert.Equal(t, hw.WC{Op: hw.OpWrite, Len: 8}, a.sent(0))
	a.awaitDown()
	assert.Equal(t, hw.ReasonBroken, a.down)
	a.end(false)
	assert.NotEqual(t, hw.StatusSuccess, a.sent(1).Status)
}

// late is a connection whose writes, if asked, return late: the octets have left, and the
// writer has not run since.
type late struct {
	net.Conn
	on   atomic.Bool
	gate chan struct{}
}

func (c *late) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.on.Load() {
		<-c.gate
	}
	return n, err
}

// The poster may use the buffer of a send again when the send has completed. The peer's
// answer does not imply that: the receiver may run before the writer goes on.
func TestAnAnswerMayComeBeforeTheCompletionOfTheSend(t *testing.T) {
	near, far := net.Pipe()
	slow := &late{Conn: near, gate: make(chan struct{})}
	dial := func(context.Context, string) (net.Conn, error) { return slow, nil }
	n := newNode(t, New(Config{Dial: dial}), noCRC)
	a, m := n.peer(), n.memory(16, hw.AllPrivileges)
	require.NoError(t, a.qp.Connect(hw.ConnectConfig{Addr: "there", Qual: 1}))
	s := newScript(t, far)
	reply := obliging(s.request())
	s.write(reply.Append(nil))
	a.awaitUp()
	for l := connections(a)[0]; l.busy.Load(); { // until that write has returned
		runtime.Gosched()
	}
	slow.on.Store(true)

	a.recv(m.sge(8, 8))
	a.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 8)}})
	s.next()
	s.write(fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}, []byte("answered")))
	assert.Equal(t, hw.WC{Op: hw.OpRecv, Len: 8}, a.received(0))
	a.mu.Lock()
	assert.Empty(t, a.sends)
	a.mu.Unlock()
	slow.on.Store(false)
	close(slow.gate)
	assert.Equal(t, hw.WC{Op: hw.OpSend, Len: 8}, a.sent(0))
}
