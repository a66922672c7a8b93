package iwarp

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// gate is a sink that blocks in its first call until the test opens it.
type gate struct {
	hw.Sink
	once         sync.Once
	inside, open chan struct{}
}

func (g *gate) Complete(wcs []hw.WC) {
	g.once.Do(func() { close(g.inside); <-g.open })
	g.Sink.Complete(wcs)
}

// A read is not flushed while the receiver may be placing its response: until then the
// owner may not use the memory again.
func TestAReadIsNotFlushedWhileItsResponseMayBePlaced(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	g := &gate{inside: make(chan struct{}), open: make(chan struct{})}
	a := n.peer(func(c *hw.QPConfig) { g.Sink, c.RecvSink = c.RecvSink, g })
	m := n.memory(8, hw.LocalWrite)
	for range batch + 1 {
		a.recv()
	}
	s := scripted(t, a)
	a.post(hw.SendWR{Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 8)}, RKey: 1}, hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled})
	_, body := s.next()
	var stream []byte
	for i := range batch + 1 { // one more than the receiver hands out at a time
		stream = append(stream, fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: uint32(i + 1)})...)
	}
	response := wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: binary.BigEndian.Uint32(body)}
	s.write(append(stream, fpdu(false, response, []byte("response"))...))
	<-g.inside
	a.broken = true
	a.qp.Break(true)
	a.mu.Lock()
	assert.Empty(t, a.sends, "the receiver is not done")
	a.mu.Unlock()
	close(g.open)
	a.end(true)
	assert.Len(t, a.sends, 3)
	if a.sends[0].Status == hw.StatusSuccess { // the response came in one piece with the rest
		assert.Equal(t, "response", string(m.buf))
	} else {
		assert.Equal(t, make([]byte, 8), m.buf)
	}
	assert.Equal(t, hw.OpEnd, a.sends[2].Op)
	assert.Len(t, a.recvs, batch+2)
}
