//go:build guest

package ibv

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"godat/hw"
)

func TestWriteWithImmediateDataTellsTheReceiver(t *testing.T) {
	b := newBench(t, nil, nil, nil)
	from, to := b.ends[0], b.ends[1]
	if onSIW(t) {
		assert.False(t, from.dev.Attr().Ops.Has(hw.OpWriteImm), "iWARP has no immediate data")
		return
	}
	near, far := from.memory(8, hw.LocalRead), to.memory(8, hw.RemoteWrite)
	copy(near.buf, "immedia!")
	to.recv(7)
	from.send(hw.SendWR{
		ID: 1, Op: hw.OpWriteImm, Flags: hw.WRSignaled, Imm: 0x01020304, SGL: []hw.SGE{near.sge(0, 8)},
		RKey: far.RKey(), RemoteAddr: far.addr(),
	})
	wc := to.completion(7)
	assert.Equal(t, hw.StatusSuccess, wc.Status)
	assert.Equal(t, hw.OpRecvImm, wc.Op)
	assert.Equal(t, hw.WCImm|hw.WCSolicited, wc.Flags)
	assert.EqualValues(t, 0x01020304, wc.Imm, "a number, whatever the byte order")
	assert.EqualValues(t, 8, wc.Len)
	assert.Equal(t, "immedia!", string(far.buf))
	assert.Equal(t, hw.OpWriteImm, from.completion(1).Op)
}

func TestAtomicsReturnTheOldValueAndChangeIt(t *testing.T) {
	b := newBench(t, nil, nil, nil)
	from, to := b.ends[0], b.ends[1]
	if onSIW(t) {
		assert.False(t, from.dev.Attr().Ops.Has(hw.OpFetchAdd), "iWARP has no atomics")
		_, err := from.dev.Register(from.zone, make([]byte, 8), hw.RemoteAtomic)
		require.ErrorIs(t, err, hw.ErrModelNotSupported)
		return
	}
	near, far := from.memory(64, hw.LocalWrite), to.memory(64, hw.RemoteAtomic)
	word := far.buf[:8] // aligned for atomics: Go's allocator aligns 64 bytes by at least eight
	binary.NativeEndian.PutUint64(word, 40)
	atomic := hw.SendWR{Flags: hw.WRSignaled, SGL: []hw.SGE{near.sge(0, 8)}, RKey: far.RKey(), RemoteAddr: far.addr()}
	for i, c := range []struct {
		op               hw.Op
		operand, compare uint64
		old, now         uint64
	}{
		{hw.OpFetchAdd, 2, 0, 40, 42},
		{hw.OpCompareSwap, 7, 41, 42, 42},
		{hw.OpCompareSwap, 7, 42, 42, 7},
		{hw.OpFetchAdd, ^uint64(0), 0, 7, 6},
	} {
		wr := atomic
		wr.ID, wr.Op, wr.Operand, wr.Compare = uint64(i+1), c.op, c.operand, c.compare
		from.send(wr)
		wc := from.completion(wr.ID)
		require.Equal(t, hw.StatusSuccess, wc.Status)
		assert.Equal(t, c.op, wc.Op)
		assert.EqualValues(t, 8, wc.Len)
		assert.Equal(t, c.old, binary.NativeEndian.Uint64(near.buf), "case %d", i)
		assert.Equal(t, c.now, binary.NativeEndian.Uint64(word), "case %d", i)
	}
}

func TestOneCrossingPostsAListWithOneDoorbell(t *testing.T) {
	b := newBench(t, nil, nil, nil)
	from, to := b.ends[0], b.ends[1]
	const n = 16
	before, ok := countersOf(from.dev)
	require.True(t, ok)
	var wrs []hw.SendWR
	for i := range n {
		to.recv(uint64(i))
		wrs = append(wrs, hw.SendWR{ID: uint64(i + 1), Op: hw.OpSend, Flags: hw.WRSignaled})
	}
	from.send(wrs...)
	after, _ := countersOf(from.dev)
	assert.EqualValues(t, 1, after.Posts-before.Posts)
	assert.EqualValues(t, 1, after.Doorbells-before.Doorbells)
	assert.EqualValues(t, n, after.Posted-before.Posted)
	from.completion(n)
	after, _ = countersOf(from.dev)
	assert.EqualValues(t, n, after.Polled-before.Polled)
}

func TestSuppressedSendsNeverFillTheQueue(t *testing.T) {
	b := newBench(t, nil, nil, nil)
	from, to := b.ends[0], b.ends[1]
	const rounds = 40
	for i := range rounds {
		var wrs []hw.SendWR
		for range benchDepth - 1 {
			to.recv(1)
			wrs = append(wrs, hw.SendWR{Op: hw.OpSend})
		}
		to.recv(2)
		last := hw.SendWR{ID: uint64(100 + i), Op: hw.OpSend, Flags: hw.WRSignaled}
		from.send(append(wrs, last)...)
		require.Equal(t, hw.StatusSuccess, from.completion(last.ID).Status)
		require.Equal(t, hw.StatusSuccess, to.completion(2).Status)
		to.wcs = nil
	}
}

func TestAnInlineSendHasReadItsMemoryWhenItIsPosted(t *testing.T) {
	wait := func(c *hw.QPConfig) { c.NotReady = time.Hour }
	b := newBench(t, nil, wait, nil)
	from, to := b.ends[0], b.ends[1]
	if !from.dev.Attr().NotReadyWait {
		to.recv(7) // where sends don't wait, the receive has to be posted first
	}
	small, big := from.memory(defaultInline, hw.LocalRead), from.memory(defaultInline+1, hw.LocalRead)
	dst := to.memory(128, hw.LocalWrite)
	copy(small.buf, "read when it was posted")
	from.send(hw.SendWR{ID: 1, Op: hw.OpSend, Flags: hw.WRSignaled, SGL: []hw.SGE{small.sge(0, defaultInline)}})
	require.NoError(t, small.Deregister())
	clear(small.buf)
	if from.dev.Attr().NotReadyWait {
		to.recv(7, dst.sge(0, 64))
		assert.Equal(t, hw.StatusSuccess, to.completion(7).Status)
		assert.Equal(t, "read when it was posted", string(dst.buf[:23]))
		from.send(hw.SendWR{ID: 2, Op: hw.OpSend, Flags: hw.WRSignaled, SGL: []hw.SGE{big.sge(0, defaultInline+1)}})
		require.NoError(t, big.Deregister())
		to.recv(8, dst.sge(0, 128))
		assert.Equal(t, hw.StatusLocalProtection, from.completion(2).Status, "too long to go inline")
	}
}

func TestAnInlineSendOfDeregisteredMemoryReadsNoByte(t *testing.T) {
	b := newBench(t, nil, nil, nil)
	from, to := b.ends[0], b.ends[1]
	pages, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	mr, err := from.dev.Register(from.zone, pages, hw.LocalRead)
	require.NoError(t, err)
	m := &memory{MR: mr, buf: pages}
	s := m.sge(0, 8)
	require.NoError(t, mr.Deregister())
	require.NoError(t, unix.Munmap(pages)) // a copy by the processor would now kill the process
	to.recv(7)
	from.send(hw.SendWR{ID: 1, Op: hw.OpSend, Flags: hw.WRSignaled, SGL: []hw.SGE{s}})
	assert.Equal(t, hw.StatusLocalProtection, from.completion(1).Status)
}

func TestWithoutTailsPrivateDataKeepsItsPadding(t *testing.T) {
	var got []byte
	b := newBench(t, map[string]string{"tail": "off"}, nil, func(data []byte) { got = data })
	from, to := b.ends[0], b.ends[1]
	if onSIW(t) {
		assert.Equal(t, "hello", string(got))
		assert.Equal(t, "welcome", string(from.info.Private))
	} else {
		assert.Len(t, got, roomInfiniBand[msgRequest])
		assert.Equal(t, "hello\x00", string(got[:6]))
		assert.Equal(t, "welcome\x00", string(from.info.Private[:8]))
	}
	from.qp.Break(false)
	to.until("Down", func() bool { return to.down != hw.ReasonNone })
	assert.Equal(t, hw.ReasonPeer, to.down, "nobody said that it was in no order")
}

func TestLockedMemoryLimitIsNamedInTheError(t *testing.T) {
	b := newBench(t, nil, nil, nil)
	e := b.ends[0]
	runtime.LockOSThread() // never unlocked: the thread, which drops its capability below, ends with the test
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 64 << 10, Max: old.Max}))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old)) }()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	require.NoError(t, unix.Capget(&head, &caps[0]))
	caps[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	require.NoError(t, unix.Capset(&head, &caps[0]))

	_, err := e.dev.Register(e.zone, make([]byte, 1<<20), hw.LocalRead)
	require.ErrorIs(t, err, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceMemoryRegion})
	require.ErrorContains(t, err, "1048576 bytes")
	require.ErrorContains(t, err, "65536 bytes: raise it (ulimit -l")
}

func TestQualifierThatIsNoPortIsRefused(t *testing.T) {
	b := newBench(t, nil, nil, nil)
	e := b.ends[0]
	fresh := b.open(nil, nil)
	for _, qual := range []uint64{0, 65536, 1 << 32} {
		err := fresh.qp.Connect(hw.ConnectConfig{Addr: e.dev.Attr().Address, Qual: qual})
		require.ErrorIs(t, err, hw.ErrInvalidParameter, "connect to %d", qual)
	}
	_, err := e.dev.Listen(hw.ListenConfig{Qual: 65536, OnRequest: func(hw.Request) bool { return false }})
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	require.NoError(t, fresh.qp.Close())
	require.NoError(t, fresh.cq.Close())
	require.NoError(t, fresh.zone.Close())
	require.NoError(t, fresh.dev.Close())
}

func TestAConnectionHasTheTrafficClassOfItsInitiator(t *testing.T) {
	const tracing = "/sys/kernel/tracing"
	require.NoError(t, unix.Mount("tracefs", tracing, "tracefs", 0, ""))
	defer func() { require.NoError(t, unix.Unmount(tracing, 0)) }()
	enable := func(text string) {
		require.NoError(t, os.WriteFile(tracing+"/events/rdma_cma/enable", []byte(text), 0))
	}
	enable("1")
	defer enable("0")
	newBench(t, map[string]string{"traffic_class": "106"}, nil, nil)
	trace, err := os.ReadFile(tracing + "/trace")
	require.NoError(t, err)
	assert.Regexp(t, `dst=10\.0\.2\.15:\d+ tos=106`, string(trace))
}

func TestConnectionsGoOverIPv6(t *testing.T) {
	b := newBench(t, map[string]string{"address": guestAddress6}, nil, nil)
	assert.Equal(t, guestAddress6, b.ends[0].dev.Attr().Address)
	assert.Contains(t, b.ends[0].info.Remote.String(), "["+guestAddress6+"]:")
}

// The initiator confirms the connection when its owner has been told of it, so its first
// messages may overtake the confirmation. Until that comes, the acceptor's connection
// manager sends no disconnect, and reports no error either.
func TestAnAcceptorThatBreaksBeforeTheConfirmationTellsThePeer(t *testing.T) {
	b := &bench{t: t}
	for i := range b.ends {
		b.ends[i] = b.open(nil, nil)
	}
	t.Cleanup(b.close)
	from, to := b.ends[0], b.ends[1]
	from.held = make(chan struct{})
	confirm := sync.OnceFunc(func() { close(from.held) })
	t.Cleanup(confirm)
	m := to.memory(8, hw.LocalWrite)
	to.recv(1, m.sge(0, 8))
	l := b.accept(nil)
	from.until("Established", func() bool { return from.info != nil })
	src := from.memory(8, hw.LocalRead)
	from.send(hw.SendWR{ID: 2, Op: hw.OpSend, Flags: hw.WRSignaled, SGL: []hw.SGE{src.sge(0, 8)}})
	require.Equal(t, hw.StatusSuccess, to.completion(1).Status)
	to.qp.Break(false)
	confirm()
	from.until("Down", func() bool { return from.down != hw.ReasonNone })
	require.NoError(t, l.Close())
}

// An iWARP device's connection is one of TCP, and the connection manager chooses its
// source port without asking TCP.
func TestADialAvoidsSourcePortsThatTCPHasInUse(t *testing.T) {
	const rangeFile, first, ports = "/proc/sys/net/ipv4/ip_local_port_range", 50000, 64
	host := newBench(t, nil, nil, nil).ends[0].dev.Attr().Address
	for port := first; port < first+ports/2; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
	}
	before, err := os.ReadFile(rangeFile)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.WriteFile(rangeFile, before, 0o644)) })
	require.NoError(t, os.WriteFile(rangeFile, fmt.Appendf(nil, "%d %d", first, first+ports-1), 0o644))
	for range 8 {
		newBench(t, nil, nil, nil)
	}
}

func TestAddressOfAnotherDeviceIsRefused(t *testing.T) {
	_, err := New().Open(hw.OpenConfig{Device: guestDevice(t), Params: map[string]string{"address": "192.0.2.1"}})
	require.ErrorIs(t, err, hw.ErrInvalidAddress)
	require.ErrorContains(t, err, "192.0.2.1 is not an address of "+guestDevice(t))
}

func TestOpenOfAnUnknownDeviceNamesTheDevicesThatThereAre(t *testing.T) {
	_, err := New().Open(hw.OpenConfig{Device: "mlx5_9"})
	require.ErrorIs(t, err, hw.ErrProviderNotFound)
	require.ErrorContains(t, err, guestDevice(t))
}

func TestFirstDeviceIsTheDefault(t *testing.T) {
	dev, err := New().Open(hw.OpenConfig{})
	require.NoError(t, err)
	assert.Equal(t, guestDevice(t), dev.Attr().Device)
	require.NoError(t, dev.Close())
}

func TestAShortSendInvalidatesAKeyOfThePeer(t *testing.T) {
	b := newBench(t, nil, nil, nil)
	if !onSIW(t) {
		return // soft-RoCE breaks a connection whose peer invalidates a region of a program
	}
	from, to := b.ends[0], b.ends[1]
	src, dst, shown := from.memory(16, hw.LocalRead), to.memory(16, hw.LocalWrite), to.memory(64, hw.LocalWrite|hw.RemoteWrite)
	copy(src.buf, "a short answer")
	to.recv(7, dst.sge(0, 16))
	from.send(hw.SendWR{ID: 1, Op: hw.OpSendInvalidate, Flags: hw.WRSignaled, Imm: shown.RKey(), SGL: []hw.SGE{src.sge(0, 16)}})
	assert.Equal(t, hw.StatusSuccess, from.completion(1).Status)
	assert.Equal(t, hw.StatusSuccess, to.completion(7).Status)
	assert.Equal(t, "a short answer", string(dst.buf[:14]))
}
