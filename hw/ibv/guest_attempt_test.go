//go:build guest

package ibv

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// siw holds an attempt for 10 s if the peer lets TCP connect and says nothing. The owner of
// the attempt need not wait for that; the device's Close does.
func TestAnAttemptThatTheKernelHoldsKeepsNobodyButTheDevice(t *testing.T) {
	if !onSIW(t) {
		return
	}
	b := &bench{t: t}
	e := b.open(nil, nil)
	b.ends[0] = e
	ln, err := net.Listen("tcp", net.JoinHostPort(e.dev.Attr().Address, "0"))
	require.NoError(t, err)
	defer ln.Close()
	asked, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		conn, err := ln.Accept()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
		assert.NoError(t, err)
		close(asked)
		_, _ = io.Copy(io.Discard, conn)
	}()
	port := ln.Addr().(*net.TCPAddr).Port
	require.NoError(t, e.qp.Connect(hw.ConnectConfig{Addr: e.dev.Attr().Address, Qual: uint64(port)}))
	awaited(t, "the request", asked)
	e.qp.Break(false)
	e.completion(sendEnd)
	e.completion(recvEnd)
	require.NoError(t, e.qp.Close())
	require.NoError(t, e.cq.Close())
	require.NoError(t, e.zone.Close())
	select {
	case <-over:
		assert.Fail(t, "the objects were closed when the attempt had ended")
	default:
	}
	require.NoError(t, e.dev.Close())
	awaited(t, "the end of the attempt", over)
}

func TestAListenerOfNoAddressInParticularIsReached(t *testing.T) {
	for _, addr := range []string{"::", "0.0.0.0"} {
		b := &bench{t: t}
		for i := range b.ends {
			b.ends[i] = b.open(nil, nil)
		}
		b.at = addr
		b.connect(nil)
		b.close()
	}
}

// An initiator that writes without a break, and sends no message for a while, is left alone:
// siw would answer a read of no bytes with those of its last write.
func TestAnAcceptorOnSiwAsksNothingOfAnInitiatorThatIsBusy(t *testing.T) {
	if !onSIW(t) {
		return
	}
	b := newBench(t, nil, nil, nil)
	from, to := b.ends[0], b.ends[1]
	source, sink := from.memory(64<<10, hw.LocalRead), to.memory(64<<10, hw.LocalWrite|hw.RemoteWrite)
	in := to.memory(16, hw.LocalWrite)
	to.recv(7, in.sge(0, 16))
	q := to.qp.(*queuePair)
	posted, done := 0, 0
	from.until("the last alarm", func() bool {
		for _, wc := range from.wcs {
			require.Equal(t, hw.StatusSuccess, wc.Status)
			done++
		}
		from.wcs = from.wcs[:0]
		for ; posted < done+benchDepth-1; posted++ {
			from.send(hw.SendWR{
				Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{source.sge(0, len(source.buf))},
				RKey: sink.RKey(), RemoteAddr: sink.addr(),
			})
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.nudged == readNudge
	})
	from.until("the writes", func() bool {
		done += len(from.wcs)
		from.wcs = from.wcs[:0]
		return done == posted
	})
	from.send(hw.SendWR{ID: 8, Op: hw.OpSend, Flags: hw.WRSignaled})
	assert.Equal(t, hw.StatusSuccess, to.completion(7).Status)
	assert.Equal(t, hw.StatusSuccess, from.completion(8).Status)
	t.Logf("%d writes", done)
}
