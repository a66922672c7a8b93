//go:build guest

package main

import (
	"encoding/binary"
	"math/bits"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// What dtestx's memory is: buffers of one size, and receives from the fourth on. The peer
// writes to, and changes by atomics, buffer xTarget.
const (
	xPort    = 31112
	xSize    = 256
	xBuffers = 11

	xWrite, xTarget, xSend, xRecv = 0, 1, 2, 3
	xReturn                       = 10 // what atomics and reads return
)

// dtestx is the other end of dtestx.
type dtestx struct {
	*end
	ep   *ep.Endpoint
	peer mem.RemoteSegment
}

func newDtestx(t *testing.T) *dtestx {
	t.Helper()
	x := &dtestx{end: newEnd(t, ours("ibv:"+os.Getenv("GODAT_GUEST_DEVICE")).device, 1, 10, false, xSize, xBuffers, hw.AllPrivileges|hw.RemoteAtomic)}
	x.ep = x.eps[0]
	for i := xRecv; i < xReturn; i++ {
		x.postRecv(x.ep, i)
	}
	return x
}

// tell tells the peer where our target is, and learns where the peer's is.
func (x *dtestx) tell() {
	x.t.Helper()
	target, b := x.mem.Remote(xTarget*xSize, xSize), x.buffer(xSend)
	binary.BigEndian.PutUint64(b, target.Addr)
	binary.BigEndian.PutUint32(b[8:], target.Len)
	binary.BigEndian.PutUint32(b[12:], target.Context)
	require.NoError(x.t, x.ep.PostSend(1, hw.Default, x.mem.Segment(xSend*xSize, mem.RemoteSegmentSize)))
	x.succeeded(x.req, hw.OpSend, mem.RemoteSegmentSize)
	ev := x.succeeded(x.recv, hw.OpRecv, mem.RemoteSegmentSize)
	require.EqualValues(x.t, xRecv, ev.Cookie)
	b = x.buffer(xRecv)
	x.peer = mem.RemoteSegment{Addr: binary.BigEndian.Uint64(b), Len: binary.BigEndian.Uint32(b[8:]), Context: binary.BigEndian.Uint32(b[12:])}
	require.EqualValues(x.t, xSize, x.peer.Len)
}

// immediate writes a text with immediate data, and gets the peer's. The C program gives its
// number to the device as it is in memory, and so in the wrong order of bytes.
func (x *dtestx) immediate(text string, data uint32, theirText string, theirData uint32) {
	x.t.Helper()
	copy(x.buffer(xWrite), text+"\x00")
	require.NoError(x.t, x.ep.PostRDMAWriteImmediate(2, hw.Default, bits.ReverseBytes32(data), x.peer, x.segment(xWrite)))
	x.succeeded(x.req, hw.OpWriteImm, xSize)
	ev := x.succeeded(x.recv, hw.OpRecvImm, xSize)
	assert.EqualValues(x.t, xRecv+1, ev.Cookie)
	assert.NotZero(x.t, ev.Flags&event.HasImm)
	assert.Equal(x.t, bits.ReverseBytes32(theirData), ev.Key)
	assert.True(x.t, strings.HasPrefix(string(x.buffer(xTarget)), theirText+"\x00"), "%q", x.buffer(xTarget))
}

func (x *dtestx) word(i int) uint64 { return binary.NativeEndian.Uint64(x.buffer(i)) }

// becomes waits until our word has a value, which the peer gives it.
func (x *dtestx) becomes(want uint64) {
	x.t.Helper()
	require.Eventually(x.t, func() bool { return x.word(xTarget) == want }, guestPatience, 10*time.Millisecond, "%#x", want)
}

// shows waits until the peer's word has a value, which the peer gives it.
func (x *dtestx) shows(want uint64) {
	x.t.Helper()
	require.Eventually(x.t, func() bool {
		require.NoError(x.t, x.ep.PostRDMARead(3, hw.Default, x.at(), x.into()))
		x.succeeded(x.req, hw.OpRead, 8)
		return x.word(xReturn) == want
	}, guestPatience, 10*time.Millisecond, "%#x", want)
}

func (x *dtestx) at() mem.RemoteSegment {
	return mem.RemoteSegment{Addr: x.peer.Addr, Len: 8, Context: x.peer.Context}
}
func (x *dtestx) into() mem.Segment { return x.mem.Segment(xReturn*xSize, 8) }
func (x *dtestx) set(v uint64)      { binary.NativeEndian.PutUint64(x.buffer(xTarget), v) }

func (x *dtestx) compareSwap(compare, swap, old uint64) {
	x.t.Helper()
	require.NoError(x.t, x.ep.PostCompareSwap(4, hw.Default, compare, swap, x.at(), x.into()))
	x.succeeded(x.req, hw.OpCompareSwap, 8)
	assert.Equal(x.t, old, x.word(xReturn))
}

func (x *dtestx) fetchAdd(add, old uint64) {
	x.t.Helper()
	require.NoError(x.t, x.ep.PostFetchAdd(5, hw.Default, add, x.at(), x.into()))
	x.succeeded(x.req, hw.OpFetchAdd, 8)
	assert.Equal(x.t, old, x.word(xReturn))
}

const xPassed = "IB extension test - immed/atomic test PASSED"

// The C program gives the other a second to change its word, before each atomic. It does not
// run on siw: its library offers it there neither immediate data nor atomics.
func TestDtestxWritesImmediateDataAndAtomicsWithOurEnd(t *testing.T) {
	require.NotEmpty(t, os.Getenv("GODAT_GUEST_DEVICE"))
	if strings.HasPrefix(os.Getenv("GODAT_GUEST_DEVICE"), "siw") {
		c := start(t, "dtestx")
		require.Error(t, <-c.done)
		assert.Contains(t, c.said.String(), "IB extension not supported")
		return
	}
	t.Run("server", func(t *testing.T) {
		x := newDtestx(t)
		x.listen(xPort)
		asked := handOut(t, true)
		c := start(t, "dtestx", "-h", guestAddress)
		asked()
		x.accept(func(private []byte) (int, []byte) {
			assert.Equal(t, make([]byte, 4), firstOf(private, 4))
			return 0, make([]byte, 4)
		})
		x.tell()
		x.immediate("Server data", 0x1111, "Client written data", 0x7777)
		x.set(0x12345)
		x.shows(0x54321)
		x.compareSwap(0x654321, 0x6789a, 0x54321)
		x.becomes(0x98765)
		x.set(0x10)
		x.shows(0x100)
		x.fetchAdd(0x100, 0x100)
		x.fetchAdd(0x100, 0x200)
		x.becomes(0x30)
		x.disconnected()
		c.ends(xPassed)
	})
	t.Run("client", func(t *testing.T) {
		x := newDtestx(t)
		s := start(t, "dtestx", "-v")
		fetch(t, true)
		s.says("waiting for connect[0] request")
		x.connect(xPort, func(int) []byte { return make([]byte, 4) })
		x.tell()
		x.immediate("Client written data", 0x7777, "Server data", 0x1111)
		x.set(0x54321)
		x.shows(0x12345)
		x.compareSwap(0x12345, 0x98765, 0x12345)
		x.shows(0x10) // it has looked at our word then
		x.set(0x100)
		x.fetchAdd(0x10, 0x10)
		x.fetchAdd(0x10, 0x20)
		x.becomes(0x300)
		x.disconnected()
		s.ends(xPassed)
	})
}
