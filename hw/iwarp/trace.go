package iwarp

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// traced is conn, or a traceConn around it if the connection has a trace. A traceConn has no
// descriptor for the data path, so all octets pass through its Read and Write.
func (d *device) traced(conn net.Conn) net.Conn {
	var w io.WriteCloser
	if make := d.provider.cfg.Trace; make != nil {
		w = make(conn.LocalAddr(), conn.RemoteAddr())
	} else if d.set.trace != "" {
		w = traceFile(d.set.trace, conn)
	}
	if w == nil {
		return conn
	}
	return newTraceConn(conn, w)
}

// traceVariable is the environment variable that has the place of the parameter trace.
const traceVariable = "GODATTRACE"

// traceDir is the directory for traces that is asked for, which it makes; empty for none.
func (s *settings) traceDir() (string, error) {
	dir := cmp.Or(s.trace, os.Getenv(traceVariable))
	if dir == "" {
		return "", nil
	}
	return dir, badValue("trace", dir, os.MkdirAll(dir, 0o700))
}

// traceFile makes the file for a connection, which is named by time and addresses and is
// for its user alone, because it has what the connection carries. It returns nil if there
// can be no file.
func traceFile(dir string, conn net.Conn) io.WriteCloser {
	ends := fmt.Sprintf("%v-%v", conn.LocalAddr(), conn.RemoteAddr())
	name := time.Now().Format("20060102-150405.000-") + strings.Map(fileRune, ends)
	f, err := os.CreateTemp(dir, name+"-*.pcapng")
	if err != nil {
		return nil
	}
	return f
}

// fileRune is r, or a character that a file's name may have on every system.
func fileRune(r rune) rune {
	if strings.ContainsRune(`:/\*%`, r) {
		return '_'
	}
	return r
}

// traceConn writes a pcapng file of packets that might have carried the octets that it
// reads and writes. An error of the file ends the trace and nothing else.
type traceConn struct {
	net.Conn

	mu   sync.Mutex
	w    io.WriteCloser // nil once the trace has ended
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
	linkRaw        = 101 // packets begin with their IP header
	unknownLength  = ^uint64(0)
	traceSegment   = 32 << 10
)

func newTraceConn(conn net.Conn, w io.WriteCloser) *traceConn {
	t := &traceConn{Conn: conn, w: w, seq: [2]uint32{1000, 2000}}
	t.ends = [2]netip.AddrPort{addrPort(conn.LocalAddr(), 1), addrPort(conn.RemoteAddr(), 2)}
	var head []byte
	body := binary.LittleEndian.AppendUint32(nil, byteOrder)
	body = binary.LittleEndian.AppendUint16(body, 1)
	body = binary.LittleEndian.AppendUint16(body, 0)
	body = binary.LittleEndian.AppendUint64(body, unknownLength)
	head = appendBlock(head, sectionBlock, body)
	body = binary.LittleEndian.AppendUint16(body[:0], linkRaw)
	body = binary.LittleEndian.AppendUint16(body, 0)
	body = binary.LittleEndian.AppendUint32(body, 0) // no limit
	head = appendBlock(head, interfaceBlock, body)
	t.put(head)
	t.mu.Lock()
	t.packet(here, tcpSyn, nil)
	t.packet(there, tcpSyn|tcpAck, nil)
	t.packet(here, tcpAck, nil)
	t.mu.Unlock()
	return t
}

// addrPort is the address of a TCP connection's end, or a made-up one with that port.
func addrPort(a net.Addr, port uint16) netip.AddrPort {
	if a != nil {
		if ap, err := netip.ParseAddrPort(a.String()); err == nil {
			return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
		}
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
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

// put writes to the file. The lock is held, or no other goroutine knows the trace yet.
func (t *traceConn) put(b []byte) {
	if t.w == nil {
		return
	}
	if _, err := t.w.Write(b); err != nil {
		_ = t.w.Close()
		t.w = nil
	}
}

// The flags of a TCP header.
const (
	tcpFin = 0x01
	tcpSyn = 0x02
	tcpPsh = 0x08
	tcpAck = 0x10
)

// packet writes a packet from one end. The lock is held.
func (t *traceConn) packet(from int, flags byte, payload []byte) {
	tcp := make([]byte, 20, 20+len(payload))
	binary.BigEndian.PutUint16(tcp[0:], t.ends[from].Port())
	binary.BigEndian.PutUint16(tcp[2:], t.ends[1-from].Port())
	binary.BigEndian.PutUint32(tcp[4:], t.seq[from])
	if flags&tcpAck != 0 {
		binary.BigEndian.PutUint32(tcp[8:], t.seq[1-from])
	}
	tcp[12], tcp[13] = 5<<4, flags
	binary.BigEndian.PutUint16(tcp[14:], 65535)
	tcp = append(tcp, payload...)
	t.seq[from] += uint32(len(payload))
	if flags&(tcpSyn|tcpFin) != 0 {
		t.seq[from]++
	}
	p := append(ipHeader(t.ends[from].Addr(), t.ends[1-from].Addr(), len(tcp)), tcp...)
	body := make([]byte, 20, 20+len(p))
	now := uint64(time.Now().UnixMicro())
	binary.LittleEndian.PutUint32(body[4:], uint32(now>>32))
	binary.LittleEndian.PutUint32(body[8:], uint32(now))
	binary.LittleEndian.PutUint32(body[12:], uint32(len(p)))
	binary.LittleEndian.PutUint32(body[16:], uint32(len(p)))
	t.buf = appendBlock(t.buf[:0], packetBlock, append(body, p...))
	t.put(t.buf)
}

// ipHeader is the IP header before n octets of TCP.
func ipHeader(from, to netip.Addr, n int) []byte {
	if from.Is4() && to.Is4() {
		h := make([]byte, 12, 20)
		h[0], h[8], h[9] = 0x45, 64, 6
		binary.BigEndian.PutUint16(h[2:], uint16(20+n))
		h = append(append(h, from.AsSlice()...), to.AsSlice()...)
		sum := uint32(0)
		for i := 0; i < len(h); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(h[i:]))
		}
		sum = sum&0xffff + sum>>16
		binary.BigEndian.PutUint16(h[10:], ^uint16(sum+sum>>16))
		return h
	}
	h := make([]byte, 8, 40)
	h[0], h[6], h[7] = 0x60, 6, 64
	binary.BigEndian.PutUint16(h[4:], uint16(n))
	a, b := from.As16(), to.As16()
	return append(append(h, a[:]...), b[:]...)
}

// data records octets that went one way.
func (t *traceConn) data(from int, b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(b) > 0 {
		n := min(len(b), traceSegment)
		t.packet(from, tcpAck|tcpPsh, b[:n])
		b = b[n:]
	}
}

// end records an end's last packet, with a FIN, once.
func (t *traceConn) end(from int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.fin[from] {
		t.fin[from] = true
		t.packet(from, tcpAck|tcpFin, nil)
	}
}

// NetConn is the connection that is traced; tcpUnder uses it.
func (t *traceConn) NetConn() net.Conn { return t.Conn }

func (t *traceConn) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.data(there, b[:n])
	if err == io.EOF {
		t.end(there)
	}
	return n, err
}

func (t *traceConn) Write(b []byte) (int, error) {
	n, err := t.Conn.Write(b)
	t.data(here, b[:n])
	return n, err
}

// CloseWrite closes this end's half, or the whole connection if it has no halves.
func (t *traceConn) CloseWrite() error {
	t.end(here)
	if h, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return t.Conn.Close()
}

// Close closes the connection and the file.
func (t *traceConn) Close() error {
	err := t.Conn.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.w != nil {
		_ = t.w.Close()
		t.w = nil
	}
	return err
}
