package iwarp

import (
	"bytes"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// awaitFull waits until the writer waits for the socket.
func (c *connection) awaitFull() {
	for full := false; !full; runtime.Gosched() {
		c.takeToken()
		full = c.busy.Load() && c.send.writer.job.kind == jobWait
		c.run(byPoster)
	}
}

// blocked is a connection whose socket is full of octets of value 0x5a. The FPDUs
// are short, so that one is half written and others wait behind it. They have no CRC, and
// so stay in memory until they are written.
func blocked(t *testing.T) (a *peer, m *memory, s *script) {
	return blockedBy(t, false, hw.LocalRead, false)
}

// blockedBy is blocked with or without CRCs, by a region of these privileges. lent is
// whether the region's memory is exchanged before, for the same.
func blockedBy(t *testing.T, crc bool, priv hw.Privileges, lent bool) (a *peer, m *memory, s *script) {
	const size = 16 << 20
	n := newNode(t, New(Config{}), map[string]string{"crc": strconv.FormatBool(crc), "linger": "10s", "fpdu": "1440"})
	a, m = n.peer(), n.memory(size, priv)
	for i := range m.buf {
		m.buf[i] = 0x5a
	}
	if lent {
		require.NoError(t, m.MR.(hw.Remapper).Remap(m.buf))
	}
	_, s = answering(t, a, hw.ConnectConfig{})
	reply := obliging(s.request())
	reply.BigFPDU, reply.CRC, s.crc = true, crc, crc
	s.write(reply.Append(nil))
	a.awaitUp()
	a.post(hw.SendWR{Op: hw.OpWrite, SGL: []hw.SGE{m.sge(0, size)}, RKey: 1})
	connections(a)[0].awaitFull()
	return a, m, s
}

// unstuff reads whole FPDUs of what was posted, up to a Terminate.
func unstuff(t *testing.T, s *script, m *memory) {
	got := 0
	for {
		h, body := s.next()
		if h.Opcode == wire.OpTerminate {
			break
		}
		got += len(body)
		require.Equal(t, len(body), bytes.Count(body, []byte{0x5a}))
	}
	assert.Less(t, got, len(m.buf))
}

// The memory is deregistered and overwritten while the socket is full: the peer gets the
// half-written FPDU as it was posted, and then a Terminate.
func TestAHalfWrittenFPDUIsFinishedFromACopy(t *testing.T) {
	a, m, s := blocked(t)
	require.NoError(t, m.Deregister())
	clear(m.buf)
	unstuff(t, s, m)
	assert.Equal(t, hw.StatusLocalProtection, a.sent(0).Status)
}

func TestABreakFinishesAHalfWrittenFPDU(t *testing.T) {
	a, m, s := blocked(t)
	a.broken = true
	a.qp.Break(false)
	a.end(false)
	clear(m.buf) // the program may write to it again
	unstuff(t, s, m)
}

// A Break interrupts the writer, which may end its job before the Break goes on.
func TestABreakFinishesAHalfWrittenFPDUThoughTheWriterWasInterrupted(t *testing.T) {
	a, m, s := blocked(t)
	l := connections(a)[0]
	l.takeToken()
	a.broken = true
	a.qp.Break(false)
	for l.busy.Load() {
		runtime.Gosched()
	}
	l.run(byPoster)
	a.end(false)
	clear(m.buf)
	unstuff(t, s, m)
}

// all reads all octets that were posted. s checks their CRCs.
func (m *memory) all(s *script, each func(part []byte)) {
	for got := 0; got < len(m.buf); {
		_, part := s.next()
		got += len(part)
		each(part)
	}
}

// The region gets other memory with the same octets while the socket is full, and the
// test overwrites the former memory: the peer gets all octets that were posted.
func TestAWriteGoesOnInTheMemoryThatItsRegionGetsMeanwhile(t *testing.T) {
	for _, crc := range []bool{false, true} {
		_, m, s := blockedBy(t, crc, hw.LocalRead, true)
		region := m.MR.(hw.Remapper)
		require.NoError(t, region.Remap(bytes.Clone(m.buf)))
		region.Settle()
		clear(m.buf)
		m.all(s, func(part []byte) { require.Equal(t, len(part), bytes.Count(part, []byte{0x5a})) })
	}
}

// With a CRC, only what nobody changes stays in memory until it is written: others may
// write to a region that is being sent, and the connection stands.
func TestWhoWritesToARegionThatIsSentBreaksNoCRC(t *testing.T) {
	for _, by := range []struct {
		priv hw.Privileges
		lent bool
	}{{hw.LocalRead, false}, {hw.LocalRead | hw.LocalWrite, true}, {hw.LocalRead | hw.RemoteRead, true}} {
		_, m, s := blockedBy(t, true, by.priv, by.lent)
		for i := range m.buf {
			m.buf[i] = 0xa5
		}
		m.all(s, func([]byte) {})
	}
}

// What is steady is not copied, also when it has a CRC.
func TestSteadyMemoryWithACRCIsNotCopied(t *testing.T) {
	for _, lent := range []bool{false, true} {
		a, _, _ := blockedBy(t, true, hw.LocalRead, lent)
		l := connections(a)[0]
		l.takeToken()
		inMemory := 0
		for _, p := range l.send.out.pieces {
			if p.key != 0 {
				inMemory++
			}
		}
		l.run(byPoster)
		assert.Equal(t, lent, inMemory > 0)
	}
}
