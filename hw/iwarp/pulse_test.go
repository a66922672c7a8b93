package iwarp

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// These tests run in synctest's time, which passes when all goroutines wait.

const keepAlive = 8 * time.Second

func pulsing() (*pipes, map[string]string) {
	return &pipes{}, map[string]string{"crc": "false", "keepalive": keepAlive.String(), "linger": "1s"}
}

// pipeScript connects to a listener over a pipe.
func pipeScript(tb tester, ways *pipes, ln hw.Listener) *script {
	tb.Helper()
	conn, err := ways.dial(context.Background(), "here:"+portText(ln))
	require.NoError(tb, err)
	return newScript(tb, conn)
}

// acceptedByPipe is a script that b has accepted over a pipe; it may take any time.
func acceptedByPipe(tb tester, ways *pipes, b *peer, req wire.MPARequest) *script {
	tb.Helper()
	ln, requests := b.listen(hw.ListenConfig{})
	s := pipeScript(tb, ways, ln)
	_ = s.conn.SetDeadline(time.Time{})
	s.write(req.Append(nil))
	require.NoError(tb, (<-requests).Accept(b.qp, nil))
	s.reply()
	return s
}

// ready sends the ready-to-receive, if req is a request of this package.
func (s *script) ready(req wire.MPARequest) {
	s.tb.Helper()
	if req.Data.SendRTR && req.BigFPDU {
		s.write(rtrFPDU)
	}
}

// kinByPipe is a script of this package's kind that b has accepted over a pipe.
func kinByPipe(tb tester, ways *pipes, b *peer) *script {
	tb.Helper()
	s := acceptedByPipe(tb, ways, b, ours())
	s.ready(ours())
	b.awaitUp()
	return s
}

// isProbed reads a probe.
func (s *script) isProbed(msn uint32) {
	s.tb.Helper()
	h, body := s.next()
	require.Equal(s.tb, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: msn}, h)
	var r wire.ReadRequest
	_, err := r.Parse(body)
	require.NoError(s.tb, err)
	require.Equal(s.tb, wire.ReadRequest{SinkSTag: 1, SrcSTag: 1}, r)
}

// swallow makes the peer read everything and send nothing more.
func (s *script) swallow() {
	go func() { _, _ = io.Copy(io.Discard, s.conn) }()
}

func TestAPeerThatVanishesIsNoticedWithinTheKeepAlive(t *testing.T) {
	nothing := func(*peer, *memory) {}
	read := func(b *peer, m *memory) {
		b.post(hw.SendWR{Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 8)}, RKey: 1})
	}
	for _, c := range []struct {
		name  string
		req   wire.MPARequest
		last  []byte // what the peer sends before it falls silent
		work  func(b *peer, m *memory)
		sends int // number of completions of the work
	}{
		{"idle", ours(), nil, nothing, 0},
		{"a read is outstanding", ours(), nil, read, 1},
		{"a read is outstanding with a peer of another kind", plain(), nil, read, 1},
		{"sends are posted", ours(), nil, func(b *peer, m *memory) {
			for range 3 {
				b.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 8)}})
			}
		}, 3},
		{"in the middle of a message", ours(), fpdu(false, wire.Header{Opcode: wire.OpSend, MSN: 1}, []byte("half")), nothing, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways, params := pulsing()
				n := newNode(t, New(ways.config()), params)
				b, m := n.peer(), n.memory(8, hw.LocalWrite|hw.LocalRead)
				b.recv(m.sge(0, 8))
				s := acceptedByPipe(t, ways, b, c.req)
				s.ready(c.req)
				b.awaitUp()
				if c.last != nil {
					s.write(c.last)
				}
				s.swallow()
				last := time.Now()
				c.work(b, m)
				b.awaitDown()
				assert.Equal(t, hw.ReasonBroken, b.down)
				assert.LessOrEqual(t, time.Since(last), keepAlive)
				assert.GreaterOrEqual(t, time.Since(last), keepAlive/2, "it had time to answer")
				assert.Equal(t, hw.StatusFlushed, b.received(0).Status)
				b.end(false)
				assert.Len(t, b.sends, c.sends+1, "and the end")
			})
		})
	}
}

// Over TCP the kernel of a stuck peer answers for it, so the peer is probed there too.
func TestAPeerThatIsStuckIsNoticedOverTCP(t *testing.T) {
	t.Parallel()
	b := newNode(t, New(Config{}), map[string]string{"crc": "false", "keepalive": "100ms", "linger": "10ms"}).peer()
	b.recv()
	s, _ := accepted(t, b, ours())
	s.ready(ours())
	b.awaitUp()
	s.isProbed(1)
	b.awaitDown()
	assert.Equal(t, hw.ReasonBroken, b.down)
	assert.Equal(t, hw.StatusFlushed, b.received(0).Status)
}

// strangers are requests of peers of other kinds. A read of no octets breaks the connection
// to one of them, siw, if it is sending then.
var strangers = map[string]wire.MPARequest{
	"as siw asks":       plain(),
	"takes no read":     {Revision: 2, Enhanced: true, Data: wire.EnhancedData{ORD: 4}},
	"does not say":      {Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: wire.NotNegotiated, ORD: wire.NotNegotiated}},
	"can't say":         {Revision: 1},
	"takes big FPDUs":   {Revision: 2, Enhanced: true, BigFPDU: true, Data: wire.EnhancedData{IRD: 4, ORD: 4}},
	"sends to be ready": {Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: 4, ORD: 4, SendRTR: true, WriteRTR: true}},
	"reads to be ready": {Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: 4, ORD: 4, ReadRTR: true}},
	"takes one read":    {Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: 1}},
	"wants CRCs":        {Revision: 2, Enhanced: true, CRC: true, Data: wire.EnhancedData{IRD: 4, ORD: 4}},
}

func TestAPeerOfAnotherKindIsNeverSentAReadThatNobodyPosted(t *testing.T) {
	for name, req := range strangers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways, params := pulsing()
				n := newNode(t, New(ways.config()), params)
				b := n.peer()
				s := acceptedByPipe(t, ways, b, req)
				s.crc = req.CRC
				b.awaitUp()
				for i := range uint32(3) {
					time.Sleep(time.Hour)
					b.recv()
					s.write(fpdu(req.CRC, wire.Header{Opcode: wire.OpSend, Last: true, MSN: i + 1}))
					b.received(int(i))
					time.Sleep(keepAlive / looks / 2)
					b.post(hw.SendWR{Op: hw.OpSend})
					h, _ := s.next()
					assert.Equal(t, wire.OpSend, h.Opcode)
				}
				_ = s.conn.Close()
				b.awaitDown()
			})
		})
	}
	t.Run("that this end connects to", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, s := nudged(t, map[string]string{"nudge": "0", "keepalive": keepAlive.String()})
			s.receivesNothing(a)
		})
	})
}

// The probe takes one of the places for reads that the peer has agreed to, and gives it
// back: this end's reads wait for the place, and none exceeds the agreement.
func TestAReadThatIsPostedDuringAProbeWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways, params := pulsing()
		n := newNode(t, New(ways.config()), params)
		b, m := n.peer(func(c *hw.QPConfig) { c.ReadsOut = 1 }), n.memory(8, hw.LocalWrite)
		s := kinByPipe(t, ways, b)
		s.isProbed(1)
		b.post(
			hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled},
			hw.SendWR{Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 8)}, RKey: 7},
			hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled},
		)
		h, _ := s.next()
		require.Equal(t, wire.OpSend, h.Opcode)
		synctest.Wait()
		b.mu.Lock()
		assert.Len(t, b.sends, 1, "the read waits")
		b.mu.Unlock()
		s.write(fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: 1}))
		h, body := s.next()
		require.Equal(t, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: 2}, h)
		var r wire.ReadRequest
		_, err := r.Parse(body)
		require.NoError(t, err)
		assert.Equal(t, uint32(8), r.Size)
		s.write(fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: r.SinkSTag}, []byte("response")))
		h, _ = s.next()
		assert.Equal(t, wire.OpWrite, h.Opcode)
		for i, op := range []hw.Op{hw.OpSend, hw.OpRead, hw.OpWrite} {
			wc := b.sent(i)
			assert.Equal(t, hw.StatusSuccess, wc.Status)
			assert.Equal(t, op, wc.Op)
		}
		assert.Equal(t, "response", string(m.buf))
		_ = s.conn.Close()
	})
}

func TestASilentPeerThatAnswersTheProbesIsKept(t *testing.T) {
	for _, c := range []struct {
		name  string
		reads int
	}{{"with reads", 4}, {"without", 0}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways, params := pulsing()
				p := New(ways.config())
				depth := func(cfg *hw.QPConfig) { cfg.ReadsIn, cfg.ReadsOut = c.reads, c.reads }
				a, b := newNode(t, p, params).peer(depth), newNode(t, p, params).peer(depth)
				b.recv()
				b.recv()
				join(a, b)
				time.Sleep(time.Hour)
				a.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled | hw.WRFence})
				assert.Equal(t, hw.StatusSuccess, b.received(0).Status)
				assert.Equal(t, hw.StatusSuccess, a.sent(0).Status)
				assert.Zero(t, a.down)
				assert.Zero(t, b.down)
				a.qp.Drain()
				a.awaitDown()
				assert.Equal(t, hw.ReasonDrained, a.down)
			})
		})
	}
}

func TestASilentPeerIsProbedByAnEmptyRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways, params := pulsing()
		b := newNode(t, New(ways.config()), params).peer()
		s := kinByPipe(t, ways, b)
		for i := range uint32(100) {
			s.isProbed(i + 1)
			s.write(fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: 1}))
		}
		assert.Zero(t, b.down)
		_ = s.conn.Close()
	})
}

// An end at rest asks its peer less often than twice in three looks, and an end that is asked asks nothing.
func TestOfTwoEndsAtRestOneAsks(t *testing.T) {
	const pulse = keepAlive / looks
	answer := fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: 1})
	synctest.Test(t, func(t *testing.T) {
		ways, params := pulsing()
		b := newNode(t, New(ways.config()), params).peer()
		s := kinByPipe(t, ways, b)
		s.isProbed(1)
		for i := range uint32(100) {
			s.write(answer)
			asked := time.Now()
			s.isProbed(i + 2)
			assert.Equal(t, 2*pulse-pulse/8, time.Since(asked))
		}
		_ = s.conn.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		ways, params := pulsing()
		b := newNode(t, New(ways.config()), params).peer()
		s := kinByPipe(t, ways, b)
		for i := range uint32(100) {
			s.write(fpdu(false, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: i + 1}, (&wire.ReadRequest{SinkSTag: 1, SrcSTag: 1}).Append(nil)))
			h, _ := s.next()
			require.Equal(t, wire.OpReadResponse, h.Opcode)
			time.Sleep(2*pulse - pulse/8)
		}
		s.swallow()
		last := time.Now()
		b.awaitDown()
		assert.LessOrEqual(t, time.Since(last), keepAlive)
		assert.GreaterOrEqual(t, time.Since(last), keepAlive/2)
	})
}

func TestWithoutKeepAliveADeadPeerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways, params := pulsing()
		params["keepalive"] = "0"
		b := newNode(t, New(ways.config()), params).peer()
		s := kinByPipe(t, ways, b)
		s.swallow()
		time.Sleep(24 * time.Hour)
		b.mu.Lock()
		assert.Zero(t, b.down)
		b.mu.Unlock()
		_ = s.conn.Close()
	})
}

// A peer that reads nothing and sends nothing is given up after the time stall, however
// short keepalive is.
func TestASlowPeerIsNotTakenForDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways, params := pulsing()
		params["stall"] = "9h"
		n := newNode(t, New(ways.config()), params)
		b, m := n.peer(), n.memory(1<<20, hw.LocalRead)
		s := kinByPipe(t, ways, b)
		b.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 1<<20)}, RKey: 1})
		for got := 0; got < 1<<20; time.Sleep(time.Minute) {
			h, body := s.next()
			if h.Opcode == wire.OpReadRequest { // a probe
				s.write(fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: 1}))
				continue
			}
			got += len(body)
		}
		s.swallow()
		assert.Equal(t, hw.StatusSuccess, b.sent(0).Status)
		_ = s.conn.Close()
	})
}
