package wire_test

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The reader below knows little-endian pcapng with Ethernet, IPv4 and TCP.
const (
	pcapngSection   = 0x0a0d0d0a
	pcapngInterface = 1
	pcapngPacket    = 6 // enhanced packet block
	byteOrderMagic  = 0x1a2b3c4d

	linkEthernet  = 1
	etherIPv4     = 0x0800
	ethernetSize  = 14
	protocolTCP   = 6
	tcpSYN        = 0x02
	blockOverhead = 12
)

// flow is one direction of a connection.
type flow struct{ src, dst uint16 }

// segment is the payload of one TCP segment.
type segment struct {
	seq  uint32
	data []byte
}

// readStreams reads the capture's TCP payload, joined per direction.
func readStreams(t testing.TB, name string) map[flow][]byte {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	segments := map[flow][]segment{}
	starts := map[flow]uint32{}
	le := binary.LittleEndian
	for len(b) > 0 {
		require.GreaterOrEqual(t, len(b), blockOverhead)
		kind, size := le.Uint32(b), int(le.Uint32(b[4:]))
		require.GreaterOrEqual(t, size, blockOverhead)
		require.LessOrEqual(t, size, len(b))
		body := b[8 : size-4]
		b = b[size:]
		switch kind {
		case pcapngSection:
			require.Equal(t, uint32(byteOrderMagic), le.Uint32(body))
		case pcapngInterface:
			require.Equal(t, uint16(linkEthernet), le.Uint16(body))
		case pcapngPacket:
			captured, original := le.Uint32(body[12:]), le.Uint32(body[16:])
			require.Equal(t, original, captured, "a packet is cut short")
			addPacket(t, body[20:20+captured], segments, starts)
		}
	}
	streams := map[flow][]byte{}
	for f, segs := range segments {
		streams[f] = joinSegments(t, segs, starts[f])
	}
	return streams
}

// addPacket takes the payload of an Ethernet frame with TCP in it.
func addPacket(t testing.TB, frame []byte, segments map[flow][]segment, starts map[flow]uint32) {
	t.Helper()
	be := binary.BigEndian
	require.Equal(t, uint16(etherIPv4), be.Uint16(frame[12:]))
	ip := frame[ethernetSize:]
	require.Equal(t, byte(protocolTCP), ip[9])
	tcp := ip[int(ip[0]&0x0f)*4 : be.Uint16(ip[2:])]
	f := flow{be.Uint16(tcp), be.Uint16(tcp[2:])}
	seq := be.Uint32(tcp[4:])
	if tcp[13]&tcpSYN != 0 {
		starts[f] = seq + 1
	}
	if data := tcp[int(tcp[12]>>4)*4:]; len(data) > 0 {
		segments[f] = append(segments[f], segment{seq, data})
	}
}

// joinSegments orders the segments, drops octets that came twice, and fails at a gap.
func joinSegments(t testing.TB, segs []segment, start uint32) (stream []byte) {
	t.Helper()
	slices.SortStableFunc(segs, func(a, b segment) int { return cmp.Compare(a.seq-start, b.seq-start) })
	for _, s := range segs {
		at := int(s.seq - start)
		require.LessOrEqual(t, at, len(stream), "a segment is missing")
		if fresh := len(stream) - at; fresh < len(s.data) {
			stream = append(stream, s.data[fresh:]...)
		}
	}
	return stream
}
