package iwarp

import (
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw"
)

// counter counts completions and keeps a queue filled: at each completion it posts the
// next request from inside the sink, as an owner may.
type counter struct {
	n    atomic.Int64
	wake chan struct{}
	at   atomic.Int64 // wake when n gets to this
}

func (c *counter) Complete(wcs []hw.WC) {
	if wcs[len(wcs)-1].Op == hw.OpEnd {
		c.n.Add(1 << 40)
	}
	if n := c.n.Add(int64(len(wcs))); n >= c.at.Load() {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

func (c *counter) until(n int64) {
	c.at.Store(n)
	for c.n.Load() < n {
		<-c.wake
	}
}

func newCounter() *counter { return &counter{wake: make(chan struct{}, 1)} }

// counted makes a connection whose queues count.
func counted(tb testing.TB, p hw.Provider, params map[string]string, depth int) (a, b *peer, sends, recvs *counter) {
	na, nb := newNode(tb, p, params), newNode(tb, p, params)
	sends, recvs = newCounter(), newCounter()
	deep := func(c *hw.QPConfig) { c.SendDepth, c.RecvDepth = depth, depth }
	a = na.peer(deep, func(c *hw.QPConfig) { c.SendSink = tee{c.SendSink, sends} })
	b = nb.peer(deep, func(c *hw.QPConfig) { c.RecvSink = tee{c.RecvSink, recvs} })
	join(a, b)
	return a, b, sends, recvs
}

// tee counts all and records the end.
type tee struct {
	record, count hw.Sink
}

func (t tee) Complete(wcs []hw.WC) {
	if n := len(wcs); wcs[n-1].Op == hw.OpEnd {
		t.record.Complete(wcs[n-1:])
	}
	t.count.Complete(wcs)
}

// BenchmarkBulk writes a megabyte at a time, and compares with a plain connection.
func BenchmarkBulk(b *testing.B) {
	const size, deep = 1 << 20, 8
	b.Run("way=conn", func(b *testing.B) {
		from, to := tcpPair(b)
		src, dst := make([]byte, size), make([]byte, size)
		b.SetBytes(size)
		go func() {
			for {
				if _, err := from.Write(src); err != nil {
					return
				}
			}
		}()
		for b.Loop() {
			_, _ = io.ReadFull(to, dst)
		}
	})
	overTLS := otherWays(b)["TLS"]
	for _, c := range []struct {
		name   string
		params map[string]string
		cfg    Config
	}{
		{"crc=off/fpdu=64K", map[string]string{"crc": "false"}, Config{}},
		{"crc=on/fpdu=64K", nil, Config{}},
		{"crc=on/fpdu=1440", map[string]string{"fpdu": "1440"}, Config{}},
		{"crc=off/fpdu=64K/tls", map[string]string{"crc": "false"}, overTLS},
		{"crc=on/fpdu=64K/tls", nil, overTLS},
	} {
		b.Run("way=write/"+c.name, func(b *testing.B) {
			x, y, sends, recvs := counted(b, New(c.cfg), c.params, deep)
			src, dst := x.memory(size, hw.LocalRead), y.memory(size, hw.RemoteWrite)
			wr := []hw.SendWR{{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{src.sge(0, size)}, RKey: dst.RKey(), RemoteAddr: dst.base}}
			b.SetBytes(size)
			b.ReportAllocs()
			posted := int64(0)
			for b.Loop() {
				if posted++; posted > deep {
					sends.until(posted - deep)
				}
				_, err := x.qp.PostSend(wr)
				require.NoError(b, err)
			}
			y.recv()
			sends.until(posted)
			x.post(hw.SendWR{Op: hw.OpSend})
			recvs.until(1)
		})
	}
}

// BenchmarkMessages sends 64 bytes at a time, and compares with a write for each on a
// plain connection.
func BenchmarkMessages(b *testing.B) {
	const size, deep = 64, 32
	b.Run("way=conn", func(b *testing.B) {
		from, to := tcpPair(b)
		go func() {
			src := make([]byte, size)
			for range b.N {
				_, _ = from.Write(src)
			}
		}()
		dst := make([]byte, 64<<10)
		b.SetBytes(size)
		got := 0
		for got < b.N*size {
			n, err := to.Read(dst)
			require.NoError(b, err)
			got += n
		}
	})
	for _, crc := range []bool{false, true} {
		b.Run("way=send/crc="+strconv.FormatBool(crc), func(b *testing.B) {
			x, y, sends, recvs := counted(b, New(Config{}), map[string]string{"crc": strconv.FormatBool(crc)}, 4*deep)
			src, dst := x.memory(size, hw.LocalRead), y.memory(size, hw.LocalWrite)
			out, in := make([]hw.SendWR, deep), make([]hw.RecvWR, deep)
			for i := range out {
				out[i] = hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled, SGL: []hw.SGE{src.sge(0, size)}}
				in[i] = hw.RecvWR{SGL: []hw.SGE{dst.sge(0, size)}}
			}
			b.SetBytes(size)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += deep {
				recvs.until(int64(done - deep))
				_, err := y.qp.PostRecv(in)
				require.NoError(b, err)
				sends.until(int64(done - deep))
				_, err = x.qp.PostSend(out)
				require.NoError(b, err)
			}
			recvs.until(int64(b.N))
		})
	}
}

// BenchmarkRoundTrip sends 64 bytes there and back.
func BenchmarkRoundTrip(b *testing.B) {
	const size = 64
	b.Run("way=conn", func(b *testing.B) {
		from, to := tcpPair(b)
		go func() {
			buf := make([]byte, size)
			for {
				if _, err := io.ReadFull(to, buf); err != nil {
					return
				}
				_, _ = to.Write(buf)
			}
		}()
		buf := make([]byte, size)
		for b.Loop() {
			_, _ = from.Write(buf)
			_, _ = io.ReadFull(from, buf)
		}
	})
	b.Run("way=send", func(b *testing.B) { benchmarkEcho(b, New(Config{})) })
	b.Run("way=send/tls", func(b *testing.B) { benchmarkEcho(b, New(otherWays(b)["TLS"])) })
}

// benchmarkEcho sends there and back over a provider.
func benchmarkEcho(b *testing.B, p hw.Provider) {
	const size = 64
	echo := &echoer{}
	done := newCounter()
	x := newNode(b, p, nil).peer(func(c *hw.QPConfig) { c.RecvSink = tee{c.RecvSink, done} })
	y := newNode(b, p, nil).peer(func(c *hw.QPConfig) { c.RecvSink = tee{c.RecvSink, echo} })
	src, dst := x.memory(size, hw.AllPrivileges), y.memory(size, hw.AllPrivileges)
	echo.qp = y.qp
	echo.in = []hw.RecvWR{{SGL: []hw.SGE{dst.sge(0, size)}}}
	echo.out = []hw.SendWR{{Op: hw.OpSend, SGL: []hw.SGE{dst.sge(0, size)}}}
	y.recv(dst.sge(0, size))
	join(x, y)
	in := []hw.RecvWR{{SGL: []hw.SGE{src.sge(0, size)}}}
	out := []hw.SendWR{{Op: hw.OpSend, SGL: []hw.SGE{src.sge(0, size)}}}
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		n++
		_, _ = x.qp.PostRecv(in)
		_, _ = x.qp.PostSend(out)
		done.until(n)
	}
}

// echoer answers each message from inside the sink.
type echoer struct {
	qp  hw.QP
	in  []hw.RecvWR
	out []hw.SendWR
}

func (e *echoer) Complete(wcs []hw.WC) {
	if wcs[0].Status == hw.StatusSuccess && wcs[0].Op == hw.OpRecv {
		_, _ = e.qp.PostRecv(e.in)
		_, _ = e.qp.PostSend(e.out)
	}
}

// tcpPair is a plain connection.
func tcpPair(tb testing.TB) (a, b net.Conn) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer ln.Close()
	a, err = net.Dial("tcp", ln.Addr().String())
	require.NoError(tb, err)
	b, err = ln.Accept()
	require.NoError(tb, err)
	tb.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return a, b
}
