//go:build guest

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// These run in the guest, on soft-RoCE, against the C programs of ibverbs-utils and perftest:
// see hw/ibv/test-guest.sh.

const (
	guestAddress  = "10.0.2.15"
	guestPatience = 3 * time.Minute
)

// guestRuns are the tests, and what the C program gets for each besides size and count.
var guestRuns = []struct {
	test        string
	size, count int
	more        string
}{
	{test: "pingpong", size: 1, count: 1000, more: "-c"},
	{test: "pingpong", size: 4096, count: 1000, more: "-c -e"},
	{test: "pingpong", size: 65536, count: 200, more: "-c -r 20"},
	{test: "pingpong", size: 1 << 20, count: 20, more: "-c -m 512 -r 4"},
	{test: "srq_pingpong", size: 4096, count: 400, more: "-c -q 4"},
	{test: "send_lat", size: 2, count: 500},
	{test: "send_lat", size: 5000, count: 100, more: "-e"},
	{test: "send_bw", size: 65536, count: 200},
	{test: "write_bw", size: 65536, count: 200},
	{test: "read_bw", size: 65536, count: 200},
	{test: "atomic_bw", size: 8, count: 200},
}

// guestPort is the port of the next test.
var guestPort = 18600

// theirs is the C program of a test; the end of ctx kills it.
func theirs(ctx context.Context, t *testing.T, test string, size, count int, more ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	device := os.Getenv("GODAT_GUEST_DEVICE")
	args := []string{"-d", device, "-p", strconv.Itoa(guestPort), "-n", strconv.Itoa(count)}
	program := "ib_" + test
	switch test {
	case "pingpong":
		program = "ibv_rc_pingpong"
	case "srq_pingpong":
		program = "ibv_srq_pingpong"
	}
	gid, key := gidIndex(t, device), "-x"
	if strings.HasSuffix(test, "pingpong") {
		key = "-g"
	}
	args = append(args, key, gid)
	if test != "atomic_bw" {
		args = append(args, "-s", strconv.Itoa(size))
	}
	cmd := exec.CommandContext(ctx, program, append(args, more...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// gidIndex is the index of the GID of guestAddress.
func gidIndex(t *testing.T, device string) string {
	t.Helper()
	require.NotEmpty(t, device, "these tests run in the guest: see hw/ibv/test-guest.sh")
	names, err := filepath.Glob("/sys/class/infiniband/" + device + "/ports/1/gids/*")
	require.NoError(t, err)
	for _, name := range names {
		if text, _ := os.ReadFile(name); strings.HasSuffix(strings.TrimSpace(string(text)), ":ffff:0a00:020f") {
			return filepath.Base(name)
		}
	}
	require.Fail(t, "no GID of "+guestAddress)
	return ""
}

// ourOptions are the options of this program.
func ourOptions(t *testing.T, test string, size, count int, more string) *options {
	o := command(t, options{Test: test, Size: size, Count: count, Pairs: 4, Reads: 4, Provider: "ibv:" + os.Getenv("GODAT_GUEST_DEVICE")})
	o.Port, o.Check, o.Timeout = uint16(guestPort), strings.Contains(more, "-c"), guestPatience
	if _, mtu, ok := strings.Cut(more, "-m "); ok {
		_, err := fmt.Sscan(mtu, &o.MTU)
		require.NoError(t, err)
	}
	return o
}

func TestOurServerServesTheCProgram(t *testing.T) {
	for _, r := range guestRuns {
		t.Run(fmt.Sprintf("%s %d %s", r.test, r.size, r.more), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
			defer cancel()
			guestPort++
			cmd, theirOut := theirs(ctx, t, r.test, r.size, r.count, append(strings.Fields(r.more), guestAddress)...)
			var out bytes.Buffer
			ready, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- run(ctx, ourOptions(t, r.test, r.size, r.count, r.more), &out, func(string) { close(ready) })
			}()
			<-ready
			require.NoError(t, cmd.Run(), theirOut)
			require.NoError(t, <-ended)
			assert.Contains(t, out.String(), strconv.Itoa(r.count)+" iters in ")
		})
	}
}

func TestOurClientIsServedByTheCProgram(t *testing.T) {
	for _, r := range guestRuns {
		t.Run(fmt.Sprintf("%s %d %s", r.test, r.size, r.more), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
			defer cancel()
			guestPort++
			cmd, theirOut := theirs(ctx, t, r.test, r.size, r.count, strings.Fields(r.more)...)
			require.NoError(t, cmd.Start())
			awaitPort(t, guestPort)
			o := ourOptions(t, r.test, r.size, r.count, r.more)
			o.Host = guestAddress
			var out bytes.Buffer
			err := run(ctx, o, &out, nil)
			if err != nil {
				cancel()
			}
			theirErr := cmd.Wait()
			require.NoError(t, err, theirOut)
			require.NoError(t, theirErr, theirOut)
			assert.NotContains(t, theirOut.String(), "invalid data")
			assert.Contains(t, out.String(), strconv.Itoa(r.count)+" iters in ")
		})
	}
}

// awaitPort waits until a server listens. To connect would be to be its client.
func awaitPort(t *testing.T, port int) {
	t.Helper()
	listens := fmt.Sprintf(":%04X 00000000:0000 0A", port)
	require.Eventually(t, func() bool {
		table, err := os.ReadFile("/proc/net/tcp")
		return assert.NoError(t, err) && strings.Contains(string(table), listens)
	}, guestPatience, 20*time.Millisecond)
}

func TestAPeerWithoutAGIDIsToldToGiveOne(t *testing.T) {
	guestPort++
	o := ourOptions(t, "pingpong", 64, 1, "")
	ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ibv_rc_pingpong", "-d", os.Getenv("GODAT_GUEST_DEVICE"), "-p", strconv.Itoa(guestPort), guestAddress)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- run(ctx, o, &bytes.Buffer{}, func(string) { close(ready) }) }()
	<-ready
	require.Error(t, cmd.Run())
	require.ErrorContains(t, <-ended, "start ibv_rc_pingpong with -g INDEX, of a GID like "+guestAddress)
}

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
	w.s, err = meet(ctx, w.options, func(string) { err = w.peer.Start() })
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
			one := dat.DTO{Op: dat.OpSend, Segment: p.region.Segment(0, w.Size)}
			if !c.client {
				b, err := p.c.Receive(t.Context())
				require.NoError(t, err)
				p.c.Release(b)
			} else {
				require.NoError(t, p.c.Do(t.Context(), one, one))
			}
			if !c.busy {
				w.kill(t)
				hears(t, p.c)
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), killedBound)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- p.stream(ctx) }()
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
