package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// write writes in another goroutine and returns the outcome.
func write(f func() error) <-chan error {
	outcome := make(chan error, 1)
	go func() { outcome <- f() }()
	return outcome
}

func TestEachDirectionEndsByItself(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		_, err := client.Write([]byte("question"))
		require.NoError(t, err)
		require.NoError(t, client.CloseWrite())
		require.NoError(t, client.CloseWrite(), "a second one")
		_, err = client.Write([]byte("more"))
		require.ErrorIs(t, err, syscall.EPIPE)

		got, err := io.ReadAll(server)
		require.NoError(t, err)
		assert.Equal(t, "question", string(got))
		answer := body(300<<10, 1)
		sent := write(func() error {
			_, err := server.Write(answer)
			return err
		})
		got = make([]byte, len(answer))
		_, err = io.ReadFull(client, got)
		require.NoError(t, err)
		require.NoError(t, <-sent)
		assert.Equal(t, answer, got)
	})
}

func TestTheAcceptingEndMayEndItsDirectionFirst(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		require.NoError(t, server.CloseWrite())
		n, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		assert.Zero(t, n)
		assert.Equal(t, io.EOF, err, "without an operation around it, as io.Reader says")
	})
}

func TestCloseWriteNeedsNoTime(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		_, err := client.Write([]byte("bytes"))
		require.NoError(t, err)
		require.NoError(t, client.SetWriteDeadline(time.Now().Add(-time.Second)))
		_, err = client.Write([]byte("late"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, client.CloseWrite(), "as TCP has it")
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		assert.Equal(t, "bytes", string(got))
	})
}

func TestThePeerReadsWhatWasWrittenBeforeClose(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		for _, n := range []int{0, 1, maxInline, maxInline + 1, defaultRing} {
			client, server := r.pair()
			want := body(n, 1)
			_, err := client.Write(want)
			require.NoError(t, err)
			require.NoError(t, client.Close())
			require.NoError(t, client.Close(), "a second one")
			got, err := io.ReadAll(server)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			<-server.line.down
			_, err = server.Write([]byte("too late"))
			assert.ErrorIs(t, err, syscall.EPIPE)
			assert.NoError(t, server.CloseWrite(), "as TCP has it")
		}
	})
}

func TestCloseEndsCallsThatWait(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		read := write(func() error {
			_, err := client.Read(make([]byte, 1))
			return err
		})
		wrote := write(func() error {
			_, err := client.Write(make([]byte, 2*defaultRing))
			return err
		})
		require.Eventually(t, func() bool {
			return client.line.reader.announced() && client.line.writer.announced() && client.line.flow.out.produced.Load() == defaultRing
		}, time.Minute, time.Millisecond)
		require.NoError(t, client.Close())
		for _, err := range []error{<-read, <-wrote} {
			require.ErrorIs(t, err, net.ErrClosed)
		}
		n, err := io.Copy(io.Discard, server)
		require.NoError(t, err, "the FIN comes behind the part of the Write that fitted")
		assert.EqualValues(t, defaultRing, n)
		for _, err := range []error{client.SetDeadline(time.Time{}), client.CloseWrite()} {
			require.ErrorIs(t, err, net.ErrClosed)
		}
	})
}

func TestAClosedAdapterEndsCallsThatWait(t *testing.T) {
	for _, provider := range adapters {
		t.Run(provider, func(t *testing.T) {
			r := newRig(t, provider, Config{})
			client, server, err := r.connect()
			require.NoError(t, err)
			read := write(func() error {
				_, err := client.Read(make([]byte, 1))
				return err
			})
			accept := write(func() error {
				_, err := r.ln.Accept()
				return err
			})
			require.Eventually(t, client.line.reader.announced, time.Minute, time.Millisecond)
			require.NoError(t, r.ia.Close())
			require.Error(t, <-read)
			require.ErrorIs(t, <-accept, net.ErrClosed)
			require.NoError(t, client.Close())
			require.NoError(t, server.Close())
			_, err = r.dialer().Dial("", r.ln.Addr().String())
			require.ErrorIs(t, err, hw.ErrInvalidHandle)
		})
	}
}

// slowWriter is a writer that keeps its bytes until it is let go.
type slowWriter struct {
	in  chan struct{} // a Write has begun
	out chan struct{} // it may end
	sum bytes.Buffer
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.in <- struct{}{}
	<-w.out
	return w.sum.Write(p)
}

func TestCloseLeavesTheRingToAWriterThatReadsIt(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		want := body(1000, 1)
		_, err := client.Write(want)
		require.NoError(t, err)
		w := &slowWriter{in: make(chan struct{}), out: make(chan struct{})}
		copied := write(func() error {
			_, err := server.WriteTo(w)
			return err
		})
		<-w.in
		require.NoError(t, server.Close())
		close(w.out)
		require.ErrorIs(t, <-copied, net.ErrClosed)
		assert.Equal(t, want, w.sum.Bytes())
	})
}

func TestCopyGoesThroughTheRingsAlone(t *testing.T) {
	onEachWith(t, Config{Ring: leastRing}, func(t *testing.T, r *rig) {
		client, server := r.pair()
		want := body(100_001, 1)
		sent := write(func() error {
			n, err := client.ReadFrom(bytes.NewReader(want))
			assert.EqualValues(t, len(want), n)
			return err
		})
		var got bytes.Buffer
		copied := write(func() error {
			n, err := server.WriteTo(&got)
			assert.EqualValues(t, len(want), n)
			return err
		})
		require.NoError(t, <-sent)
		require.NoError(t, client.CloseWrite())
		require.NoError(t, <-copied)
		assert.Equal(t, want, got.Bytes())
	})
}

func TestBuffersTravelTogether(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		bufs := net.Buffers{[]byte("head "), nil, []byte("body "), []byte("tail")}
		before := client.line.flow.out.sent.Load()
		n, err := client.WriteBuffers(&bufs)
		require.NoError(t, err)
		assert.EqualValues(t, 14, n)
		assert.Empty(t, bufs)
		assert.EqualValues(t, 1, client.line.flow.out.sent.Load()-before, "messages")

		large := net.Buffers{body(100, 1), body(200_000, 2), body(1, 3)}
		want := append([]byte("head body tail"), bytes.Join(large, nil)...)
		sent := write(func() error {
			_, err := client.WriteBuffers(&large)
			return err
		})
		got := make([]byte, len(want))
		_, err = io.ReadFull(server, got)
		require.NoError(t, err)
		require.NoError(t, <-sent)
		assert.Equal(t, want, got)
	})
}

func TestADeadlineCountsTheBytesThatWentBefore(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		n := 0
		wrote := write(func() (err error) {
			n, err = client.Write(make([]byte, 2*defaultRing))
			return err
		})
		require.Eventually(t, func() bool { return client.line.flow.out.produced.Load() == defaultRing }, time.Minute, time.Millisecond)
		require.NoError(t, client.SetWriteDeadline(time.Now()))
		require.ErrorIs(t, <-wrote, os.ErrDeadlineExceeded)
		assert.Equal(t, defaultRing, n)
		require.NoError(t, client.SetWriteDeadline(time.Time{}))
		got, err := io.CopyN(io.Discard, server, int64(n))
		require.NoError(t, err)
		assert.EqualValues(t, n, got)
		_, err = client.Write([]byte{1})
		require.NoError(t, err, "the stream goes on")
	})
}

func TestAddressesNameTheNetworkAndThePort(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		network := r.ia.Attr().Provider
		for _, a := range []net.Addr{r.ln.Addr(), client.LocalAddr(), client.RemoteAddr(), server.LocalAddr(), server.RemoteAddr()} {
			assert.Equal(t, network, a.Network())
			host, port, err := net.SplitHostPort(a.String())
			require.NoError(t, err, "%q", a)
			assert.NotEmpty(t, host)
			assert.NotEmpty(t, port)
		}
		assert.Equal(t, server.LocalAddr(), client.RemoteAddr())
		assert.Equal(t, client.LocalAddr(), server.RemoteAddr())
		_, err := client.Write(nil)
		require.NoError(t, err)
		require.NoError(t, client.SetReadDeadline(time.Now().Add(-1)))
		_, err = client.Read(make([]byte, 1))
		assert.True(t, strings.HasPrefix(err.Error(), "read "+network+" "+client.LocalAddr().String()), err)
	})
}

func TestDialEndsWithItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) { // no goroutine accepts
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, assert.AnError)
		defer cancel()
		_, err := r.dialer().DialContext(ctx, "", r.ln.Addr().String())
		require.ErrorIs(t, err, assert.AnError)
		_, err = r.dialer().DialContext(ctx, "", r.ln.Addr().String())
		require.ErrorIs(t, err, assert.AnError, "at once")
		_, err = Listen(ctx, r.ia, ":0", Config{})
		require.ErrorIs(t, err, assert.AnError)
	})
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	r := newRig(t, "loop", Config{})
	_, err := Listen(t.Context(), r.ia, ":0", Config{Ring: mostRing + 1})
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	_, err = (&Dialer{IA: r.ia, Config: Config{Ring: -1}}).Dial("", r.ln.Addr().String())
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	for _, address := range []string{"1.2.3.4", "x:y:z", "host:70000"} {
		_, err = Listen(t.Context(), r.ia, address, Config{})
		require.Error(t, err, address)
	}
	_, err = r.dialer().Dial("", "nonsense")
	require.Error(t, err)
	for text, cfg := range map[string]Config{"Config.Ring": {Ring: mostRing + 1}, "Config.Backlog": {Backlog: -1}} {
		_, err = Listen(t.Context(), r.ia, ":0", cfg)
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		require.ErrorContains(t, err, "stream: "+text)
		_, err = (&Dialer{IA: r.ia, Config: cfg}).Dial("", r.ln.Addr().String())
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		require.ErrorContains(t, err, "stream: "+text)
	}
	var none context.Context
	_, err = Listen(none, r.ia, ":0", Config{})
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	_, err = r.dialer().DialContext(none, "", r.ln.Addr().String())
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
}

func TestWhatWasNotMadeSaysSo(t *testing.T) {
	for _, c := range []*Conn{nil, new(Conn)} {
		b := make([]byte, 1)
		for name, call := range map[string]func() error{
			"Read":             func() error { _, err := c.Read(b); return err },
			"Write":            func() error { _, err := c.Write(b); return err },
			"Write of much":    func() error { _, err := c.Write(make([]byte, 1<<20)); return err },
			"ReadFrom":         func() error { _, err := c.ReadFrom(strings.NewReader("a")); return err },
			"WriteTo":          func() error { _, err := c.WriteTo(io.Discard); return err },
			"WriteBuffers":     func() error { _, err := c.WriteBuffers(&net.Buffers{b}); return err },
			"CloseWrite":       c.CloseWrite,
			"SetDeadline":      func() error { return c.SetDeadline(time.Now()) },
			"SetReadDeadline":  func() error { return c.SetReadDeadline(time.Now()) },
			"SetWriteDeadline": func() error { return c.SetWriteDeadline(time.Now()) },
		} {
			require.ErrorIs(t, call(), hw.ErrInvalidHandle, name)
		}
		assert.Empty(t, c.LocalAddr().String())
		assert.Empty(t, c.RemoteAddr().String())
		assert.Zero(t, c.Snapshot())
		require.ErrorIs(t, c.Close(), hw.ErrInvalidHandle)
	}
	for _, l := range []*Listener{nil, new(Listener)} {
		_, err := l.Accept()
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		assert.Empty(t, l.Addr().String())
		require.ErrorIs(t, l.Close(), hw.ErrInvalidHandle)
	}
}

// crossing writes want at one end and reads it at the other.
func crossing(t *testing.T, from, to *Conn, want []byte) {
	sent := write(func() error {
		_, err := from.Write(want)
		return err
	})
	got := make([]byte, len(want))
	_, err := io.ReadFull(to, got)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	assert.Equal(t, want, got)
}

func TestEachEndReadsFromARingOfItsOwnSize(t *testing.T) {
	onEachWith(t, Config{Ring: 5000}, func(t *testing.T, r *rig) {
		r.cfg.Ring = 1 << 20
		client, server := r.pair()
		for range 2 {
			for _, size := range []int{leastOffered - 1, 3_000_000} { // the second may go past the rings
				crossing(t, client, server, body(size, 1))
				crossing(t, server, client, body(size, 2))
			}
		}
		assert.Len(t, client.line.flow.in.fill(), 1<<20)
		assert.Len(t, server.line.flow.in.fill(), 8192)
	})
}

func TestAConnectionThatCarriesLittleKeepsItsFirstRing(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		for n := range 100 {
			crossing(t, client, server, body(20*n, 1))
			crossing(t, server, client, body(20*n, 2))
		}
		for _, c := range []*Conn{client, server} {
			assert.Len(t, c.line.flow.in.fill(), leastRing)
			assert.Len(t, c.line.flow.out.image.mem, leastRing)
		}
	})
}

func TestAnEndThatIsClosedAtOnceIsTheEndOfTheStream(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		closed := write(func() error {
			c, err := r.ln.Accept()
			if err != nil {
				return err
			}
			return c.Close()
		})
		client, err := r.dialer().Dial("", r.ln.Addr().String())
		require.NoError(t, err)
		n, err := client.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		assert.Zero(t, n)
		require.NoError(t, <-closed)
		require.NoError(t, client.Close())
	})
}

func TestAShortageEndsOneAcceptAlone(t *testing.T) {
	err := error(&net.OpError{Op: "accept", Net: "loop", Err: shortage{hw.ErrInsufficientResources}})
	var temporary interface{ Temporary() bool }
	require.ErrorAs(t, err, &temporary)
	assert.True(t, temporary.Temporary())
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
}

func TestAnIdleStreamRunsNoGoroutine(t *testing.T) {
	r := newRig(t, "loop", Config{})
	before := runtime.NumGoroutine()
	for range 20 {
		client, server := r.pair()
		_, err := client.Write([]byte{1})
		require.NoError(t, err)
		_, err = server.Read(make([]byte, 1))
		require.NoError(t, err)
	}
	assert.Less(t, runtime.NumGoroutine(), before+20)
}

// An http.Transport may dial hundreds of connections before the server's goroutine accepts
// the first one. net.Listen has the system keep them all, 4096 on Linux.
func TestHundredsOfDialersWaitForAccept(t *testing.T) {
	const dialers = 300
	onEachWith(t, Config{Ring: leastRing}, func(t *testing.T, r *rig) {
		dialed := make(chan error, dialers)
		for range dialers {
			go func() {
				c, err := r.dialer().DialContext(t.Context(), "", r.ln.Addr().String())
				if err == nil {
					t.Cleanup(func() { assert.NoError(t, c.Close()) })
				} else {
					err = errors.Join(err, r.ln.Close()) // nothing comes any more for Accept
				}
				dialed <- err
			}()
		}
		for range dialers {
			c, err := r.ln.Accept()
			if err != nil {
				break
			}
			t.Cleanup(func() { assert.NoError(t, c.Close()) })
		}
		for range dialers {
			assert.NoError(t, <-dialed)
		}
	})
}

// The program has a region of its own in the zone of the connection, so the zone stays at first.
func TestACloseThatFailsIsMadeGoodByTheNext(t *testing.T) {
	client, _ := newRig(t, "loop", Config{}).pair()
	region, err := client.line.pz.Register(make([]byte, 1), hw.LocalRead)
	require.NoError(t, err)
	require.Error(t, client.Close())
	require.Error(t, client.Close(), "it is there still")
	require.NoError(t, region.Free())
	require.NoError(t, client.Close())
	require.NoError(t, client.Close())
	_, err = client.line.pz.Register(make([]byte, 1), hw.LocalRead)
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
}
