//go:build guest

package ibv

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// pairParams make a silent end show after keepalive, and seven times 0.13 s.
var pairParams = map[string]string{"keepalive": "200ms", "ack_timeout": "15"}

// pairBound is how long a silent end takes to show, on a machine ten times slower.
const pairBound = 15 * time.Second

// pairPeer is the environment variable that makes a process the peer of a pair.
const pairPeer = "GODAT_GUEST_PAIR"

func init() {
	tests := beforeTests
	beforeTests = func() {
		if os.Getenv(pairPeer) != "" {
			if err := bePairPeer(os.Stdin, os.Stdout); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			select {} // until it is killed
		}
		tests()
	}
}

// bePairPeer prints its values and where its memory is, and pairs with the values that it reads.
func bePairPeer(in io.Reader, out io.Writer) error {
	b := &bench{t: &testing.T{}}
	e := b.open(pairParams, nil)
	b.ends[0] = e
	at := e.target()
	fmt.Fprintln(out, e.values(), at.addr, at.rkey)
	var text string
	if _, err := fmt.Fscan(in, &text); err != nil {
		return err
	}
	var peer hw.PairAddr
	if err := peer.UnmarshalText([]byte(text)); err != nil {
		return err
	}
	if err := e.pair(peer); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "paired")
	return err
}

func (e *benchEnd) values() hw.PairAddr {
	v, err := e.dev.(hw.Pairer).Local(e.qp)
	require.NoError(e.b.t, err)
	return v
}

func (e *benchEnd) pair(peer hw.PairAddr) error { return e.dev.(hw.Pairer).Pair(e.qp, peer) }

// pairWithProcess makes an end that is paired with another process. It returns the end, that
// process and its memory.
func pairWithProcess(t *testing.T) (*benchEnd, *exec.Cmd, far) {
	t.Helper()
	b := &bench{t: t}
	e := b.open(pairParams, patiently)
	b.ends[0] = e
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := command(t, self)
	cmd.Env = append(os.Environ(), pairPeer+"=1")
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var text, said string
	var from far
	_, err = fmt.Fscan(out, &text, &from.addr, &from.rkey)
	require.NoError(t, err)
	var peer hw.PairAddr
	require.NoError(t, peer.UnmarshalText([]byte(text)))
	require.NoError(t, e.pair(peer))
	_, err = fmt.Fprintln(in, e.values())
	require.NoError(t, err)
	_, err = fmt.Fscan(out, &said)
	require.NoError(t, err)
	require.Equal(t, "paired", said)
	return e, cmd, from
}

func TestAPairWhosePeerIsKilledHearsOfIt(t *testing.T) {
	if onSIW(t) {
		return
	}
	for _, busy := range []bool{true, false} {
		e, peer, from := pairWithProcess(t)
		if busy {
			e.load(from)
		}
		require.NoError(t, peer.Process.Kill())
		require.Error(t, peer.Wait())
		e.silenced("no answer")
		if busy {
			e.struck()
			continue
		}
		e.qp.Break(false)
		e.ended(0, 0)
		e.shut()
	}
}

// silenced waits for the end of a pair, and checks that the cause says why.
func (e *benchEnd) silenced(says string) {
	t := e.b.t
	t.Helper()
	began := time.Now()
	e.until("Down", func() bool { return e.down != hw.ReasonNone })
	assert.Less(t, time.Since(began), pairBound)
	assert.Equal(t, hw.ReasonBroken, e.down)
	require.Error(t, e.cause)
	assert.ErrorContains(t, e.cause, says)
}

// pairBench makes two ends that have not paired. close ends it.
func pairBench(t *testing.T) *bench {
	b := &bench{t: t}
	for i := range b.ends {
		b.ends[i] = b.open(pairParams, nil)
	}
	t.Cleanup(b.close)
	return b
}

func TestAWrongValueOfAPairIsAnErrorThatSaysSo(t *testing.T) {
	if onSIW(t) {
		return
	}
	for name, c := range map[string]struct {
		change  func(*hw.PairAddr) // of the second end's values
		refused string             // what Pair says
		says    string             // what the end of the connection says
	}{
		"number": {func(v *hw.PairAddr) { v.QPN ^= 0x5a5a5a }, "", "a number, a PSN or a GID is wrong"},
		"GID":    {func(v *hw.PairAddr) { v.GID[15] ^= 0x5a }, "the device finds no way there from GID", ""},
		"MTU":    {func(v *hw.PairAddr) { v.MTU = 256 }, "", "the two ends' MTUs differ"},
		"PSN":    {nil, "", "a number, a PSN or a GID is wrong"}, // the first end's
	} {
		t.Run(name, func(t *testing.T) {
			b := pairBench(t)
			a, z := b.ends[0], b.ends[1]
			mine, theirs := a.values(), z.values()
			if c.change == nil {
				mine.PSN = (mine.PSN - 1000) & hw.MaxPSN
			} else {
				c.change(&theirs)
			}
			require.NoError(t, z.pair(mine))
			err := a.pair(theirs)
			if c.refused != "" {
				require.ErrorIs(t, err, hw.ErrInvalidParameter)
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			from, to := a.memory(1000, hw.LocalRead), z.memory(1000, hw.RemoteWrite|hw.LocalWrite)
			a.send(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{from.sge(0, 1000)}, RKey: to.RKey(), RemoteAddr: to.addr()})
			a.silenced(c.says)
		})
	}
}

func TestAPairThatTheDeviceRefusesLastPairsAgain(t *testing.T) {
	if onSIW(t) {
		return
	}
	b := pairBench(t)
	a, z := b.ends[0], b.ends[1]
	in, out := a.memory(8, hw.LocalWrite), z.memory(8, hw.LocalRead)
	copy(out.buf, "a letter")
	a.recv(7, in.sge(0, 8))
	q := a.qp.(*queuePair)
	timeout := q.up.timeout
	q.up.timeout = 255 // no such code
	require.ErrorIs(t, a.pair(z.values()), hw.ErrInvalidParameter)
	q.up.timeout = timeout
	require.NoError(t, a.pair(z.values()))
	require.NoError(t, z.pair(a.values()))
	z.send(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{out.sge(0, 8)}})
	require.Equal(t, hw.StatusSuccess, a.completion(7).Status)
	assert.Equal(t, out.buf, in.buf)
}
