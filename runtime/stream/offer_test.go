package stream

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/iwarp"
	"godat/internal/yield"
	"godat/mem"
	dat "godat/runtime"
)

// warm carries some bytes, so that the reader's next large Read may offer its buffer. It
// reports whether the reader's device can lend memory.
func warm(t *testing.T, from, to *Conn) bool {
	crossing(t, from, to, body(leastOffered, 1))
	to.line.flow.in.from = 0
	return !from.line.flow.out.loan.refused
}

// awaitOffer returns when the reader's offer has come to the writer.
func awaitOffer(t *testing.T, writer *Conn) {
	require.Eventually(t, func() bool { return writer.line.flow.out.bufferAt.Load() == writer.line.flow.out.produced.Load() }, time.Minute, time.Millisecond)
}

// reading is a Read of p under way, and what it returns.
func reading(c *Conn, p []byte) <-chan readOutcome {
	got := make(chan readOutcome, 1)
	go func() {
		n, err := c.Read(p)
		got <- readOutcome{n, err}
	}()
	return got
}

type readOutcome struct {
	n   int
	err error
}

func TestALargeWriteGoesStraightIntoALargeRead(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		if !warm(t, client, server) {
			crossing(t, client, server, body(1<<20, 1)) // the same without an offer
			assert.Zero(t, server.line.flow.in.end.Load())
			return
		}
		want, p := body(1<<20, 2), make([]byte, 1<<20)
		got := reading(server, p)
		awaitOffer(t, client)
		_, err := client.Write(want)
		require.NoError(t, err)
		assert.Equal(t, readOutcome{len(want), nil}, <-got, "one Read takes more than the ring has room for")
		assert.Equal(t, want, p)
		crossing(t, client, server, body(100, 3))
		crossing(t, client, server, body(1_000_000, 4))
	})
}

// A short Write ends the offer. What comes next goes to the ring, in its place.
func TestAShortWriteEndsAnOffer(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		lends := warm(t, client, server)
		p := make([]byte, 1<<20)
		got := reading(server, p)
		if lends {
			awaitOffer(t, client)
		}
		crossed := client.line.flow.out.produced.Load()
		_, err := client.Write([]byte("short"))
		require.NoError(t, err)
		assert.Equal(t, readOutcome{5, nil}, <-got)
		assert.Equal(t, "short", string(p[:5]))
		sent := write(func() error { _, err := client.Write(body(100<<10, 2)); return err })
		more := make([]byte, 100<<10)
		_, err = io.ReadFull(server, more[:10])
		require.NoError(t, err)
		_, err = io.ReadFull(server, more[10:])
		require.NoError(t, err)
		require.NoError(t, <-sent)
		assert.Equal(t, body(100<<10, 2), more)
		assert.LessOrEqual(t, server.line.flow.in.end.Load(), crossed)
	})
}

// The Read of an offer has returned before its bytes come. Small Reads get them, and the
// memory that was offered stays as it was.
func TestAReadWhoseDeadlinePassesLeavesNothingToThePeer(t *testing.T) {
	onEachWith(t, Config{Ring: 64 << 10}, func(t *testing.T, r *rig) {
		client, server := r.pair()
		warm(t, client, server)
		for round := range 3 {
			server.line.flow.in.from = 0
			p := make([]byte, 300<<10)
			require.NoError(t, server.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
			_, err := server.Read(p)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, server.SetReadDeadline(time.Time{}))
			want := body(500<<10, byte(round))
			sent := write(func() error { _, err := client.Write(want); return err })
			var got []byte
			for b := make([]byte, 999); len(got) < len(want); {
				n, err := server.Read(b)
				require.NoError(t, err)
				got = append(got, b[:n]...)
			}
			require.NoError(t, <-sent)
			assert.Equal(t, want, got)
			assert.Equal(t, make([]byte, len(p)), p)
		}
	})
}

func TestCloseGivesTheBufferOfAReadBack(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		lends := warm(t, client, server)
		p := make([]byte, 1<<20)
		got := reading(server, p)
		if lends {
			awaitOffer(t, client)
		}
		closed := write(server.Close)
		assert.ErrorIs(t, (<-got).err, net.ErrClosed)
		_, _ = client.Write(body(1<<20, 2))
		require.NoError(t, <-closed)
		assert.Equal(t, make([]byte, len(p)), p)
	})
}

// A connection that ends gives the buffer back, and so does the end of the stream.
func TestTheEndGivesTheBufferOfAReadBack(t *testing.T) {
	for name, end := range map[string]func(c *Conn) error{
		"of the stream":     (*Conn).CloseWrite,
		"of the connection": (*Conn).Close,
		"at once":           func(c *Conn) error { return c.line.endpoint.Disconnect(ep.Abrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, r *rig) {
				client, server := r.pair()
				lends := warm(t, client, server)
				got := reading(server, make([]byte, 1<<20))
				if lends {
					awaitOffer(t, client)
				}
				require.NoError(t, end(client))
				assert.Error(t, (<-got).err)
				assert.Nil(t, server.line.flow.in.mem)
			})
		})
	}
}

func TestAnIdleConnectionKeepsNothingThatWasOffered(t *testing.T) {
	r := newRig(t, "loop", Config{})
	client, server := r.pair()
	warm(t, client, server)
	p := new([leastOffered]byte)
	offered := weak.Make(p)
	got := reading(server, p[:])
	awaitOffer(t, client)
	_, err := client.Write(body(leastOffered, 1))
	require.NoError(t, err)
	require.Equal(t, readOutcome{leastOffered, nil}, <-got)
	p = nil
	require.Eventually(t, func() bool {
		runtime.GC()
		return offered.Value() == nil
	}, time.Minute, time.Millisecond)
}

// Neither end reads while both write as much as a ring takes, with and without a buffer
// that a Read has left.
func TestEndsThatBothWriteFirstDoNotWaitForEachOther(t *testing.T) {
	onEachWith(t, Config{Ring: 1 << 20}, func(t *testing.T, r *rig) {
		client, server := r.pair()
		for range 4 { // the rings are large, and offers are used
			crossing(t, client, server, body(1<<20, 1))
			crossing(t, server, client, body(1<<20, 2))
		}
		for round := range 4 {
			if round%2 == 1 {
				for _, c := range []*Conn{client, server} {
					c.line.flow.in.from = 0
					require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
					_, err := c.Read(make([]byte, 128<<10))
					require.ErrorIs(t, err, os.ErrDeadlineExceeded)
					require.NoError(t, c.SetReadDeadline(time.Time{}))
				}
			}
			want := body(1<<20, byte(round))
			both := []<-chan error{}
			for _, c := range []*Conn{client, server} {
				require.NoError(t, c.SetWriteDeadline(time.Now().Add(10*time.Second)))
				both = append(both, write(func() error { _, err := c.Write(want); return err }))
			}
			require.NoError(t, <-both[0])
			require.NoError(t, <-both[1])
			for _, c := range []*Conn{client, server} {
				got := make([]byte, len(want))
				_, err := io.ReadFull(c, got)
				require.NoError(t, err)
				assert.Equal(t, want, got)
			}
		}
	})
}

// valve is a connection that stops in the middle of what it carries until it is opened.
type valve struct {
	net.Conn
	mu   *sync.Mutex
	left *int64 // bytes until it stops; negative for no end
	stop chan struct{}
	open chan struct{}
}

func (v valve) Write(p []byte) (n int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if *v.left >= 0 && int64(len(p)) > *v.left {
		n, err = v.Conn.Write(p[:*v.left])
		*v.left = -1
		close(v.stop)
		<-v.open
	}
	if err != nil {
		return n, err
	}
	if *v.left >= 0 {
		*v.left -= int64(len(p) - n)
	}
	more, err := v.Conn.Write(p[n:])
	return n + more, err
}

// The deadline passes when a part of the bytes is in the memory that was offered.
func TestADeadlineInTheMiddleOfADirectWriteLosesNoByte(t *testing.T) {
	for _, params := range []map[string]string{nil, {"crc": "false"}} {
		for _, upTo := range []int64{1000, 70_001, 250_000} {
			v := valve{mu: new(sync.Mutex), left: new(int64), stop: make(chan struct{}), open: make(chan struct{})}
			*v.left = -1
			r := openRig(t, "iwarp:127.0.0.1", Config{}, dat.WithParams(params), dat.WithProvider(iwarp.New(iwarp.Config{
				Dial: func(ctx context.Context, addr string) (net.Conn, error) {
					c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
					v := v
					v.Conn = c
					return v, err
				},
			})))
			client, server := r.pair()
			warm(t, client, server)
			p, want := make([]byte, 300<<10), body(300<<10, 2)
			got := reading(server, p)
			awaitOffer(t, client)
			v.mu.Lock()
			*v.left = upTo
			v.mu.Unlock()
			sent := write(func() error { _, err := client.Write(want); return err })
			<-v.stop
			require.NoError(t, server.SetReadDeadline(time.Now().Add(50*time.Millisecond))) // the part arrives meanwhile
			assert.ErrorIs(t, (<-got).err, os.ErrDeadlineExceeded)
			clear(p)
			require.NoError(t, server.SetReadDeadline(time.Time{}))
			close(v.open)
			_, err := io.ReadFull(server, p)
			require.NoError(t, err)
			require.NoError(t, <-sent)
			assert.True(t, string(want) == string(p), "%v, %d bytes", params, upTo)
			assert.Equal(t, client.line.flow.out.produced.Load(), server.line.flow.in.end.Load(), "one direct write carried them")
		}
	}
}

// The peer writes at each moment of the exchange. Its bytes are in one of the two buffers, and
// the Reads behind it find them.
func TestBytesThatComeWhileAReadLeavesItsBufferAreRead(t *testing.T) {
	r := newRig(t, "loop", Config{})
	client, server := r.pair()
	warm(t, client, server)
	want, p := body(leastOffered, 2), make([]byte, leastOffered)
	yield.Interleave(func() (first, second, check func()) {
		server.line.flow.in.from = 0
		require.True(t, server.line.offerBuffer(p))
		leave := func() {
			server.line.leave()
			clear(p)
		}
		push := func() {
			_, err := client.Write(want)
			require.NoError(t, err)
		}
		return leave, push, func() {
			assert.Equal(t, server.line.flow.in.produced.Load(), server.line.flow.in.end.Load(), "the offer was used")
			got := make([]byte, len(want))
			_, err := io.ReadFull(server, got)
			require.NoError(t, err)
			assert.True(t, string(want) == string(got))
			assert.Equal(t, make([]byte, len(p)), p)
		}
	})
}

// A peer whose device can lend memory offers a buffer to an end whose device can't. That
// writes from its image.
func TestAnOfferIsUsedByAnEndThatLendsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		p, c := r.meetScripted()
		c.line.flow.out.loan.refused = true
		memory, err := p.Alloc(100<<10, hw.LocalWrite|hw.RemoteWrite)
		require.NoError(t, err)
		require.NoError(t, p.SendBytes(encode(message{granted: messages, flags: flagOffer, ring: memory.Remote(0, 100<<10)}, "")))
		awaitOffer(t, c)
		want := body(leastRing, 1)
		_, err = c.Write(want)
		require.NoError(t, err)
		b, err := p.Receive(t.Context())
		require.NoError(t, err)
		var m message
		ok := m.parse(append(b.Bytes(), make([]byte, slotSize)...), newest)
		assert.True(t, ok)
		assert.True(t, m.has(flagDirect))
		assert.Equal(t, uint64(len(want)), m.produced)
		assert.Equal(t, want, memory.Bytes()[:len(want)])
	})
}

func TestALieAboutABufferEndsTheConnection(t *testing.T) {
	buffer := func(at uint64, size uint32) message {
		return message{consumed: at, granted: messages, flags: flagOffer, ring: mem.RemoteSegment{Addr: 1 << 20, Len: size}}
	}
	direct := message{granted: messages, flags: flagDirect}
	for lie, script := range map[string][]message{
		"too short":               {buffer(5, leastRing-1)},
		"has no end":              {{granted: messages, flags: flagOffer, ring: mem.RemoteSegment{Addr: 1<<64 - 1, Len: leastRing}}},
		"same bytes":              {buffer(5, leastRing), buffer(5, leastRing)},
		"same bytes:":             {buffer(5, leastRing), buffer(5, 2*leastRing)},
		"than were sent":          {buffer(11, leastRing)},
		"not offered for them":    {{produced: 10, granted: messages, flags: flagDirect}, {produced: 11, granted: messages, flags: flagDirect}},
		"not offered for them:":   {{produced: 4, granted: messages}, {produced: 5, granted: messages, flags: flagDirect}},
		"not offered for them::":  {{produced: leastOffered + 1, granted: messages, flags: flagDirect}},
		"not offered for them:::": {direct},
		"room for":                {{produced: leastOffered, granted: messages, flags: flagDirect}, {produced: leastOffered + 1, granted: messages}},
		"unknown form":            {{produced: 1, granted: messages, flags: flagDirect, inline: 1}},
		"unknown form:":           {{granted: messages, flags: flagDirect | flagMoved}},
		"unknown form::":          {{granted: messages, flags: flagOffer | flagRing}},
		"unknown form:::":         {{produced: 1, granted: messages, flags: flagOffer, inline: 1}},
	} {
		c := bareConn(leastRing)
		c.line.flow.in.size = leastOffered
		c.line.flow.in.at.Store(0)
		c.line.flow.out.sent.Store(10)
		c.line.flow.out.produced.Store(10)
		for i, m := range script {
			require.NoError(t, lastError(c), lie)
			m.put(c.line.flow.in.slots[i*slotSize:], newest)
			c.line.arrive(i)
		}
		require.ErrorIs(t, lastError(c), ErrProtocol, lie)
		assert.Contains(t, lastError(c).Error(), trimColons(lie))
	}
}

// lastError is why a connection has ended; nil if it has not.
func lastError(c *Conn) error {
	if over := c.line.ended.Load(); over != nil {
		return over.err
	}
	return nil
}

func trimColons(s string) string {
	for s[len(s)-1] == ':' {
		s = s[:len(s)-1]
	}
	return s
}
