//go:build guest

package ibv

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// peerPort is the environment's word for a process that is to be a peer: the port
// to connect to.
const peerPort = "GODAT_GUEST_PEER"

// tailed devices tell a peer that leaves in order from one that is lost.
var tailed = map[string]string{"tail": "on"}

func init() {
	tests := beforeTests
	beforeTests = func() {
		if port, err := strconv.ParseUint(os.Getenv(peerPort), 10, 16); err == nil {
			bePeer(port)
		}
		tests()
	}
}

// bePeer connects, and then does nothing until it is killed: it posts no receive.
func bePeer(port uint64) {
	t := &testing.T{}
	b := &bench{t: t}
	e := b.open(tailed, nil)
	b.ends[0] = e
	if err := e.qp.Connect(hw.ConnectConfig{Addr: e.dev.Attr().Address, Qual: port}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	select {}
}

// newBenchWithProcess is a bench whose second end is another process, which is
// returned.
func newBenchWithProcess(t *testing.T) (*benchEnd, *exec.Cmd) {
	t.Helper()
	b := &bench{t: t}
	e := b.open(tailed, func(c *hw.QPConfig) { c.NotReady = time.Hour })
	b.ends[0] = e
	requests := make(chan hw.Request, 1)
	l, err := e.dev.Listen(hw.ListenConfig{OnRequest: func(r hw.Request) bool { requests <- r; return true }})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), peerPort+"="+strconv.FormatUint(l.Qual(), 10))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	require.NoError(t, cmd.Start())
	select {
	case req := <-requests:
		require.NoError(t, req.Accept(e.qp, nil))
	case <-time.After(patience):
		require.Fail(t, "the peer's process did not connect")
	}
	e.until("Established", func() bool { return e.info != nil })
	require.NoError(t, l.Close())
	return e, cmd
}

// outstanding fills both queues of an end with what waits, for receives in vain; a
// send that finds no receive waits too, where the device waits at all.
func (e *benchEnd) outstanding() (sends, recvs int) {
	e.b.t.Helper()
	for i := range benchDepth {
		e.recv(uint64(1000 + i))
	}
	if e.dev.Attr().NotReadyWait {
		for i := range benchDepth {
			e.send(hw.SendWR{ID: uint64(i), Op: hw.OpSend, Flags: hw.WRSignaled})
		}
		sends = benchDepth
	}
	var wcs [1]hw.WC
	require.Zero(e.b.t, e.poll.Poll(wcs[:]), "all of it is outstanding")
	return sends, benchDepth
}

// finish breaks the connection, sees that everything posted has completed exactly
// once, and closes all.
func (e *benchEnd) finish(sends, recvs int) {
	e.b.t.Helper()
	t := e.b.t
	e.qp.Break(false)
	ends := 0
	seen := map[uint64]int{}
	e.until("the ends of both queues", func() bool {
		for _, wc := range e.wcs {
			if wc.ID == sendEnd || wc.ID == recvEnd {
				ends++
			} else {
				seen[wc.ID]++
				assert.NotEqual(t, hw.StatusSuccess, wc.Status)
			}
		}
		e.wcs = e.wcs[:0]
		return ends == 2
	})
	assert.Len(t, seen, sends+recvs, "each completes")
	for id, n := range seen {
		assert.Equal(t, 1, n, "request %d completes once", id)
	}
	require.NoError(t, e.qp.Close())
	require.NoError(t, e.cq.Close())
	require.NoError(t, e.zone.Close())
	require.NoError(t, e.dev.Close())
}

func TestPeerThatIsKilledIsReportedAndNothingIsLost(t *testing.T) {
	for range 3 {
		e, peer := newBenchWithProcess(t)
		sends, recvs := e.outstanding()
		require.NoError(t, peer.Process.Kill())
		e.until("Down", func() bool { return e.down != hw.ReasonNone })
		assert.Equal(t, hw.ReasonBroken, e.down)
		require.Error(t, peer.Wait())
		e.finish(sends, recvs)
	}
}
