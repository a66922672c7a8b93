//go:build guest

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// These run in the guest, against dtestcm, dtestsrq and dtestx of dapl2-utils: the test is the
// other end of the C program, once as the server and once as the client. Their wire is read
// from their source.

// dtestPort is the TCP port on which a C server tells a client its address.
const dtestPort = "15828"

// end is the other end of a C program: endpoints that share dispatchers and one region.
type end struct {
	t                       *testing.T
	ctx                     context.Context
	ia                      *dat.IA
	recv, req, conn, arrive *evd.Dispatcher
	srq                     *ep.SRQ // nil: each endpoint has receives of its own
	eps                     []*ep.Endpoint
	mem                     *mem.LMR
	size                    int // bytes of a buffer of the region
	ended                   map[*ep.Endpoint]bool
}

// newEnd makes an end with n endpoints, and a region of buffers. An endpoint has depth
// receives and requests at most.
func newEnd(t *testing.T, device string, n, depth int, shared bool, size, buffers int, priv hw.Privileges) *end {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
	t.Cleanup(cancel)
	ia, err := dat.Open(ctx, device)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, ia.Close()) })
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	e := &end{t: t, ctx: ctx, ia: ia, size: size, ended: map[*ep.Endpoint]bool{}}
	for _, d := range []struct {
		to      **evd.Dispatcher
		qlen    int
		streams event.Streams
	}{{&e.recv, n * depth, event.StreamDTO}, {&e.req, n * depth, event.StreamDTO}, {&e.conn, 4 * n, event.StreamConnection}, {&e.arrive, n, event.StreamCR}} {
		*d.to, err = ia.NewDispatcher(evd.Config{QLen: d.qlen, Streams: d.streams})
		require.NoError(t, err)
	}
	if shared {
		e.srq, err = ia.NewSRQ(pz, n*depth, 1)
		require.NoError(t, err)
	}
	for range n {
		ep, err := ia.NewEndpoint(ep.Config{
			PZ: pz, Recv: e.recv, Request: e.req, Conn: e.conn, SRQ: e.srq,
			Attr: &ep.Attr{MaxRecvDTOs: depth, MaxRequestDTOs: depth, MaxRecvIOV: 1, MaxRequestIOV: 1},
		})
		require.NoError(t, err)
		e.eps = append(e.eps, ep)
	}
	e.mem, err = pz.Alloc(max(buffers, 1)*max(size, 8), priv)
	require.NoError(t, err)
	return e
}

func (e *end) listen(qual uint64) {
	psp, err := e.ia.NewPSP(ep.PSPConfig{Qual: qual, Dispatcher: e.arrive})
	require.NoError(e.t, err)
	e.t.Cleanup(func() { assert.NoError(e.t, psp.Close()) })
}

func (e *end) next(d *evd.Dispatcher) event.Event {
	e.t.Helper()
	ev, _, err := d.Wait(e.ctx, 1)
	require.NoError(e.t, err)
	return ev
}

// accept accepts one request on each endpoint: choose says on which, and what the answer is.
func (e *end) accept(choose func(private []byte) (ep int, answer []byte)) {
	e.t.Helper()
	for range e.eps {
		cr := ep.RequestOf(e.next(e.arrive))
		p, err := cr.Query()
		require.NoError(e.t, err)
		i, answer := choose(p.Private)
		require.NoError(e.t, cr.Accept(e.eps[i], answer))
	}
	e.established()
}

// connect connects each endpoint, with its private data, and returns what the server
// answered.
func (e *end) connect(qual uint64, private func(i int) []byte) map[*ep.Endpoint][]byte {
	e.t.Helper()
	for i, endpoint := range e.eps {
		require.NoError(e.t, endpoint.Connect(ep.ConnectConfig{Addr: guestAddress, Qual: qual, Private: private(i)}))
	}
	return e.established()
}

// established waits until all endpoints are connected, and returns what the server answered.
// The peer may already end one connection while another is not up yet here.
func (e *end) established() map[*ep.Endpoint][]byte {
	e.t.Helper()
	answers := map[*ep.Endpoint][]byte{}
	for len(answers) < len(e.eps) {
		ev := e.next(e.conn)
		ep := ep.Of(ev)
		if ev.Number == event.Disconnected {
			e.end(ep)
			require.Contains(e.t, answers, ep, "a connection ended before it was up")
			continue
		}
		require.Equal(e.t, event.Established, ev.Number, "%v", ev.Err())
		require.NotContains(e.t, answers, ep)
		answers[ep] = ev.Private()
	}
	return answers
}

// firstOf returns the first n bytes of private data. On InfiniBand it has a fixed length:
// zeros at its end may be padding, and are missing here.
func firstOf(private []byte, n int) []byte {
	return append(bytes.Clone(private), make([]byte, n)...)[:n]
}

// disconnect ends all connections in order; disconnected waits until the peer has.
func (e *end) disconnect() {
	e.t.Helper()
	for _, endpoint := range e.eps {
		require.NoError(e.t, endpoint.Disconnect(ep.Graceful))
	}
	e.disconnected()
}

func (e *end) disconnected() {
	e.t.Helper()
	for len(e.ended) < len(e.eps) {
		e.oneEnds()
	}
}

func (e *end) oneEnds() {
	e.t.Helper()
	ev := e.next(e.conn)
	require.Equal(e.t, event.Disconnected, ev.Number, "%v", ev.Err())
	e.end(ep.Of(ev))
}

func (e *end) end(ep *ep.Endpoint) {
	e.t.Helper()
	require.NotContains(e.t, e.ended, ep, "a connection ended twice")
	e.ended[ep] = true
}

// buffer is the memory of buffer i, and segment the same for posts.
func (e *end) buffer(i int) []byte       { return e.mem.Bytes()[i*e.size:][:e.size] }
func (e *end) segment(i int) mem.Segment { return e.mem.Segment(i*e.size, e.size) }
func (e *end) postRecv(ep *ep.Endpoint, i int) {
	e.t.Helper()
	if e.srq != nil {
		require.NoError(e.t, e.srq.PostRecv(uint64(i), e.segment(i)))
		return
	}
	require.NoError(e.t, ep.PostRecv(uint64(i), hw.Default, e.segment(i)))
}

// succeeded waits for a completion and checks it.
func (e *end) succeeded(d *evd.Dispatcher, op hw.Op, length int) event.Event {
	e.t.Helper()
	ev := e.next(d)
	require.NoError(e.t, ev.Err())
	require.Equal(e.t, op, ev.Op)
	require.EqualValues(e.t, length, ev.Length)
	return ev
}

// program is a C program that runs.
type program struct {
	t    *testing.T
	said *output
	cmd  *exec.Cmd
	done chan error
}

// start starts a C program on the guest's device.
func start(t *testing.T, name string, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
	t.Cleanup(cancel)
	p := &program{t: t, said: &output{}, done: make(chan error, 1)}
	p.cmd = exec.CommandContext(ctx, "stdbuf", append([]string{"-oL", name, "-P", theirs().device}, args...)...)
	p.cmd.Env = append(os.Environ(), "DAT_OVERRIDE="+registry(t))
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	p.cmd.WaitDelay = 10 * time.Second
	require.NoError(t, p.cmd.Start())
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("%s %q said:\n%s", name, args, p.said)
		}
	})
	return p
}

// says waits until the program has said the text.
func (p *program) says(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.said.String(), text) }, guestPatience, 50*time.Millisecond, text)
}

// ends waits until the program has ended in order, with these last words.
func (p *program) ends(words string) {
	p.t.Helper()
	select {
	case err := <-p.done:
		require.NoError(p.t, err)
	case <-time.After(guestPatience):
		p.t.Fatal("the C program does not end")
	}
	assert.Contains(p.t, p.said.String(), words)
	assert.NotRegexp(p.t, `(?i)err:|error|fail|unexpected`, p.said.String())
}

// card is what a C server writes to a client on dtestPort, and a client of dtestx to the
// server: an address, and the name by which both know the device.
func card() []byte {
	b := make([]byte, 128)
	copy(b, fmt.Sprintf("%04x:%08x:%08x:%08x:%s", 0, 0, 0, binary.LittleEndian.Uint32(net.ParseIP(guestAddress).To4()), theirs().device))
	return b
}

// handOut gives the card to the client that asks, and takes the client's if it has one.
func handOut(t *testing.T, takes bool) (wait func()) {
	t.Helper()
	l, err := net.Listen("tcp", ":"+dtestPort)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			_, err = c.Write(card())
		}
		if err == nil && takes {
			err = take(c)
		}
		done <- err
	}()
	t.Cleanup(func() { _ = l.Close() })
	return func() {
		t.Helper()
		select {
		case err := <-done:
			require.NoError(t, err)
			require.NoError(t, l.Close())
		case <-time.After(guestPatience):
			t.Fatal("no client asks for the address")
		}
	}
}

// take reads the peer's card.
func take(c net.Conn) error {
	b := make([]byte, 128)
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	if got, _, _ := bytes.Cut(b, []byte{0}); !bytes.Equal(got, bytes.TrimRight(card(), "\x00")) {
		return fmt.Errorf("the peer's card is %q", got)
	}
	return nil
}

// fetch takes the C server's card, and gives ours if the server wants one.
func fetch(t *testing.T, gives bool) {
	t.Helper()
	var c net.Conn
	require.Eventually(t, func() bool {
		var err error
		c, err = net.Dial("tcp", net.JoinHostPort(guestAddress, dtestPort))
		return err == nil
	}, guestPatience, 50*time.Millisecond)
	defer c.Close()
	require.NoError(t, take(c))
	if gives {
		_, err := c.Write(card())
		require.NoError(t, err)
	}
}

// ourDevices are the names of the guest's device in this program.
func ourDevices(t *testing.T) (all []string) {
	for _, p := range pairs(t) {
		if p[0] != theirs() {
			all = append(all, p[0].device)
		}
	}
	return all
}

const dtestConns, dtestBurst = 8, 4

// pattern is dtestcm's private data. The server's answer has each byte one higher.
func pattern(first byte) []byte {
	b := make([]byte, 48)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

func TestDtestcmConnectsManyTimesWithOurEnd(t *testing.T) {
	args := func(port int) []string {
		return []string{"-w", "-c", strconv.Itoa(dtestConns), "-b", strconv.Itoa(dtestBurst), "-p", strconv.Itoa(port)}
	}
	for _, device := range ourDevices(t) {
		t.Run("server "+device, func(t *testing.T) {
			guestPort += 100
			e := newEnd(t, device, dtestConns, 1, false, 8, 1, hw.LocalWrite)
			e.listen(uint64(guestPort))
			asked := handOut(t, false)
			c := start(t, "dtestcm", append(args(guestPort), "-h", guestAddress)...)
			asked()
			next := 0
			e.accept(func(private []byte) (int, []byte) {
				assert.Equal(t, pattern(1), firstOf(private, 48))
				next++
				return next - 1, pattern(2)
			})
			e.disconnected()
			c.ends("DAPL Connection Test Complete.")
		})
		t.Run("client "+device, func(t *testing.T) {
			guestPort += 100
			e := newEnd(t, device, dtestConns, 1, false, 8, 1, hw.LocalWrite)
			s := start(t, "dtestcm", args(guestPort)...)
			fetch(t, false)
			for _, answer := range e.connect(uint64(guestPort), func(int) []byte { return pattern(1) }) {
				assert.Equal(t, pattern(2), firstOf(answer, 48))
			}
			s.says("ALL 8 CONNECTED on Server!")
			e.disconnect()
			s.ends("DAPL Connection Test Complete.")
		})
	}
}

const srqConns, srqBurst, srqRounds, srqSize = 3, 4, 3, 1024

// ping is a message of dtestsrq, which names its endpoint and its number there.
func ping(b []byte, kind byte, ep, n int) {
	b[0] = kind
	binary.BigEndian.PutUint32(b[4:], uint32(ep))
	binary.BigEndian.PutUint32(b[8:], uint32(n))
}

// srqEnd is an end whose receives are posted: buffers up to half are theirs.
func srqEnd(t *testing.T, device string) *end {
	t.Helper()
	const half = srqConns * srqBurst
	e := newEnd(t, device, srqConns, half, true, srqSize, 2*half, hw.LocalRead|hw.LocalWrite)
	for i := range half {
		e.postRecv(nil, i)
	}
	return e
}

// sendRound sends a round's messages of all endpoints.
func (e *end) sendRound(kind byte, round int) {
	e.t.Helper()
	for i, ep := range e.eps {
		for k := range srqBurst {
			b := srqConns*srqBurst + i*srqBurst + k
			ping(e.buffer(b), kind, i, round*srqBurst+k+1)
			require.NoError(e.t, ep.PostSend(uint64(b), hw.Default, e.segment(b)))
		}
	}
}

func (e *end) sentRound() {
	e.t.Helper()
	for range srqConns * srqBurst {
		e.succeeded(e.req, hw.OpSend, srqSize)
	}
}

// receiveRound receives a round's messages of all endpoints, each endpoint's in order.
func (e *end) receiveRound(kind byte, last map[uint32]uint32) {
	e.t.Helper()
	for range srqConns * srqBurst {
		i := int(e.succeeded(e.recv, hw.OpRecv, srqSize).Cookie)
		b := e.buffer(i)
		from, n := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
		require.Equal(e.t, kind, b[0])
		require.Equal(e.t, last[from]+1, n, "of endpoint %d", from)
		last[from] = n
		e.postRecv(nil, i)
	}
	require.Len(e.t, last, srqConns)
}

// Our receives are a shared queue's. The C program with a queue of its own (-S 1) waits, when
// it ends, for an event that neither device has: also against itself.
func TestDtestsrqPingsOurSharedQueue(t *testing.T) {
	const ping, pong = 0x55, 0xaa
	args := func(shared string) []string {
		return []string{
			"-S", shared, "-c", strconv.Itoa(srqConns), "-B", strconv.Itoa(srqBurst), "-t", strconv.Itoa(srqRounds), "-b", strconv.Itoa(srqSize),
			"-p", strconv.Itoa(guestPort),
		}
	}
	number := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }
	ended := func(c *program, shared string) {
		if shared == "0" {
			c.ends("DAPL RC none SRQ Test Complete.")
		}
	}
	for _, device := range ourDevices(t) {
		for _, shared := range []string{"0", "1"} {
			t.Run("server "+device+", theirs with -S "+shared, func(t *testing.T) {
				guestPort += 100
				e := srqEnd(t, device)
				e.listen(uint64(guestPort))
				c := start(t, "dtestsrq", append(args(shared), "-h", guestAddress)...)
				e.accept(func(private []byte) (int, []byte) {
					private = firstOf(private, 4)
					return int(binary.BigEndian.Uint32(private)), private
				})
				last := map[uint32]uint32{}
				for round := range srqRounds {
					e.receiveRound(ping, last)
					e.sendRound(pong, round)
					e.sentRound()
				}
				if shared == "0" { // it disconnects one after the other, and with -S 1 waits after the first
					e.disconnected()
				} else {
					e.oneEnds()
				}
				ended(c, shared)
			})
			t.Run("client "+device+", theirs with -S "+shared, func(t *testing.T) {
				guestPort += 100
				e := srqEnd(t, device)
				s := start(t, "dtestsrq", args(shared)...)
				s.says("server ready on port")
				for ep, answer := range e.connect(uint64(guestPort), number) {
					assert.Equal(t, number(slices.Index(e.eps, ep)), firstOf(answer, 4))
				}
				last := map[uint32]uint32{}
				for round := range srqRounds {
					e.sendRound(ping, round)
					e.sentRound()
					e.receiveRound(pong, last)
				}
				e.disconnect()
				ended(s, shared)
			})
		}
	}
}
