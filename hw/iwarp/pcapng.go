package iwarp

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// capture writes a pcapng file of packets that might have carried the octets of a connection.
// An error of the file ends the capture and nothing else.
type capture struct {
	mu   sync.Mutex
	w    io.WriteCloser // nil once the capture has ended
	err  error          // of the file
	ends [2]netip.AddrPort
	seq  [2]uint32 // sequence number of each end's next octet
	fin  [2]bool   // each end's FIN has been recorded
	buf  []byte
}

// The ends of a traced connection.
const (
	here  = 0
	there = 1
)

// The numbers of a pcapng file, which is written in little-endian order.
const (
	sectionBlock   = 0x0a0d0d0a
	interfaceBlock = 1
	packetBlock    = 6
	byteOrder      = 0x1a2b3c4d
	linkRaw        = 101        // packets begin with their IP header
	version        = 1          // major, and no minor
	unknownLength  = ^uint32(0) // each half of it
	noLimit        = 0          // for the length of a packet
	traceSegment   = 32 << 10
	commentOption  = 1
	endOfOptions   = 4 // bytes, all zero
)

// newCapture begins a capture of conn, which the end first has asked for.
func newCapture(conn net.Conn, w io.WriteCloser, first int) *capture {
	c := &capture{w: w, seq: [2]uint32{1000, 2000}}
	c.ends = [2]netip.AddrPort{tracedEnd(conn.LocalAddr(), 1), tracedEnd(conn.RemoteAddr(), 2)}
	head := appendBlock(nil, sectionBlock, words(binary.LittleEndian, byteOrder, version, unknownLength, unknownLength))
	c.put(appendBlock(head, interfaceBlock, words(binary.LittleEndian, linkRaw, noLimit)))
	c.packet(first, tcpSyn, nil, "")
	c.packet(1-first, tcpSyn|tcpAck, nil, "")
	c.packet(first, tcpAck, nil, "")
	return c
}

// tracedEnd is the address of a TCP connection's end, or a made-up one with that port.
func tracedEnd(a net.Addr, port uint16) netip.AddrPort {
	if ap := addrPort(a); ap.IsValid() {
		return netip.AddrPortFrom(ap.Addr().WithZone(""), ap.Port())
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
}

// words has numbers of 32 bits one after the other.
func words(order binary.AppendByteOrder, numbers ...uint32) (b []byte) {
	for _, n := range numbers {
		b = order.AppendUint32(b, n)
	}
	return b
}

// appendBlock appends a block around body.
func appendBlock(dst []byte, kind uint32, body []byte) []byte {
	pad := -len(body) & 3
	size := uint32(12 + len(body) + pad)
	dst = binary.LittleEndian.AppendUint32(dst, kind)
	dst = binary.LittleEndian.AppendUint32(dst, size)
	dst = append(dst, body...)
	dst = append(dst, make([]byte, pad)...)
	return binary.LittleEndian.AppendUint32(dst, size)
}

// put writes to the file. The lock is held, or no other goroutine knows the capture yet.
func (c *capture) put(b []byte) {
	if c.w == nil {
		return
	}
	if _, c.err = c.w.Write(b); c.err != nil {
		_ = c.w.Close()
		c.w = nil
	}
}

// close ends the capture, and closes the file. It returns the file's first error.
func (c *capture) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.w != nil {
		c.err = c.w.Close()
		c.w = nil
	}
	return c.err
}

// The flags of a TCP header.
const (
	tcpFin = 0x01
	tcpSyn = 0x02
	tcpPsh = 0x08
	tcpAck = 0x10
)

// packet writes a packet from one end, with a comment unless that is empty. The lock is held, or
// no other goroutine knows the capture yet.
func (c *capture) packet(from int, flags byte, payload []byte, comment string) {
	ports, ack := uint32(c.ends[from].Port())<<16|uint32(c.ends[1-from].Port()), uint32(0)
	if flags&tcpAck != 0 {
		ack = c.seq[1-from]
	}
	const size, window = 5 << 28, 65535
	tcp := append(words(binary.BigEndian, ports, c.seq[from], ack, size|uint32(flags)<<16|window, 0), payload...)
	c.seq[from] += uint32(len(payload))
	if flags&(tcpSyn|tcpFin) != 0 {
		c.seq[from]++
	}
	p := append(ipHeader(c.ends[from].Addr(), c.ends[1-from].Addr(), len(tcp)), tcp...)
	now, n := uint64(time.Now().UnixMicro()), uint32(len(p))
	body := append(words(binary.LittleEndian, 0, uint32(now>>32), uint32(now), n, n), p...)
	c.buf = appendBlock(c.buf[:0], packetBlock, appendComment(body, comment))
	c.put(c.buf)
}

// appendComment appends the option of a block that has the comment, unless that is empty.
func appendComment(dst []byte, comment string) []byte {
	if comment == "" {
		return dst
	}
	dst = append(dst, make([]byte, -len(dst)&3)...)
	dst = binary.LittleEndian.AppendUint32(dst, commentOption|uint32(len(comment))<<16)
	dst = append(dst, comment...)
	return append(dst, make([]byte, -len(dst)&3+endOfOptions)...)
}

// ipHeader is the IP header before n octets of TCP.
func ipHeader(from, to netip.Addr, n int) []byte {
	if from.Is4() && to.Is4() {
		h := words(binary.BigEndian, 0x45<<24|uint32(20+n), 0, 64<<24|6<<16)
		h = append(append(h, from.AsSlice()...), to.AsSlice()...)
		sum := uint32(0)
		for i := 0; i < len(h); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(h[i:]))
		}
		sum = sum&0xffff + sum>>16
		binary.BigEndian.PutUint16(h[10:], ^uint16(sum+sum>>16))
		return h
	}
	h := words(binary.BigEndian, 6<<28, uint32(n)<<16|6<<8|64)
	a, b := from.As16(), to.As16()
	return append(append(h, a[:]...), b[:]...)
}

// data records octets that went one way. It reports whether the capture goes on.
func (c *capture) data(from int, b []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(b) > 0 && c.w != nil {
		n := min(len(b), traceSegment)
		c.packet(from, tcpAck|tcpPsh, b[:n], "")
		b = b[n:]
	}
	return c.w != nil
}

// end records an end's last packet, with a FIN, once.
func (c *capture) end(from int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.fin[from] {
		c.fin[from] = true
		c.packet(from, tcpAck|tcpFin, nil, "")
	}
}
