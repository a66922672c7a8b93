package iwarp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// What a judge says of a peer that is silent for that long before each look.
func TestAJudgeCountsOnlyLooksThatComeInTime(t *testing.T) {
	const each = 4 * time.Second
	for name, c := range map[string]struct {
		waits []time.Duration
		sign  int // the look that finds a sign of life, counted from 1; 0 for none
		over  int // the look behind which the time is over
		after time.Duration
	}{
		"in time":                      {[]time.Duration{each, each, each, each}, 0, 4, 4 * each},
		"a sign of life":               {[]time.Duration{each, each, each, each, each, each, each}, 3, 7, 4 * each},
		"a pause":                      {[]time.Duration{each, 10 * each, each, each, each}, 0, 5, 14 * each},
		"pauses":                       {[]time.Duration{9 * each, 9 * each, 9 * each, each, each, each, each}, 0, 7, 31 * each},
		"a processor that comes a bit": {[]time.Duration{each + each/8, each, each, each}, 0, 4, 4*each + each/8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var j judge
				j.begin(each)
				for i, wait := range c.waits {
					time.Sleep(wait)
					require.Equal(t, i+1 == c.over, j.look(wait-each, i+1 == c.sign), "look %d", i+1)
				}
				assert.Equal(t, c.after, j.silence())
			})
		})
	}
}

// halfAnFPDU is a connection of b whose script has sent a part of an FPDU, and the part that is
// left.
func halfAnFPDU(t *testing.T, ways *pipes, b *peer) (s *script, rest []byte) {
	s = acceptedByPipe(t, ways, b, plain())
	send := fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}, make([]byte, 8))
	s.write(send[:len(send)/2])
	synctest.Wait()
	return s, send[len(send)/2:]
}

func TestAPauseOfTheProcessIsNoFaultOfAPeerInTheMiddleOfAnFPDU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		n := newNode(t, New(ways.config()), bounds)
		b, m := n.peer(), n.memory(8, hw.LocalWrite)
		b.recv(m.sge(0, 8))
		s, rest := halfAnFPDU(t, ways, b)
		l := &connections(b)[0].link
		for range 3 * looks {
			l.Mu.Lock()
			l.readAt = l.readAt.Add(-time.Hour)
			l.Mu.Unlock()
			time.Sleep(stallTime / looks)
			synctest.Wait()
		}
		require.Zero(t, b.down)
		s.write(rest)
		assert.Equal(t, hw.StatusSuccess, b.received(0).Status)
		_ = s.conn.Close()
	})
}

func TestTheCauseSaysForHowLongAPeerWasSilent(t *testing.T) {
	for name, c := range map[string]struct {
		req  wire.MPARequest
		work func(b *peer, m *memory)
		text string
	}{
		"it takes nothing": {plain(), func(b *peer, m *memory) {
			b.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 1<<20)}, RKey: 1})
		}, "the peer took nothing for 7 s"},
		"it owes an answer": {ours(), func(*peer, *memory) {}, "nothing has come from the peer for 6 s, nor the answer to this library's probe: its process is stopped or stuck, or its host"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways, params := pulsing()
				params["stall"] = stallTime.String()
				n := newNode(t, New(ways.config()), params)
				b, m := n.peer(), n.memory(1<<20, hw.LocalRead)
				s := acceptedByPipe(t, ways, b, c.req)
				s.ready(c.req)
				b.awaitUp()
				c.work(b, m)
				if c.req.BigFPDU {
					s.swallow()
				}
				b.awaitDown()
				assert.ErrorContains(t, b.cause, c.text)
				assert.ErrorIs(t, b.cause, hw.ErrTimeout)
				_ = s.conn.Close()
			})
		})
	}
}

// A connection whose request lies in the socket while its listener's process is paused is not
// silent.
func TestAPauseOfTheProcessIsNoFaultOfAPeerThatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		n := newNode(t, New(ways.config()), bounds)
		ln, requests := n.listen(hw.ListenConfig{})
		s := pipeScript(t, ways, ln)
		_ = s.conn.SetDeadline(time.Time{})
		synctest.Wait()
		u := ln.(*listener).startups
		for range 3 {
			u.mu.Lock()
			one := u.byAge.Front().Value.(*startup)
			one.due = one.due.Add(-time.Hour)
			u.mu.Unlock()
			time.Sleep(mpaTime)
			synctest.Wait()
		}
		p := plain()
		s.write(p.Append(nil))
		assert.NoError(t, (<-requests).Reject(nil))
		assert.Zero(t, ln.(hw.CountingListener).Counts().Silent)
		_ = s.conn.Close()
	})
}

// An initiator that has promised its first FPDU, which lies in the socket while this process is
// paused, is not silent.
func TestAPauseOfTheProcessIsNoFaultOfAPeerThatHasPromisedItsFirstFPDU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		b := newNode(t, New(ways.config()), bounds).peer()
		req := plain()
		req.Data.PeerToPeer, req.Data.WriteRTR = true, true
		s := acceptedByPipe(t, ways, b, req)
		_ = s.conn.SetDeadline(time.Time{})
		synctest.Wait()
		l := &connections(b)[0].link
		for range 3 {
			l.Mu.Lock()
			l.readAt = l.readAt.Add(-time.Hour)
			l.Mu.Unlock()
			time.Sleep(mpaTime)
			synctest.Wait()
		}
		b.mu.Lock()
		require.Zero(t, b.refused)
		b.mu.Unlock()
		s.write(fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true}))
		b.awaitUp()
		_ = s.conn.Close()
	})
}
