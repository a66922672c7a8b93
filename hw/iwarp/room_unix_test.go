//go:build unix

package iwarp

import (
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// A message's offsets have 32 bits. If a message could fill a receive of more octets than
// that, its offsets would wrap, and octets would be placed beyond the receive.
func TestAReceiveHasNoMoreRoomThanAMessageMayHave(t *testing.T) {
	const segment, segments = 256 << 20, 32 // twice as many octets as 32 bits count
	buf, err := syscall.Mmap(-1, 0, segment, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(buf)) }()
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		n := newNode(t, New(ways.config()), bounds)
		b := n.peer(func(c *hw.QPConfig) { c.RecvSegments = segments })
		m := n.registered(buf, hw.LocalWrite)
		var sgl []hw.SGE
		for range segments {
			sgl = append(sgl, m.sge(0, segment))
		}
		b.recv(sgl...)
		s := acceptedByPipe(t, ways, b, plain())
		b.awaitUp()
		s.write(fpdu(false, wire.Header{Opcode: wire.OpSend, MSN: 1}, []byte("the beginning")))
		assert.Equal(t, uint64(soft.MaxMessage), idle(b).recv.place.room)
		_ = s.conn.Close()
		b.awaitDown()
	})
}
