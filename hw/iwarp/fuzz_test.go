package iwarp

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// A fuzzed stream can't know keys and addresses: these stand for them.
var (
	anyKey  = bytes.Repeat([]byte{0xaa}, 4)
	anyAddr = bytes.Repeat([]byte{0xbb}, 8)
)

const (
	fuzzRoom   = 512 // bytes of the memory that the stream may reach
	fuzzMargin = 64  // bytes around that memory
	fuzzRecvs  = 8
)

// seedStreams are streams that a peer might send.
func seedStreams(crc bool) (all [][]byte) {
	key := binary.BigEndian.Uint32(anyKey)
	addr := binary.BigEndian.Uint64(anyAddr)
	f := func(h wire.Header, parts ...[]byte) []byte { return fpdu(crc, h, parts...) }
	r := wire.ReadRequest{SinkSTag: 1, Size: 64, SrcSTag: key, SrcTO: addr}
	at := wire.AtomicRequest{Op: wire.FetchAdd, STag: key, TO: addr, Data: 1, ID: 7}
	return [][]byte{
		f(wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}, []byte("hello")),
		append(f(wire.Header{Opcode: wire.OpSend, MSN: 1}, []byte("hell")), f(wire.Header{Opcode: wire.OpSendSE, Last: true, MSN: 1, MO: 4}, []byte("o"))...),
		append(f(wire.Header{Opcode: wire.OpWrite, Last: true, STag: key, TO: addr}, make([]byte, 100)), f(wire.Header{Opcode: wire.OpSendInvalidate, Last: true, MSN: 1, STag: key})...),
		f(wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: 1}, r.Append(nil)),
		f(wire.Header{Opcode: wire.OpAtomicRequest, Last: true, MSN: 1}, at.Append(nil)),
		f(wire.Header{Opcode: wire.OpImmediate, Last: true, MSN: 1}, make([]byte, 8)),
		f(wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: 0x101}, make([]byte, 8)),
		wire.AppendFPDU(nil, crc, localTerminate()),
		f(wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}, make([]byte, 20000)),
	}
}

// FuzzEngine feeds a stream to a live engine, over a pipe or over TCP. Whatever the stream
// is, the engine ends in order, touches only the memory that it may, and completes each
// request once.
func FuzzEngine(f *testing.F) {
	for _, crc := range []bool{false, true} {
		for _, s := range seedStreams(crc) {
			for mode := range byte(4) {
				f.Add(mode<<1|map[bool]byte{true: 1}[crc], s)
			}
		}
	}
	f.Fuzz(func(t *testing.T, mode byte, stream []byte) {
		fuzzEngine(t, mode&1 != 0, mode&2 != 0, mode&4 != 0, stream)
	})
}

func fuzzEngine(t *testing.T, crc, tcp, extended bool, stream []byte) {
	ways := &pipes{}
	p := New(ways.config())
	if tcp {
		p = New(Config{})
	}
	n := newNode(t, p, map[string]string{"crc": "false", "linger": "100ms", "mpa": "10s", "grace": "1ms"})
	b := n.peer()
	m := n.memory(fuzzRoom+2*fuzzMargin, hw.AllPrivileges)
	mr, err := n.dev.Register(n.zone, m.buf[fuzzMargin:fuzzMargin+fuzzRoom], hw.AllPrivileges|hw.RemoteAtomic)
	require.NoError(t, err)
	defer func() { require.NoError(t, mr.Deregister()) }()
	in := n.memory(fuzzRecvs*fuzzRoom, hw.LocalWrite)
	for i := range fuzzRecvs {
		b.recv(in.sge(i*fuzzRoom, fuzzRoom/2), in.sge(i*fuzzRoom+fuzzRoom/2, fuzzRoom/2-fuzzMargin))
	}
	key, addr := binary.BigEndian.AppendUint32(nil, mr.RKey()), binary.BigEndian.AppendUint64(nil, m.base+fuzzMargin)
	stream = bytes.ReplaceAll(bytes.ReplaceAll(stream, anyKey, key), anyAddr, addr)

	ln, requests := n.listen(hw.ListenConfig{})
	var conn net.Conn
	if tcp {
		conn, err = net.Dial("tcp", ln.Addr().String())
	} else {
		conn, err = ways.dial(context.Background(), "here:"+portText(ln))
	}
	require.NoError(t, err)
	s := newScript(t, conn)
	req := plain()
	req.CRC, req.BigFPDU = crc, extended
	req.Data.PeerToPeer, req.Data.WriteRTR, req.Data.SendRTR = true, true, extended
	s.write(req.Append(nil))
	require.NoError(t, (<-requests).Accept(b.qp, nil))
	s.reply()
	done := make(chan struct{})
	go drainAll(conn, done) // a pipe has no buffer
	_, _ = conn.Write(fpdu(crc, wire.Header{Opcode: wire.OpWrite, Last: true}))
	b.awaitUp()
	_, err = b.qp.PostSend([]hw.SendWR{{Op: hw.OpRead, SGL: []hw.SGE{in.sge(0, 8)}, RKey: 1}, {Op: hw.OpSend}})
	require.NoError(t, err)
	_, _ = conn.Write(stream)
	_ = conn.Close()
	b.awaitDown()
	b.end(false)
	<-done
	require.Len(t, b.recvs, fuzzRecvs+1, "each receive once, and the end")
	require.Equal(t, make([]byte, fuzzMargin), m.buf[:fuzzMargin])
	require.Equal(t, make([]byte, fuzzMargin), m.buf[fuzzMargin+fuzzRoom:])
	for i := range fuzzRecvs {
		require.Equal(t, make([]byte, fuzzMargin), in.buf[(i+1)*fuzzRoom-fuzzMargin:(i+1)*fuzzRoom])
	}
}

func drainAll(conn net.Conn, done chan struct{}) {
	defer close(done)
	var b [4096]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			return
		}
	}
}

// FuzzReply answers an initiator with any octets: the initiator connects or is refused,
// and ends in order.
func FuzzReply(f *testing.F) {
	for _, reject := range []bool{false, true} {
		for rev := range uint8(4) {
			r := wire.MPAReply{Revision: rev, Reject: reject, Enhanced: true, Private: []byte("x"), Data: wire.EnhancedData{PeerToPeer: true, ReadRTR: true, IRD: 1, ORD: 1}}
			f.Add(append(r.Append(nil), seedStreams(false)[0]...))
		}
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		if len(reply) == 0 {
			return // after an empty reply the initiator asks again with revision 1, and no listener answers
		}
		n := newNode(t, New(Config{}), noCRC)
		a := n.peer()
		a.recv()
		_, s := answering(t, a, hw.ConnectConfig{})
		s.request()
		done := make(chan struct{})
		go drainAll(s.conn, done)
		_, _ = s.conn.Write(reply)
		_ = s.conn.(*net.TCPConn).CloseWrite()
		a.await("outcome", func() bool { return a.info != nil || a.refused != 0 })
		a.end(true)
		<-done
	})
}
