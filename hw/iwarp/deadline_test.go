package iwarp

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// Each wait for a peer has its bound. These tests run in synctest's time, so they check
// the bounds to the instant.

const (
	mpaTime    = 5 * time.Second
	graceTime  = 50 * time.Millisecond
	stallTime  = 7 * time.Second
	lingerTime = time.Second
)

var bounds = map[string]string{
	"crc": "false", "mpa": mpaTime.String(), "grace": graceTime.String(), "stall": stallTime.String(),
	"linger": lingerTime.String(), "keepalive": "0", "fallback": "false",
}

// meanwhile runs f in a goroutine, and waits for it before the test ends.
func (s *script) meanwhile(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	s.tb.Cleanup(func() { <-done })
}

// drip writes one octet per second until a write fails.
func (s *script) drip(b []byte) {
	for i := range b {
		if _, err := s.conn.Write(b[i : i+1]); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

func TestARequestHasItsTimeHoweverItComes(t *testing.T) {
	p := plain()
	frame := p.Append(nil)
	for name, say := range map[string]func(s *script){
		"nothing":         func(*script) {},
		"half of it":      func(s *script) { s.write(frame[:20]) },
		"octet by octet":  func(s *script) { s.drip(frame) },
		"all but the end": func(s *script) { s.write(frame[:len(frame)-1]) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways := &pipes{}
				n := newNode(t, New(ways.config()), bounds)
				ln, requests := n.listen(hw.ListenConfig{})
				began := time.Now()
				s := pipeScript(t, ways, ln)
				s.meanwhile(func() { say(s) })
				s.eof()
				assert.Equal(t, mpaTime, time.Since(began))
				assert.Empty(t, requests)
			})
		})
	}
}

func TestAConsumerMayTakeItsTimeForARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		b := newNode(t, New(ways.config()), bounds).peer()
		ln, requests := b.listen(hw.ListenConfig{})
		s := pipeScript(t, ways, ln)
		_ = s.conn.SetDeadline(time.Time{})
		p := plain()
		s.write(p.Append(nil))
		r := <-requests
		time.Sleep(time.Hour)
		require.NoError(t, r.Accept(b.qp, nil))
		s.reply()
		b.awaitUp()
		_ = s.conn.Close()
	})
}

func TestAReplyThatThePeerDoesNotTakeHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		b := newNode(t, New(ways.config()), bounds).peer()
		ln, requests := b.listen(hw.ListenConfig{})
		s := pipeScript(t, ways, ln)
		p := plain()
		s.write(p.Append(nil))
		began := time.Now()
		require.NoError(t, (<-requests).Accept(b.qp, nil))
		b.await("refusal", func() bool { return b.refused != 0 })
		assert.Equal(t, hw.ReasonTimeout, b.refused)
		assert.Equal(t, mpaTime, time.Since(began))
		s.eof()
	})
}

func TestARejectThatThePeerDoesNotTakeHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		dev, err := New(ways.config()).Open(hw.OpenConfig{Params: bounds})
		require.NoError(t, err)
		n := &node{tb: t, dev: dev}
		ln, requests := n.listen(hw.ListenConfig{})
		s := pipeScript(t, ways, ln)
		p := plain()
		s.write(p.Append(nil))
		began := time.Now()
		require.NoError(t, (<-requests).Reject([]byte("no")))
		require.NoError(t, ln.Close())
		require.NoError(t, dev.Close(), "waits for it")
		assert.Equal(t, lingerTime, time.Since(began))
		s.eof()
	})
}

func TestAReadyToReceiveThatDoesNotComeRefusesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		b := newNode(t, New(ways.config()), bounds).peer()
		req := plain()
		req.Data.PeerToPeer, req.Data.WriteRTR = true, true
		s := acceptedByPipe(t, ways, b, req)
		began := time.Now()
		s.meanwhile(func() { s.drip(fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true})) })
		b.await("refusal", func() bool { return b.refused != 0 })
		assert.Equal(t, hw.ReasonTimeout, b.refused)
		assert.Equal(t, mpaTime, time.Since(began))
		s.eof()
	})
}

func TestAnInitiatorWithoutAPromiseIsUpAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		b := newNode(t, New(ways.config()), bounds).peer()
		s := acceptedByPipe(t, ways, b, plain())
		began := time.Now()
		b.awaitUp()
		assert.Equal(t, graceTime, time.Since(began))
		_ = s.conn.Close()
	})
}

// answeredByPipe makes a connect over a pipe, and returns a script that is its peer.
func answeredByPipe(tb tester, ways *pipes, a *peer, timeout time.Duration) *script {
	tb.Helper()
	ln, err := ways.listen(":0")
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = ln.Close() })
	require.NoError(tb, a.qp.Connect(hw.ConnectConfig{Addr: "here", Qual: uint64(addrPort(ln.Addr()).Port()), Timeout: timeout}))
	return acceptScript(tb, ln)
}

func TestAConnectHasItsTimeHoweverTheReplyComes(t *testing.T) {
	const limit = 3 * time.Second
	for name, say := range map[string]func(s *script, req wire.MPARequest){
		"nothing": func(*script, wire.MPARequest) {},
		"half of it": func(s *script, req wire.MPARequest) {
			reply := obliging(req)
			s.write(reply.Append(nil)[:19])
		},
		"octet by octet": func(s *script, req wire.MPARequest) {
			reply := obliging(req)
			s.drip(reply.Append(nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways := &pipes{}
				a := newNode(t, New(ways.config()), bounds).peer()
				began := time.Now()
				s := answeredByPipe(t, ways, a, limit)
				req := s.request()
				s.meanwhile(func() { say(s, req) })
				a.await("refusal", func() bool { return a.refused != 0 })
				assert.Equal(t, hw.ReasonTimeout, a.refused)
				assert.Equal(t, limit, time.Since(began))
				s.eof()
			})
		})
	}
}

func TestARequestThatThePeerDoesNotTakeHasTheTimeOfTheConnect(t *testing.T) {
	const limit = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		a := newNode(t, New(ways.config()), bounds).peer()
		began := time.Now()
		s := answeredByPipe(t, ways, a, limit)
		a.await("refusal", func() bool { return a.refused != 0 })
		assert.Equal(t, hw.ReasonTimeout, a.refused)
		assert.Equal(t, limit, time.Since(began))
		s.eof()
	})
}

func TestASilentPeerEndsAConnectWithoutATimeOutByTheParameterReply(t *testing.T) {
	for reply, want := range map[string]time.Duration{"": time.Minute, "7s": 7 * time.Second, "0": 0} {
		synctest.Test(t, func(t *testing.T) {
			ways, params := &pipes{}, maps.Clone(bounds)
			if reply != "" {
				params["reply"] = reply
			}
			a := newNode(t, New(ways.config()), params).peer()
			began := time.Now()
			s := answeredByPipe(t, ways, a, 0)
			_ = s.conn.SetDeadline(time.Time{})
			s.request()
			if want == 0 {
				time.Sleep(24 * time.Hour)
				a.mu.Lock()
				defer a.mu.Unlock()
				assert.Zero(t, a.refused)
				return
			}
			a.mu.Lock()
			for a.refused == 0 {
				a.cond.Wait()
			}
			a.mu.Unlock()
			assert.Equal(t, hw.ReasonTimeout, a.refused)
			assert.Equal(t, want, time.Since(began))
			s.eof()
		})
	}
}

func TestAPeerThatTakesNothingHasTheStallTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		n := newNode(t, New(ways.config()), bounds)
		b, m := n.peer(), n.memory(1<<20, hw.LocalRead)
		s := acceptedByPipe(t, ways, b, plain())
		b.awaitUp()
		began := time.Now()
		b.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 1<<20)}, RKey: 1})
		assert.Zero(t, time.Since(began), "a post waits for nobody")
		b.awaitDown()
		assert.Equal(t, hw.ReasonBroken, b.down)
		assert.Equal(t, stallTime+lingerTime, time.Since(began), "what the peer has still to say has its time, too")
		assert.Equal(t, hw.StatusFlushed, b.sent(0).Status)
		_ = s.conn.Close()
	})
}

func TestTheRestOfAnFPDUHasTheStallTime(t *testing.T) {
	for _, size := range []int{0, 10, 30000} {
		synctest.Test(t, func(t *testing.T) {
			ways := &pipes{}
			n := newNode(t, New(ways.config()), bounds)
			b, m := n.peer(), n.memory(30000, hw.LocalWrite)
			for range 3 {
				b.recv(m.sge(0, 30000))
			}
			s := acceptedByPipe(t, ways, b, plain())
			send := func(msn uint32) []byte {
				return fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: msn}, make([]byte, size))
			}
			one := send(1)
			s.write(one[:len(one)/2])
			time.Sleep(stallTime - 1)
			s.write(one[len(one)/2:])
			assert.Equal(t, hw.StatusSuccess, b.received(0).Status)
			time.Sleep(10 * stallTime) // between two FPDUs a peer may be silent for any time
			s.write(send(2))
			assert.Equal(t, hw.StatusSuccess, b.received(1).Status)
			began := time.Now()
			s.write(send(3)[:len(one)/2])
			b.awaitDown()
			assert.Equal(t, hw.ReasonBroken, b.down)
			assert.Equal(t, stallTime, time.Since(began))
			assert.Equal(t, hw.StatusFlushed, b.received(2).Status)
		})
	}
}

func TestAPeerThatDoesNotTakeTheEndHasTheLinger(t *testing.T) {
	for name, orderly := range map[string]bool{"an abrupt break": false, "an orderly one": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways := &pipes{}
				n := newNode(t, New(ways.config()), bounds)
				b, m := n.peer(), n.memory(1<<20, hw.LocalRead)
				s := acceptedByPipe(t, ways, b, plain())
				b.awaitUp()
				b.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 1<<20)}, RKey: 1})
				began := time.Now()
				b.end(orderly)
				assert.Zero(t, time.Since(began), "the queues wait for no peer")
				s.linger(t, began)
			})
		})
	}
}

// linger waits for the end of the stream, which must come within twice the time linger.
func (s *script) linger(t *testing.T, began time.Time) {
	time.Sleep(2 * lingerTime)
	var b [1]byte
	for {
		if _, err := s.conn.Read(b[:]); err != nil {
			break
		}
	}
	assert.LessOrEqual(t, time.Since(began), 2*lingerTime)
}

func TestADrainHasTheLingerForThePeersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{wrap: halved}
		b := newNode(t, New(ways.config()), bounds).peer()
		s := acceptedByPipe(t, ways, b, plain())
		b.awaitUp()
		began := time.Now()
		b.qp.Drain()
		b.awaitDown()
		assert.Equal(t, hw.ReasonDrained, b.down)
		assert.Equal(t, lingerTime, time.Since(began))
		_ = s.conn.Close()
	})
}
