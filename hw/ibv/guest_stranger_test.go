//go:build guest

package ibv

import (
	"encoding/binary"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp"
)

// stranger is an end on hw/iwarp, for which soft-iWARP is a peer of another kind.
type stranger struct {
	speaker
	dev  hw.Device
	zone hw.Zone

	up   chan struct{}  // closed when the connection is up
	down chan hw.Reason // why the connection is over
	ends chan struct{}  // an element for each queue's end
}

// Complete implements [hw.Sink].
func (s *stranger) Complete(wcs []hw.WC) {
	s.speaker.Complete(wcs)
	for _, wc := range wcs {
		if wc.Op == hw.OpEnd {
			s.ends <- struct{}{}
		}
	}
}

// Established implements [hw.Facts].
func (s *stranger) Established(hw.ConnInfo) { close(s.up) }

// Refused implements [hw.Facts].
func (s *stranger) Refused(why hw.Reason, _ []byte, cause *hw.Cause) {
	s.t.Errorf("refused: %v: %v", why, cause)
}

// Down implements [hw.Facts].
func (s *stranger) Down(why hw.Reason, cause *hw.Cause) {
	if cause != nil {
		s.t.Logf("%v: %v", why, cause)
	}
	s.down <- why
}

// strangerAddress is the guest's.
const strangerAddress = "10.0.2.15"

func newStranger(t testing.TB, params map[string]string) *stranger {
	t.Helper()
	s := &stranger{up: make(chan struct{}), down: make(chan hw.Reason, 1), ends: make(chan struct{}, 2)}
	s.t = t
	var err error
	s.dev, err = iwarp.New(iwarp.Config{Params: params}).Open(hw.OpenConfig{Device: strangerAddress})
	require.NoError(t, err)
	s.zone, err = s.dev.NewZone()
	require.NoError(t, err)
	s.qp, err = s.dev.NewQP(hw.QPConfig{
		Zone: s.zone, SendSink: s, RecvSink: s, Facts: s, SendDepth: benchDepth, RecvDepth: benchDepth,
		SendSegments: 2, RecvSegments: 2, ReadsIn: 4, ReadsOut: 4, SendEnd: sendEnd, RecvEnd: recvEnd,
	})
	require.NoError(t, err)
	s.memory = &memory{buf: pages(t, speech)}
	s.MR, err = s.dev.Register(s.zone, s.buf, hw.AllPrivileges)
	require.NoError(t, err)
	return s
}

// accept accepts the connection that begin asks for, and returns its private data.
func (s *stranger) accept(begin func(port uint64)) []byte {
	s.t.Helper()
	requests := make(chan hw.Request, 1)
	l, err := s.dev.Listen(hw.ListenConfig{OnRequest: func(r hw.Request) bool { requests <- r; return true }})
	require.NoError(s.t, err)
	begin(l.Qual())
	r := awaited(s.t, "a request", requests)
	private, _ := r.Private()
	require.NoError(s.t, r.Accept(s.qp, nil))
	awaited(s.t, "Established", s.up)
	require.NoError(s.t, l.Close())
	return private
}

// awaited is what comes from a channel.
func awaited[T any](t testing.TB, what string, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(patience):
		require.Fail(t, "waited in vain", what)
	}
	return got
}

// leave breaks the connection and closes all.
func (s *stranger) leave() {
	s.t.Helper()
	s.qp.Break(false)
	for range 2 {
		awaited(s.t, "the end of a queue", s.ends)
	}
	require.NoError(s.t, s.Deregister())
	require.NoError(s.t, s.qp.Close())
	require.NoError(s.t, s.zone.Close())
	require.NoError(s.t, s.dev.Close())
}

// keptAlive is the parameter keepalive of the tests below.
const keptAlive = 3 * time.Second

// strangerToProcess is an end on hw/iwarp that another process has connected to, that
// process, and memory of its.
func strangerToProcess(t *testing.T) (*stranger, *exec.Cmd, far) {
	t.Helper()
	s := newStranger(t, map[string]string{"keepalive": keptAlive.String(), "linger": "100ms"})
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := command(t, self)
	s.listen()
	private := s.accept(func(port uint64) {
		cmd.Env = append(os.Environ(), peerPort+"="+strconv.FormatUint(port, 10))
		require.NoError(t, cmd.Start())
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return s, cmd, far{binary.BigEndian.Uint64(private), binary.BigEndian.Uint32(private[8:])}
}

// send posts a message of no octets.
func (s *stranger) send() {
	n, err := s.qp.PostSend([]hw.SendWR{{Op: hw.OpSend}})
	require.NoError(s.t, err)
	require.Equal(s.t, 1, n)
}

// A process that is stopped is not noticed: nothing can tell it from one that has nothing to say.
func TestWhatTCPTellsOfAPeerOnSiwThatIsGone(t *testing.T) {
	if !onSIW(t) {
		return
	}
	t.Run("the kernel of a process that is killed closes its connection", func(t *testing.T) {
		s, peer, _ := strangerToProcess(t)
		require.NoError(t, peer.Process.Kill())
		begin := time.Now()
		t.Log(awaited(t, "Down", s.down), time.Since(begin))
		s.leave()
	})
	for _, busy := range []bool{false, true} {
		name := "a host that is gone is noticed within the time keepalive"
		if busy {
			name += ", with messages on their way"
		}
		t.Run(name, func(t *testing.T) {
			s, _, _ := strangerToProcess(t)
			require.NoError(t, command(t, "tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "100%").Run())
			defer func() {
				require.NoError(t, command(t, "tc", "qdisc", "del", "dev", "lo", "root").Run())
			}()
			begin := time.Now()
			if busy {
				s.send()
			}
			assert.Equal(t, hw.ReasonBroken, awaited(t, "Down", s.down))
			t.Log(time.Since(begin))
			s.leave()
		})
	}
	t.Run("the kernel of a process that is stopped answers for it", func(t *testing.T) {
		s, peer, its := strangerToProcess(t)
		require.NoError(t, peer.Process.Signal(syscall.SIGSTOP))
		at := hw.SGE{Addr: s.addr(), Len: 1, LKey: s.LKey()}
		require.True(t, s.post(hw.SendWR{Op: hw.OpRead, SGL: []hw.SGE{at}, RKey: its.rkey, RemoteAddr: its.addr}))
		select {
		case why := <-s.down:
			assert.Fail(t, "the connection ended", why.String())
		case <-time.After(2 * keptAlive):
		}
		assert.EqualValues(t, 1, s.done.Load(), "the read is answered")
		s.send() // for which the process has no receive
		assert.Equal(t, hw.ReasonBroken, awaited(t, "Down", s.down))
		s.leave()
	})
}
