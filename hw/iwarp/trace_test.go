package iwarp

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// tape is a file in memory.
type tape struct {
	bytes.Buffer
	closed chan struct{}
}

func (t *tape) Close() error { close(t.closed); return nil }

// streams parses a pcapng file of TCP over IPv4 and joins the streams by their sequence
// numbers. It returns each end's octets by the end's port.
func streams(t *testing.T, file []byte) map[uint16][]byte {
	t.Helper()
	out, first := map[uint16][]byte{}, map[uint16]uint32{}
	for len(file) > 0 {
		require.GreaterOrEqual(t, len(file), 12)
		kind, size := binary.LittleEndian.Uint32(file), binary.LittleEndian.Uint32(file[4:])
		require.Zero(t, size%4)
		require.Equal(t, size, binary.LittleEndian.Uint32(file[size-4:]))
		body := file[8 : size-4]
		file = file[size:]
		if kind != packetBlock {
			continue
		}
		n := binary.LittleEndian.Uint32(body[12:])
		ip := body[20 : 20+n]
		require.Equal(t, byte(0x45), ip[0])
		require.Equal(t, n, uint32(binary.BigEndian.Uint16(ip[2:])))
		sum := uint32(0)
		for i := 0; i < 20; i += 2 {
			sum += uint32(binary.BigEndian.Uint16(ip[i:]))
		}
		require.Equal(t, uint32(0xffff), sum&0xffff+sum>>16, "the IP header's checksum")
		tcp := ip[20:]
		port, seq := binary.BigEndian.Uint16(tcp), binary.BigEndian.Uint32(tcp[4:])
		if tcp[13]&tcpSyn != 0 {
			first[port] = seq + 1
			continue
		}
		require.Equal(t, first[port]+uint32(len(out[port])), seq)
		out[port] = append(out[port], tcp[20:]...)
	}
	return out
}

func TestATraceRecordsTheConnection(t *testing.T) {
	var mu sync.Mutex
	tapes := map[string]*tape{}
	p := New(Config{Trace: func(local, remote net.Addr) io.WriteCloser {
		mu.Lock()
		defer mu.Unlock()
		tapes[local.String()] = &tape{closed: make(chan struct{})}
		return tapes[local.String()]
	}})
	na, nb := newNode(t, p, nil), newNode(t, p, nil)
	a, b := na.peer(), nb.peer()
	src, dst := na.memory(100000, hw.LocalRead), nb.memory(100000, hw.LocalWrite)
	for i := range src.buf {
		src.buf[i] = byte(i * 7)
	}
	b.recv(dst.sge(0, 100000))
	join(a, b)
	a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{src.sge(0, 100000)}})
	b.received(0)
	require.Equal(t, src.buf, dst.buf)
	a.end(true)
	b.end(true)
	for _, tp := range tapes {
		<-tp.closed
	}
	la, lb := a.info.Local, b.info.Local
	one, two := streams(t, tapes[la.String()].Bytes()), streams(t, tapes[lb.String()].Bytes())
	assert.Equal(t, one, two, "both ends tell the same story")

	stream := one[uint16(la.(*net.TCPAddr).Port)]
	req, n, err := wire.ParseMPARequest(stream)
	require.NoError(t, err)
	assert.True(t, req.CRC)
	var got []byte
	for stream = stream[n:]; len(stream) > 0; stream = stream[n:] {
		var ulpdu []byte
		ulpdu, n, err = wire.ParseFPDU(stream, true)
		require.NoError(t, err)
		var h wire.Header
		k, err := h.Parse(ulpdu, len(ulpdu))
		require.NoError(t, err)
		got = append(got, ulpdu[k:]...)
	}
	assert.Equal(t, src.buf, got)
}
