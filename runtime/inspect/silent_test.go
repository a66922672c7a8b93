package inspect

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw/iwarp"
	dat "godat/runtime"
)

// wire is a network whose connections are pipes. While it is stopped, nothing comes through, as if
// both peers were.
type wire struct {
	incoming chan net.Conn
	closed   chan struct{}
	runs     chan struct{} // has a token while the wire runs
}

func (w *wire) stop() { <-w.runs }
func (w *wire) run()  { w.runs <- struct{}{} }

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.incoming:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error {
	close(w.closed)
	return nil
}

func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7000} }

func (w *wire) dial(context.Context, string) (net.Conn, error) {
	client, here := net.Pipe()
	server, there := net.Pipe()
	go w.carry(here, there)
	go w.carry(there, here)
	w.incoming <- server
	return client, nil
}

func (w *wire) carry(from, to net.Conn) {
	defer to.Close()
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		w.stop()
		w.run()
		if _, err = to.Write(b[:n]); err != nil {
			return
		}
	}
}

// over returns an adapter and a listener on a wire.
func (w *wire) over(t *testing.T) *rig {
	device := iwarp.New(iwarp.Config{
		Address: "10.0.0.1", Dial: w.dial, Listen: func(string) (net.Listener, error) { return w, nil },
	})
	ia, err := dat.Open(t.Context(), "iwarp", dat.WithProvider(device), dat.WithParams(map[string]string{"keepalive": "80s", "linger": "1s"}))
	require.NoError(t, err)
	ln, err := ia.Listen(t.Context(), "", dat.ConnConfig{Conns: 4})
	require.NoError(t, err)
	return &rig{t, ia, ln, New(ia)}
}

func newWire() *wire {
	w := &wire{make(chan net.Conn), make(chan struct{}), make(chan struct{}, 1)}
	w.run()
	return w
}

func TestSixHundredPeersThatSayNothingAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		r := w.over(t)
		var peers []net.Conn
		for range 600 {
			peer, here := net.Pipe()
			w.incoming <- here
			peers = append(peers, peer)
		}
		r.wrong("silent", r.ln.String(), " TCP connections have brought no request to connect yet; the device drops them in time, and this program has nothing to do")
		for _, p := range peers {
			require.NoError(t, p.Close())
		}
		require.NoError(t, r.ia.Close())
	})
}

func TestAnIdlePeerThatIsStoppedIsNamedBeforeTheConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		r := w.over(t)
		client, server := r.join()
		for range 10 {
			time.Sleep(15 * time.Second)
			synctest.Wait()
			require.Empty(t, r.ask("?format=json").Troubles, "it is idle, and answers the device")
		}
		w.stop()
		said := []trouble{}
		for len(said) == 0 {
			time.Sleep(leastAge)
			synctest.Wait()
			said = r.ask("?format=json").Troubles
		}
		assert.Equal(t, "silent peer", said[0].Kind)
		assert.Contains(t, []string{client.String(), server.String()}, said[0].Name, "both ends are here; one looks first")
		assert.Contains(t, said[0].Text, " for 20 s: its process is stopped or stuck, or its host or the network between is gone; if its page answers, it is the network")
		one := client
		if said[0].Name == server.String() {
			one = server
		}
		assert.Contains(t, said[0].Text, fmt.Sprintf("the peer %v has not answered for", one.RemoteAddr()))
		w.run()
		time.Sleep(20 * time.Second) // each end looks once
		synctest.Wait()
		assert.Empty(t, r.ask("?format=json").Troubles, "the peer goes on")
		assert.Equal(t, ep.Connected, client.Endpoint.State())
		require.NoError(t, r.ia.Close())
	})
}
