package iwarp

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// takeRight takes a connection's right to read, as a consumer does, as soon as the receiver
// waits and until holds.
func takeRight(t *testing.T, p *peer, until func(*receiver) bool) *receiver {
	t.Helper()
	r := &connections(p)[0].recv
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		if r.right.TryAcquire() {
			r.own.Acquire()
			if until(r) {
				return r
			}
			giveUp(r)
		}
		require.Less(t, time.Now(), deadline)
	}
}

func giveUp(r *receiver) {
	r.own.Release()
	r.right.Give()
}

// started reports whether the start-up is over.
func started(r *receiver) bool { return r.heard }

// pollNow reads what has come, for a consumer that has the right.
func pollNow(t *testing.T, r *receiver) {
	t.Helper()
	for deadline := time.Now().Add(patience); !unread(r.link.conn); { // does not yield
		require.Less(t, time.Now(), deadline)
	}
	require.NoError(t, r.port.raw.Control(r.parties.pollFn))
}

// sendFPDU is a message of so many octets.
func sendFPDU(msn uint32, octets int) []byte {
	return fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: msn}, make([]byte, octets))
}

// stalling are settings with a short time for the rest of an FPDU.
func stalling(d time.Duration) map[string]string {
	return map[string]string{"crc": "false", "grace": "1ms", "keepalive": "0", "stall": d.String()}
}

func (p *peer) completed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.recvs)
}

func TestAConsumerThatPollsReadsTheSocket(t *testing.T) {
	a, b := pair(t, nil)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	pollAWhile(b.dev)
	readByConsumers(t, a, b)
}

// pollAWhile has consumers of a device poll its sockets from then on.
func pollAWhile(dev hw.Device) {
	for range 64 {
		dev.(hw.Progresser).Progress()
	}
}

// readByConsumers requires that most of some messages are there after three polls. On one
// processor the receiver does not run while the test does not yield.
func readByConsumers(t *testing.T, from, to *peer) {
	t.Helper()
	const rounds = 20
	atOnce := 0
	for range rounds {
		had := to.completed()
		to.recv()
		from.post(hw.SendWR{Op: hw.OpSend})
		for range 3 {
			to.dev.(hw.Progresser).Progress()
		}
		if to.completed() > had {
			atOnce++
		}
		to.received(had)
	}
	assert.Greater(t, atOnce, rounds/2)
}

func TestConsumersPollEachOfADevicesConnections(t *testing.T) {
	p := New(Config{})
	na, nb := newNode(t, p, nil), newNode(t, p, nil)
	pollAWhile(nb.dev)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var froms, tos []*peer
	for range 3 {
		a, b := na.peer(), nb.peer()
		join(a, b)
		froms, tos = append(froms, a), append(tos, b)
		for i := range tos {
			readByConsumers(t, froms[i], tos[i])
		}
	}
	tos[0].end(true)
	readByConsumers(t, froms[2], tos[2])
}

// polling runs n consumers that poll and yield, until the test has ended or stop is called.
func polling(t *testing.T, dev hw.Device, n int) (stop func()) {
	var stopped atomic.Bool
	var done sync.WaitGroup
	for range n {
		done.Go(func() {
			for !stopped.Load() {
				dev.(hw.Progresser).Progress()
				runtime.Gosched()
			}
		})
	}
	stop = func() {
		stopped.Store(true)
		done.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// Others may have a connection that a program has made, and close it: then the descriptor may
// be another file's by the next call.
func TestOnlyASocketOfItsOwnIsUsedByItsDescriptor(t *testing.T) {
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	for name, provider := range map[string]hw.Provider{"its own": New(Config{}), "the program's": New(Config{Dial: dial})} {
		a := newNode(t, provider, noCRC).peer()
		scripted(t, a)
		p := &connections(a)[0].send.port
		require.False(t, p.staged())
		assert.Equal(t, name == "its own", p.owned)
	}
}

func TestAConsumerThatPollsAllocatesNothing(t *testing.T) {
	a, _ := pair(t, nil)
	dev := a.dev.(hw.Progresser)
	pollAWhile(a.dev)
	assert.Zero(t, testing.AllocsPerRun(1000, dev.Progress))
}

// awaitOctets waits until so many octets wait in the receiver's socket. It does not yield.
func awaitOctets(t *testing.T, r *receiver, octets int) {
	t.Helper()
	n := 0
	for deadline := time.Now().Add(patience); n < octets; {
		require.NoError(t, r.port.raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) }))
		require.Less(t, time.Now(), deadline)
	}
}

// The poll reads the rest of a large payload straight into memory, and not the message
// behind it. So a part of that has come, and the poll reads again.
func TestAPollReadsOnAfterAPartOfAnFPDU(t *testing.T) {
	n := newNode(t, New(Config{}), stalling(time.Minute))
	b, m := n.peer(), n.memory(2*aloneMin, hw.LocalWrite)
	b.recv(m.sge(0, aloneMin))
	b.recv(m.sge(aloneMin, 1<<10))
	s, _ := accepted(t, b, plain())
	r := takeRight(t, b, started)
	first, second := sendFPDU(1, aloneMin), sendFPDU(2, 1<<10)
	s.write(first[:64])
	awaitOctets(t, r, 64)
	require.NoError(t, r.port.raw.Control(r.parties.pollFn))
	assert.Equal(t, 0, b.completed())
	s.write(append(first[64:], second...))
	awaitOctets(t, r, len(first)-64+len(second))
	require.NoError(t, r.port.raw.Control(r.parties.pollFn))
	giveUp(r)
	assert.Equal(t, 2, b.completed())
}

// The first message is short, so the next read asks for few octets; it gets a part of a
// message, and the read behind it asks for all that has come.
func TestAReadAsksForFewOctetsAfterAReadThatGotFew(t *testing.T) {
	const messages = 40
	n := newNode(t, New(Config{}), stalling(time.Minute))
	b, m := n.peer(), n.memory(1<<10, hw.LocalWrite)
	for range 1 + messages {
		b.recv(m.sge(0, 1<<10))
	}
	s, _ := accepted(t, b, plain())
	r := takeRight(t, b, started)
	defer giveUp(r)
	s.write(sendFPDU(1, 0))
	pollNow(t, r)
	assert.Equal(t, 1, b.completed())
	assert.True(t, r.scant)
	var all []byte
	for i := range uint32(messages) {
		all = append(all, sendFPDU(i+2, 1<<10)...)
	}
	s.write(all)
	awaitOctets(t, r, len(all))
	require.NoError(t, r.port.raw.Control(r.parties.pollFn))
	assert.Equal(t, 1+messages, b.completed())
	assert.False(t, r.scant)
	require.NoError(t, r.port.raw.Control(r.parties.pollFn)) // nothing has come
	assert.True(t, r.scant, "the payload behind the next header is for its memory, not for the buffer")
}

// The consumer reads once, and then never again.
func TestTheReceiverReadsWhatAConsumerLeaves(t *testing.T) {
	n := newNode(t, New(Config{}), stalling(time.Minute))
	b, m := n.peer(), n.memory(1<<10, hw.LocalWrite)
	for range 64 {
		b.recv(m.sge(0, 1<<10))
	}
	s, _ := accepted(t, b, plain())
	r := takeRight(t, b, started)
	s.write(sendFPDU(1, 1<<10))
	pollNow(t, r)
	assert.Equal(t, 1, b.completed())
	for i := range uint32(63) {
		s.write(sendFPDU(i+2, 1<<10))
	}
	<-time.After(50 * tick) // the network poller reports them to the receiver
	assert.Equal(t, 1, b.completed())
	giveUp(r)
	b.received(63)
}

// On one processor the consumer reads the error before the network poller reports it to
// the receiver.
func TestTheReceiverEndsAConnectionWithTheErrorThatAConsumerFinds(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, c := range map[string]struct {
		say   func(t *testing.T, s *script)
		check func(t *testing.T, s *script, b *peer)
	}{
		"an invalid FPDU": {
			func(_ *testing.T, s *script) { s.write(sendFPDU(7, 0)) },
			func(t *testing.T, s *script, b *peer) {
				assert.Equal(t, wire.ErrMSN.Term, s.terminate().Code)
				b.awaitDown()
				assert.Equal(t, hw.ReasonBroken, b.down)
			},
		},
		"a Terminate": {
			func(_ *testing.T, s *script) {
				s.write(wire.AppendFPDU(nil, false, terminate(wire.ErrMSN.Term, nil, 0)))
			},
			func(t *testing.T, _ *script, b *peer) {
				b.awaitDown()
				assert.Equal(t, hw.ReasonBroken, b.down)
			},
		},
		"the end of the stream": {
			func(t *testing.T, s *script) { require.NoError(t, s.conn.Close()) },
			func(t *testing.T, _ *script, b *peer) {
				b.awaitDown()
				assert.Equal(t, hw.ReasonPeer, b.down)
			},
		},
		"a reset": {
			func(t *testing.T, s *script) {
				require.NoError(t, s.conn.(*net.TCPConn).SetLinger(0))
				require.NoError(t, s.conn.Close())
			},
			func(t *testing.T, _ *script, b *peer) {
				b.awaitDown()
				assert.Equal(t, hw.ReasonBroken, b.down)
				assert.ErrorIs(t, b.cause, syscall.ECONNRESET)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newNode(t, New(Config{}), noCRC).peer()
			s, _ := accepted(t, b, plain())
			r := takeRight(t, b, started)
			c.say(t, s)
			for deadline := time.Now().Add(patience); r.err == nil && r.end == nil; { // does not yield
				require.NoError(t, r.port.raw.Control(r.parties.pollFn))
				require.Less(t, time.Now(), deadline)
			}
			require.NoError(t, r.port.raw.Control(r.parties.pollFn), "does nothing any more")
			giveUp(r)
			c.check(t, s, b)
			_ = s.conn.Close()
			<-r.link.rxDone
			assert.False(t, r.right.TryAcquire(), "the receiver keeps the right")
		})
	}
}

// The consumer has the receiver's state, so Break's caller leaves the receives alone.
func TestReceivesAreNotFlushedBesideAConsumerThatReads(t *testing.T) {
	b := newNode(t, New(Config{}), noCRC).peer()
	b.recv()
	_, _ = accepted(t, b, plain())
	r := takeRight(t, b, started)
	b.broken = true
	b.qp.Break(false)
	assert.Equal(t, 0, b.completed())
	giveUp(r)
	b.end(false)
	assert.Equal(t, hw.StatusFlushed, b.received(0).Status)
}

// The limit for the rest of an FPDU passes while a consumer has the right, which then
// reads that rest. The consumer has the right from before the part comes, so the limit
// can't end the connection however late the test runs. On one processor the consumer reads
// the part before the network poller reports it, so the limit ends the receiver's wait.
func TestADeadlineThatAConsumerMadeOutdatedEndsNothing(t *testing.T) {
	const stall = 20 * time.Millisecond
	b := newNode(t, New(Config{}), stalling(stall)).peer()
	for range 2 {
		b.recv()
	}
	s, _ := accepted(t, b, plain())
	b.awaitUp()
	first, second := sendFPDU(1, 0), sendFPDU(2, 0)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := takeRight(t, b, started)
	s.write(first[:8])
	pollNow(t, r)
	require.True(t, r.hurried)
	<-time.After(2 * stall)
	s.write(first[8:])
	pollNow(t, r)
	giveUp(r)
	s.write(second)
	assert.Equal(t, hw.StatusSuccess, b.received(1).Status)
}

// On one processor the consumer reads the part before the network poller reports it to
// the receiver.
func TestTheRestOfAnFPDUThatAConsumerHasBegunIsAwaitedForALimitedTime(t *testing.T) {
	b := newNode(t, New(Config{}), stalling(20*time.Millisecond)).peer()
	b.recv()
	s, _ := accepted(t, b, plain())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := takeRight(t, b, started)
	s.write(sendFPDU(1, 0)[:8])
	pollNow(t, r)
	giveUp(r)
	b.awaitDown()
	assert.Equal(t, hw.ReasonBroken, b.down)
	assert.ErrorIs(t, b.cause, hw.ErrTimeout)
}

// Consumers come and go while messages of all sizes come, some straight into memory.
func TestNothingIsLostWhenConsumersPollNowAndThen(t *testing.T) {
	for name, params := range map[string]map[string]string{"with CRCs": nil, "without CRCs": {"crc": "false"}} {
		t.Run(name, func(t *testing.T) {
			const size = 100 << 10
			a, b := pair(t, params)
			in, out := b.memory(size, hw.LocalWrite), a.memory(size, hw.LocalRead)
			for i := range out.buf {
				out.buf[i] = byte(i * i >> 8)
			}
			for i := range 300 {
				stop := func() {}
				if i%3 != 0 {
					stop = polling(t, b.dev, i%3)
				}
				n := 1 + i*7919%size
				clear(in.buf)
				b.recv(in.sge(0, n))
				a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{out.sge(0, n)}})
				if i%5 == 0 {
					stop()
				}
				require.Equal(t, hw.WC{Op: hw.OpRecv, Len: uint32(n)}, b.received(i))
				require.Equal(t, out.buf[:n], in.buf[:n])
				stop()
			}
		})
	}
}
