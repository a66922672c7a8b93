//go:build guest

package ibv

import (
	"encoding/binary"
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

const (
	// peerPort is the environment variable that makes a process a peer. Its value is
	// the port to connect to.
	peerPort = "GODAT_GUEST_PEER"
	// killsWanted is the environment variable for the number of peers to kill.
	killsWanted  = "GODAT_GUEST_KILLS"
	defaultKills = 3
)

func init() {
	tests := beforeTests
	beforeTests = func() {
		if port, err := strconv.ParseUint(os.Getenv(peerPort), 10, 16); err == nil {
			bePeer(port)
		}
		tests()
	}
}

// bePeer connects, with the address and the key of its memory as private data, and sends
// one message, since on iWARP the initiator must send first. Then it posts nothing and
// waits to be killed.
func bePeer(port uint64) {
	t := &testing.T{}
	b := &bench{t: t}
	e := b.open(tailed, nil)
	b.ends[0] = e
	at := e.target()
	private := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, at.addr), at.rkey)
	err := e.qp.Connect(hw.ConnectConfig{Addr: e.dev.Attr().Address, Qual: port, Private: private})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	e.until("Established", func() bool { return e.info != nil })
	e.send(hw.SendWR{Op: hw.OpSend})
	select {}
}

// newBenchWithProcess makes a bench whose second end is another process. It returns the
// first end, that process and the process's memory.
func newBenchWithProcess(t *testing.T) (*benchEnd, *exec.Cmd, far) {
	t.Helper()
	b := &bench{t: t}
	e := b.open(tailed, patiently)
	b.ends[0] = e
	requests := make(chan hw.Request, 1)
	l, err := e.dev.Listen(hw.ListenConfig{OnRequest: func(r hw.Request) bool { requests <- r; return true }})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := command(t, self)
	cmd.Env = append(os.Environ(), peerPort+"="+strconv.FormatUint(l.Qual(), 10))
	require.NoError(t, cmd.Start())
	const greeting = 500
	e.recv(greeting)
	var from far
	select {
	case req := <-requests:
		private, _ := req.Private()
		from = far{binary.BigEndian.Uint64(private), binary.BigEndian.Uint32(private[8:])}
		require.NoError(t, req.Accept(e.qp, nil))
	case <-time.After(patience):
		require.Fail(t, "the peer's process did not connect")
	}
	require.Equal(t, hw.StatusSuccess, e.completion(greeting).Status)
	require.NoError(t, l.Close())
	return e, cmd, from
}

func TestPeerThatIsKilledIsReportedAndNothingIsLost(t *testing.T) {
	kills := defaultKills
	if s := os.Getenv(killsWanted); s != "" {
		var err error
		kills, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	for range kills {
		e, peer, from := newBenchWithProcess(t)
		e.load(from)
		require.NoError(t, peer.Process.Kill())
		e.until("Down", func() bool { return e.down != hw.ReasonNone })
		assert.Equal(t, hw.ReasonBroken, e.down)
		require.Error(t, peer.Wait())
		e.struck()
	}
}
