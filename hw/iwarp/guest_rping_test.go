//go:build guest

package iwarp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// These tests run in the guest of check/guest with a siw device, and talk to C
// rping over the kernel's soft-iWARP: see test-guest.sh.

const (
	guestAddress = "10.0.2.15" // siw has no loopback device
	rpingPort    = 7174
	pings        = 3
	infoSize     = 16 // rping's description of a buffer: address, key, size
)

func init() { patience = time.Minute } // the processor is emulated

// captures is the directory of the traces.
var captures = os.Getenv("GODAT_CAPTURES")

// rping starts the C program. As a server it runs for a whole test, which takes minutes
// on a busy host.
func rping(t *testing.T, args ...string) (program *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	program = exec.CommandContext(ctx, "rping", append(args, "-a", guestAddress)...)
	out = new(bytes.Buffer)
	program.Stdout, program.Stderr = out, out
	require.NoError(t, program.Start())
	t.Cleanup(func() {
		cancel()
		_ = program.Wait() // a second time it is an error, or the server was ended
	})
	return program, out
}

// guestNode is a device in the guest. If capture is set, it is the name of the file for
// the device's packets.
func guestNode(t *testing.T, params map[string]string, capture string) *node {
	t.Helper()
	cfg := Config{}
	if capture != "" {
		cfg.Trace = func(net.Addr, net.Addr) io.WriteCloser {
			f, err := os.Create(filepath.Join(captures, capture+".pcapng"))
			assert.NoError(t, err)
			return f
		}
	}
	dev, err := New(cfg).Open(hw.OpenConfig{Device: guestAddress, Params: params})
	require.NoError(t, err)
	zone, err := dev.NewZone()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, zone.Close())
		require.NoError(t, dev.Close())
	})
	return &node{tb: t, dev: dev, zone: zone}
}

// pinger is this package's end of rping: a message each way, and the data.
type pinger struct {
	*peer
	in, out, data *memory
	ins, outs     int // completions seen
}

func newPinger(n *node, size int) *pinger {
	p := &pinger{
		peer: n.peer(), in: n.memory(infoSize, hw.LocalWrite), out: n.memory(infoSize, hw.LocalRead),
		data: n.memory(size, hw.AllPrivileges),
	}
	p.recv(p.in.sge(0, infoSize))
	return p
}

// tell posts a message and waits for its completion.
func (p *pinger) tell(wr hw.SendWR) {
	p.tb.Helper()
	wr.Flags |= hw.WRSignaled
	p.post(wr)
	wc := p.sent(p.outs)
	require.Equal(p.tb, hw.StatusSuccess, wc.Status, "%v", wr.Op)
	p.outs++
}

// offer tells the peer where the data is.
func (p *pinger) offer() {
	p.tb.Helper()
	binary.BigEndian.PutUint64(p.out.buf, p.data.base)
	binary.BigEndian.PutUint32(p.out.buf[8:], p.data.RKey())
	binary.BigEndian.PutUint32(p.out.buf[12:], uint32(len(p.data.buf)))
	p.tell(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{p.out.sge(0, infoSize)}})
}

// hear waits for a message. It returns false at the end of the connection.
func (p *pinger) hear() bool {
	p.tb.Helper()
	wc := p.received(p.ins)
	p.ins++
	if wc.Status == hw.StatusFlushed {
		return false
	}
	require.Equal(p.tb, hw.StatusSuccess, wc.Status)
	return true
}

// far is a request on the peer's data, whose place the last message has told.
func (p *pinger) far(op hw.Op) hw.SendWR {
	n := binary.BigEndian.Uint32(p.in.buf[12:])
	require.LessOrEqual(p.tb, int(n), len(p.data.buf))
	return hw.SendWR{
		Op: op, SGL: []hw.SGE{p.data.sge(0, int(n))},
		RemoteAddr: binary.BigEndian.Uint64(p.in.buf), RKey: binary.BigEndian.Uint32(p.in.buf[8:]),
	}
}

// pingPattern is the data of a ping.
func pingPattern(b []byte, ping int) {
	n := copy(b, fmt.Sprintf("rdma-ping-%d: ", ping))
	for i := n; i < len(b); i++ {
		b[i] = byte('A' + (ping+i-n)%('z'-'A'+1))
	}
	b[len(b)-1] = 0
}

// client pings the C server.
func (p *pinger) client() {
	t := p.tb
	want := make([]byte, len(p.data.buf))
	for i := range pings {
		pingPattern(want, i)
		copy(p.data.buf, want)
		for _, offered := range []string{"to be read", "to be written"} {
			p.recvNext()
			p.offer()
			require.True(t, p.hear(), offered)
			if offered == "to be read" {
				clear(p.data.buf) // so that what is checked has come from the peer
			}
		}
		require.Equal(t, string(want), string(p.data.buf))
	}
}

// recvNext posts a receive for the answer, unless it is the one posted at the start.
func (p *pinger) recvNext() {
	if p.ins > 0 {
		p.recv(p.in.sge(0, infoSize))
	}
}

// server answers the C client until the client closes the connection.
func (p *pinger) server() (served int) {
	for {
		if !p.hear() {
			return served
		}
		read := p.far(hw.OpRead)
		p.recv(p.in.sge(0, infoSize))
		p.tell(read)
		p.tell(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{p.out.sge(0, infoSize)}})
		if !p.hear() {
			return served
		}
		write := p.far(hw.OpWrite)
		p.recv(p.in.sge(0, infoSize))
		p.tell(write)
		p.tell(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{p.out.sge(0, infoSize)}})
		served++
	}
}

var rpingSizes = []int{64, 1000, 4096, 65535}

// ways are the settings that change the octets on the wire.
func ways(client bool) (all []map[string]string) {
	for _, crc := range []string{"true", "false"} {
		for _, p2p := range []string{"true", "false"} {
			if client || p2p == "true" { // siw never asks for it
				all = append(all, map[string]string{"crc": crc, "peer2peer": p2p, "linger": "5s", "mpa": "30s"})
			}
		}
	}
	return all
}

func TestOurClientPingsTheCServer(t *testing.T) {
	server, _ := rping(t, "-s", "-P", "-S", "65535")
	awaitListener(t, server, rpingPort)
	for _, params := range ways(true) {
		for _, size := range rpingSizes {
			for _, traced := range []bool{false, true} {
				if traced && size != 4096 {
					continue
				}
				name := fmt.Sprintf("client,crc=%s,p2p=%s,size=%d,traced=%v", params["crc"], params["peer2peer"], size, traced)
				t.Run(name, func(t *testing.T) {
					n := guestNode(t, params, captureName(traced, name))
					p := newPinger(n, size)
					require.NoError(t, p.qp.Connect(hw.ConnectConfig{Addr: guestAddress, Qual: rpingPort}))
					p.awaitUp()
					p.client()
					p.end(true)
				})
			}
		}
	}
}

func TestTheCClientPingsOurServer(t *testing.T) {
	for _, params := range ways(false) {
		for _, size := range rpingSizes {
			for _, traced := range []bool{false, true} {
				if traced && size != 4096 {
					continue
				}
				name := fmt.Sprintf("server,crc=%s,size=%d,traced=%v", params["crc"], size, traced)
				t.Run(name, func(t *testing.T) {
					n := guestNode(t, params, captureName(traced, name))
					p := newPinger(n, size)
					ln, requests := n.listen(hw.ListenConfig{Qual: rpingPort})
					client, said := rping(t, "-c", "-V", "-C", strconv.Itoa(pings), "-S", strconv.Itoa(size))
					var r hw.Request
					select {
					case r = <-requests:
					case <-time.After(time.Minute):
						require.Fail(t, "no request", said.String())
					}
					require.NoError(t, r.Accept(p.qp, nil))
					p.awaitUp()
					assert.Equal(t, pings, p.server())
					assert.NoError(t, client.Wait(), "rping: %v", said)
					p.awaitDown()
					assert.Equal(t, hw.ReasonPeer, p.down)
					require.NoError(t, ln.Close())
				})
			}
		}
	}
}

func captureName(traced bool, name string) string {
	if traced {
		return name
	}
	return ""
}

func TestSiwReceivesAReject(t *testing.T) {
	n := guestNode(t, nil, "")
	_, requests := n.listen(hw.ListenConfig{Qual: rpingPort})
	client, said := rping(t, "-c", "-C", "1")
	select {
	case r := <-requests:
		require.NoError(t, r.Reject([]byte("no")))
	case <-time.After(time.Minute):
		require.Fail(t, "no request", said.String())
	}
	require.Error(t, client.Wait())
	assert.Contains(t, said.String(), "REJECTED")
}

// siw as initiator does not insert markers, and refuses a reply that asks for them.
func TestSiwDoesNotTakeAReplyThatAsksForMarkers(t *testing.T) {
	n := guestNode(t, map[string]string{"markers": "true", "grace": "10s"}, "")
	p := n.peer()
	_, requests := n.listen(hw.ListenConfig{Qual: rpingPort})
	client, said := rping(t, "-c", "-C", "1")
	select {
	case r := <-requests:
		require.NoError(t, r.Accept(p.qp, nil))
	case <-time.After(time.Minute):
		require.Fail(t, "no request", said.String())
	}
	// It closes without a Terminate, as an initiator that is done at once does.
	p.awaitUp()
	p.awaitDown()
	assert.Equal(t, hw.ReasonPeer, p.down)
	require.Error(t, client.Wait())
	assert.Contains(t, said.String(), "REJECTED")
}

// siw's Terminates are read with the right meaning.
func TestARefusalOfSiwHasItsStatus(t *testing.T) {
	server, _ := rping(t, "-s", "-P", "-S", "65535")
	awaitListener(t, server, rpingPort)
	connect := func(t *testing.T, params map[string]string) *pinger {
		n := guestNode(t, params, "")
		p := newPinger(n, 64)
		require.NoError(t, p.qp.Connect(hw.ConnectConfig{Addr: guestAddress, Qual: rpingPort}))
		return p
	}
	t.Run("markers", func(t *testing.T) {
		p := connect(t, map[string]string{"markers": "true"})
		p.await("refusal", func() bool { return p.refused != 0 })
		assert.Equal(t, hw.ReasonPeerRejected, p.refused)
	})
	t.Run("private data that it has no room for", func(t *testing.T) {
		n := guestNode(t, map[string]string{"private": "508", "fallback": "false"}, "")
		p := newPinger(n, 64)
		cfg := hw.ConnectConfig{Addr: guestAddress, Qual: rpingPort, Private: make([]byte, 300)}
		require.NoError(t, p.qp.Connect(cfg))
		p.await("refusal", func() bool { return p.refused != 0 })
		assert.Equal(t, hw.ReasonRejected, p.refused, "it hangs up")
	})
	t.Run("the most private data that it has room for", func(t *testing.T) {
		n := guestNode(t, nil, "")
		p := newPinger(n, 64)
		cfg := hw.ConnectConfig{Addr: guestAddress, Qual: rpingPort, Private: make([]byte, 248)}
		require.NoError(t, p.qp.Connect(cfg))
		p.awaitUp()
	})
	t.Run("nothing of revision 1, but without reads", func(t *testing.T) {
		p := connect(t, map[string]string{"revision": "1"})
		p.awaitUp()
		p.offer() // which the server wants to read, and can't
		p.awaitDown()
	})
	t.Run("a read with a wrong key", func(t *testing.T) {
		p := connect(t, nil)
		p.awaitUp()
		p.post(hw.SendWR{Op: hw.OpRead, SGL: []hw.SGE{p.data.sge(0, 8)}, RKey: 0x12345600, RemoteAddr: 1})
		assert.Equal(t, hw.StatusRemoteAccess, p.sent(0).Status)
		p.awaitDown()
		assert.Equal(t, hw.ReasonBroken, p.down)
	})
	t.Run("a write with a wrong key", func(t *testing.T) {
		p := connect(t, nil)
		p.awaitUp()
		p.post(hw.SendWR{Op: hw.OpWrite, SGL: []hw.SGE{p.data.sge(0, 8)}, RKey: 0x12345600, RemoteAddr: 1})
		p.awaitDown()
		assert.Equal(t, hw.ReasonBroken, p.down)
	})
	t.Run("a message too long", func(t *testing.T) {
		p := connect(t, nil)
		p.awaitUp()
		p.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{p.data.sge(0, 64)}})
		p.awaitDown()
		assert.Equal(t, hw.ReasonBroken, p.down)
	})
}
