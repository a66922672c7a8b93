package iwarp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

// If memory changes while a peer reads it, the contents are undefined. The connection,
// whose CRCs cover the contents, must not break: next checks the CRCs of the FPDUs that
// were made before the memory changed and left after.
func TestMemoryMayChangeWhileItIsBeingSent(t *testing.T) {
	const size = 16 << 20
	n := newNode(t, New(Config{}), map[string]string{"linger": "10s"})
	a, m := n.peer(), n.memory(size, hw.LocalRead)
	_, s := answering(t, a, hw.ConnectConfig{})
	reply := obliging(s.request())
	reply.BigFPDU, s.crc = true, true
	s.write(reply.Append(nil))
	a.awaitUp()
	a.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, size)}, RKey: 1})
	l := connections(a)[0]
	l.awaitFull()
	l.takeToken() // so that the change happens before all that the token's next holder does
	for i := range m.buf {
		m.buf[i] = byte(i)
	}
	l.run(byPoster)
	for got := 0; got < size; {
		_, body := s.next()
		got += len(body)
	}
	assert.Equal(t, hw.StatusSuccess, a.sent(0).Status)
}
