package iwarp

import (
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/internal/sock"
	"godat/internal/yield"
)

// gated is a sink that stops the receiver at its first completion.
type gated struct {
	hw.Sink
	once       sync.Once
	in, resume chan struct{}
}

func (g *gated) Complete(wcs []hw.WC) {
	g.Sink.Complete(wcs)
	g.once.Do(func() {
		close(g.in)
		<-g.resume
	})
}

// harvest returns when the network poller has reported all that has come to sockets so
// far: it reports octets that come later.
func harvest(t *testing.T) {
	t.Helper()
	from, to := tcpPair(t)
	got := make(chan struct{})
	go func() {
		defer close(got)
		_, _ = to.Read(make([]byte, 1))
	}()
	for range 10 {
		runtime.Gosched() // so that the reader waits
	}
	_, err := from.Write([]byte{1})
	require.NoError(t, err)
	<-got
}

// hangUps are the ways in which a peer's stream ends, and why the connection is then over.
var hangUps = map[string]struct {
	do    func(t *testing.T, conn *net.TCPConn)
	why   hw.Reason
	cause error
}{
	"the end of the stream": {
		func(t *testing.T, conn *net.TCPConn) { require.NoError(t, conn.CloseWrite()) }, hw.ReasonPeer, nil,
	},
	"a reset": {
		func(t *testing.T, conn *net.TCPConn) {
			require.NoError(t, conn.SetLinger(0))
			require.NoError(t, conn.Close())
		}, hw.ReasonBroken, syscall.ECONNRESET,
	},
	"an end with octets unread": { // as of a process that is killed; see leaveUnread
		func(t *testing.T, conn *net.TCPConn) { require.NoError(t, conn.Close()) }, hw.ReasonBroken, syscall.ECONNRESET,
	},
}

// The network poller reports the message together with what ends the stream, before the
// receiver reads the message. The receiver is warned before it reads, too.
func TestAReceiverHearsOfAHangUpThatWasReportedWithTheMessageBeforeIt(t *testing.T) {
	for name, c := range hangUps {
		t.Run(name, func(t *testing.T) {
			g := &gated{in: make(chan struct{}), resume: make(chan struct{})}
			b := newNode(t, New(Config{}), stalling(time.Minute)).peer(func(q *hw.QPConfig) {
				g.Sink, q.RecvSink = q.RecvSink, g
			})
			for range 3 {
				b.recv()
			}
			s, _ := accepted(t, b, plain())
			b.awaitUp()
			r := &connections(b)[0].recv
			s.write(sendFPDU(1, 0))
			<-g.in
			leaveUnread(t, b, s)
			s.write(sendFPDU(2, 0))
			c.do(t, s.conn.(*net.TCPConn))
			harvest(t)
			require.Eventually(t, r.right.Hung, patience, tick)
			close(g.resume)
			b.awaitDown()
			assert.Equal(t, c.why, b.down)
			if c.cause != nil {
				assert.ErrorIs(t, b.cause, c.cause)
			}
			assert.Equal(t, hw.StatusSuccess, b.received(1).Status, "the message before it has come")
		})
	}
}

// leaveUnread puts octets into the socket of the script, which does not read them.
func leaveUnread(t *testing.T, b *peer, s *script) {
	t.Helper()
	b.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled})
	b.sent(0)
	for deadline := time.Now().Add(patience); !unread(s.conn); runtime.Gosched() {
		require.Less(t, time.Now(), deadline)
	}
}

// The receiver has read the message, with less than it asked for, and does not read again
// by itself: the device's hangups end its wait.
func TestAReceiverHearsOfAHangUpAfterItsLastRead(t *testing.T) {
	for name, c := range hangUps {
		t.Run(name, func(t *testing.T) {
			b := newNode(t, New(Config{}), stalling(time.Minute)).peer()
			for range 2 {
				b.recv()
			}
			s, _ := accepted(t, b, plain())
			b.awaitUp()
			s.write(sendFPDU(1, 0))
			b.received(0)
			leaveUnread(t, b, s)
			c.do(t, s.conn.(*net.TCPConn))
			b.awaitDown()
			assert.Equal(t, c.why, b.down)
		})
	}
}

// The stream ends while a watcher has the socket. It reads the message, leaves, and nobody
// watches again; the receiver's goroutine looks only every hour.
func TestAReceiverHearsOfAHangUpBehindAWatcher(t *testing.T) {
	a, b, o := watching(t, time.Hour, map[string]string{"crc": "false"})
	for i := range int64(2) {
		done := o.watch(i + 1)
		o.awaitParked(t)
		a.post(emptySend())
		require.True(t, <-done)
	}
	assert.False(t, waits(b, anybody))
	a.end(true)
	b.awaitDown()
	assert.Equal(t, hw.ReasonPeer, b.down)
}

// The receiver reads what it can and decides whether to wait, at any moment of the warning.
// It settles an interrupt first, as after a wait.
func TestAWarningIsNotLostBetweenAReadAndTheWait(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		conn, other := net.Pipe()
		t.Cleanup(func() { _, _ = conn.Close(), other.Close() })
		r := &receiver{warned: true}
		r.link, r.emptied = &link{dev: &device{}, conn: conn}, true
		r.right.Init()
		r.parties.r = r
		r.right.Begin()
		waits := false
		return func() { yield.Point(); r.parties.Hang() },
			func() { r.link.settle(); waits = r.dry() },
			func() { assert.True(t, !waits || r.link.interrupted, "a wait is interrupted") }
	})
}

// A watcher is disturbed, and the connection ends before the watcher has run: it gives the socket
// back, so that the receiver's goroutine sees the end at once, and not with its next look.
func TestAnInterruptDoesNotHideTheEndOfTheConnection(t *testing.T) {
	conn, other := net.Pipe()
	t.Cleanup(func() { _, _ = conn.Close(), other.Close() })
	r := &receiver{}
	r.link = &link{dev: &device{}, conn: conn, right: &r.right}
	r.right.Init()
	r.parties.r = r
	r.right.Begin()
	r.parties.interrupt(sock.Receiver)
	require.True(t, r.link.interrupted)
	r.link.die(ending{why: hw.ReasonPeer})
	assert.False(t, r.link.settle())
}

func TestADeviceWithoutHangupsGoesOnReading(t *testing.T) {
	n := newNode(t, New(Config{}), stalling(time.Minute))
	n.dev.(*device).hangups.Close() // no receiver is warned
	b := n.peer()
	b.recv()
	s, _ := accepted(t, b, plain())
	b.awaitUp()
	s.write(sendFPDU(1, 0))
	b.received(0)
	r := takeRight(t, b, started)
	assert.False(t, r.dry())
	giveUp(r)
	require.NoError(t, s.conn.Close())
	b.awaitDown()
}
