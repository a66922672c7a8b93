//go:build guest

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// killedBound is how long a peer that is killed may stay unnoticed: the time keepalive and seven
// times 0.13 s, on a machine ten times slower.
const killedBound = 15 * time.Second

// together are a program of ours and the C program, as peers.
type together struct {
	*options
	peer *exec.Cmd
	said *bytes.Buffer // by the peer
	s    *session
	ia   *dat.IA
}

// meetTheirs lets the C program of a test and this program meet. Ours probes its peer if keepalive
// is not 0.
func meetTheirs(t *testing.T, test string, client bool, keepalive string) *together {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
	t.Cleanup(cancel)
	guestPort++
	const size, endless = 4096, 1_000_000
	w := &together{options: ourOptions(t, test, size, endless, "")}
	w.Param = map[string]string{"keepalive": keepalive, "ack_timeout": "15"}
	var at []string
	if client {
		w.Host = guestAddress
	} else {
		at = []string{guestAddress}
	}
	w.peer, w.said = theirs(ctx, t, test, size, endless, at...)
	var err error
	w.ia, err = dat.Open(ctx, w.Provider, dat.WithParams(w.Param))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.ia.Close()) })
	if client {
		require.NoError(t, w.peer.Start())
		awaitPort(t, guestPort)
	}
	w.s, err = meet(ctx, w.options, io.Discard, func(string) { err = w.peer.Start() })
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.s.Close() })
	return w
}

// kill kills the C program.
func (w *together) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, w.peer.Process.Kill())
	require.ErrorContains(t, w.peer.Wait(), "killed", w.said)
}

// hears checks that a connection ends with a word about its peer's silence.
func hears(t *testing.T, c *dat.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), killedBound)
	defer cancel()
	began := time.Now()
	for {
		b, err := c.Receive(ctx)
		if err != nil {
			t.Log(time.Since(began), err)
			require.ErrorContains(t, err, "no answer, so the peer is gone")
			return
		}
		c.Release(b) // it came before the end
	}
}

func TestOurEndHearsThatPerftestIsKilled(t *testing.T) {
	for name, c := range map[string]struct{ client, busy bool }{
		"with messages under way":                 {client: true, busy: true},
		"with nothing under way":                  {client: true},
		"while it sends, and this end sends none": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := meetTheirs(t, "send_bw", c.client, "200ms")
			p := &perf{o: w.options, s: w.s}
			defer func() { require.NoError(t, p.close()) }()
			require.NoError(t, p.connect(t.Context(), w.ia, io.Discard))
			require.NoError(t, p.meet())
			only := p.links[0]
			one := p.request(only, w.Size)
			if !c.client {
				b, err := only.c.Receive(t.Context())
				require.NoError(t, err)
				only.c.Release(b)
			} else {
				require.NoError(t, only.c.Do(t.Context(), one, one))
			}
			if !c.busy {
				w.kill(t)
				hears(t, only.c)
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), killedBound)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- p.stream(ctx, only, w.Size) }()
			w.kill(t)
			require.ErrorContains(t, <-ended, "no answer, so the peer is gone")
		})
	}
}

// ibv_rc_pingpong's queue pair refuses every write, and so every probe.
func TestOurNextMessageShowsThatPingpongIsKilled(t *testing.T) {
	w := meetTheirs(t, "pingpong", true, "0")
	g := &game{o: w.options}
	defer func() { require.NoError(t, g.close()) }()
	require.NoError(t, g.connect(t.Context(), w.ia, w.s, io.Discard))
	w.kill(t)
	require.NoError(t, g.conns[0].SendBytes(make([]byte, w.Size)))
	hears(t, g.conns[0])
}

// Nobody probes here, and retries take half a minute: the session's end is what tells.
func TestOurProgramHearsOfAKilledPerftestByItsSession(t *testing.T) {
	for _, r := range []struct {
		test, more string
		client     bool
	}{
		{test: "send_bw"},
		{test: "send_bw", client: true, more: "-q 2"},
		{test: "send_bw", more: "-b"},
		{test: "send_lat"},
		{test: "send_lat", client: true},
		{test: "write_bw"},
		{test: "write_bw", client: true, more: "-b"},
		{test: "write_lat"},
		{test: "write_lat", client: true},
		{test: "read_bw", client: true},
		{test: "read_lat"},
	} {
		t.Run(fmt.Sprintf("%s %s, ours the client: %t", r.test, r.more, r.client), func(t *testing.T) {
			const size, endless = 4096, 1_000_000
			ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
			defer cancel()
			guestPort++
			o := ourOptions(t, r.test, size, endless, r.more)
			o.Param = map[string]string{"keepalive": "0", "ack_timeout": "20"}
			more := strings.Fields(r.more)
			if r.client {
				o.Host = guestAddress
			} else {
				more = append(more, guestAddress)
			}
			peer, said := theirs(ctx, t, r.test, size, endless, more...)
			out := &heard{awaits: "remote address", sign: make(chan struct{})}
			ready, ended := make(chan struct{}), make(chan error, 1)
			if r.client {
				require.NoError(t, peer.Start())
				awaitPort(t, guestPort)
			}
			go func() { ended <- run(ctx, o, out, func(string) { close(ready) }) }()
			if !r.client {
				<-ready
				require.NoError(t, peer.Start())
			}
			select {
			case <-out.sign:
			case err := <-ended:
				require.NoError(t, err, said)
			}
			before := packets(t) // probes are off, and the two exchange none before the traffic
			require.Eventually(t, func() bool { return packets(t) > before+100 }, guestPatience, 10*time.Millisecond)
			require.NoError(t, peer.Process.Kill())
			require.ErrorContains(t, peer.Wait(), "killed", said)
			began := time.Now()
			err := <-ended
			t.Log(time.Since(began), err)
			require.ErrorIs(t, err, errGone)
			assert.Less(t, time.Since(began), killedBound)
		})
	}
}

// heard is an output that closes sign at the first text that it awaits.
type heard struct {
	awaits string
	sign   chan struct{}
	once   sync.Once
}

func (h *heard) Write(b []byte) (int, error) {
	if strings.Contains(string(b), h.awaits) {
		h.once.Do(func() { close(h.sign) })
	}
	return len(b), nil
}

// packets is how many packets the device has sent.
func packets(t *testing.T) int {
	text, err := os.ReadFile("/sys/class/infiniband/" + os.Getenv("GODAT_GUEST_DEVICE") + "/ports/1/hw_counters/sent_pkts")
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return n
}
