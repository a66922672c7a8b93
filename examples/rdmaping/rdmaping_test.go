package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// command is the command line of a test on loop. The client has no address yet.
func command(t *testing.T, o options) *options {
	t.Helper()
	if o.Provider == "" {
		o.Provider = "loop"
	}
	o.Count, o.Timeout = max(o.Count, 1), time.Minute
	require.NoError(t, o.check())
	return &o
}

// both runs a server and a client, and returns what they printed and their errors.
func both(t *testing.T, server, client *options) (outputs [2]string, serverErr, clientErr error) {
	t.Helper()
	var texts [2]bytes.Buffer
	ready, ended := make(chan string, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- run(ctx, server, &texts[0], func(address string) { ready <- address }) }()
	var address string
	select {
	case address = <-ready:
	case err := <-ended:
		return outputs, err, nil
	}
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	client.Host, client.Port = "localhost", uint16(number)
	clientErr = run(ctx, client, &texts[1], nil)
	if clientErr != nil { // a server of pingpong may wait for ever
		defer time.AfterFunc(5*time.Second, cancel).Stop()
	}
	serverErr = <-ended
	return [2]string{texts[0].String(), texts[1].String()}, serverErr, clientErr
}

func TestEachTestRunsBetweenTwoEnds(t *testing.T) {
	for _, o := range []options{
		{Test: "pingpong", Count: 100, Check: true},
		{Test: "pingpong", Size: 1, Count: 100, Check: true},
		{Test: "pingpong", Size: 1 << 20, Count: 10, Check: true},
		{Test: "srq_pingpong", Count: 1000, Pairs: 16, Check: true},
		{Test: "srq_pingpong", Count: 7, Pairs: 16},
		{Test: "send_lat", Count: 100},
		{Test: "send_bw", Count: 1000, Size: 64},
		{Test: "send_bw", Count: 10, Size: 1 << 20},
		{Test: "write_bw", Count: 1000},
		{Test: "read_bw", Count: 300, Reads: 16},
		{Test: "atomic_bw", Count: 300},
		{Test: "write_bw", Count: 3, GID: true},
		{Test: "write_lat", Count: 600},
		{Test: "write_lat", Count: 300, Size: 5000},
		{Test: "write_lat", Count: 3, All: true},
		{Test: "read_lat", Count: 100},
		{Test: "read_lat", Count: 3, All: true},
		{Test: "atomic_lat", Count: 100},
		{Test: "send_lat", Count: 3, All: true},
		{Test: "send_bw", Count: 3, All: true},
		{Test: "send_bw", Count: 300, Pairs: 5},
		{Test: "send_bw", Count: 300, Both: true},
		{Test: "send_bw", Count: 3, Pairs: 2, Both: true, All: true},
		{Test: "write_bw", Count: 3, All: true},
		{Test: "write_bw", Count: 100, Pairs: 16},
		{Test: "write_bw", Count: 100, Both: true},
		{Test: "write_bw", Count: 3, Pairs: 2, Both: true, All: true},
		{Test: "read_bw", Count: 100, Pairs: 3, Both: true},
		{Test: "read_bw", Count: 3, All: true},
		{Test: "atomic_bw", Count: 100, Pairs: 2, Both: true},
	} {
		t.Run(fmt.Sprintf("%s %d all %t pairs %d both %t", o.Test, o.Size, o.All, o.Pairs, o.Both), func(t *testing.T) {
			outputs, err, clientErr := both(t, command(t, o), command(t, o))
			require.NoError(t, err)
			require.NoError(t, clientErr)
			for _, out := range outputs {
				assert.Contains(t, out, "local  address: LID 0x0000, QPN 0x")
				assert.Contains(t, out, strconv.Itoa(messages(o))+" iters in ")
			}
		})
	}
}

// messages is how many messages of a size a test has.
func messages(o options) int {
	if o.pingpong() {
		return o.Count
	}
	return o.Count * max(o.Pairs, 1)
}

func TestAClientWithoutAServerSaysWhatToDo(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := netip.MustParseAddrPort(ln.Addr().String()).Port()
	require.NoError(t, ln.Close())
	o := command(t, options{Test: "pingpong", Host: "127.0.0.1", Port: port})
	require.ErrorContains(t, run(t.Context(), o, &bytes.Buffer{}, nil), "start the server first")
}

func TestAPeerWhoseSessionEndsInTheTrafficIsGone(t *testing.T) {
	for _, o := range []options{
		{Test: "send_lat"},
		{Test: "send_bw"},
		{Test: "send_bw", Both: true, Pairs: 2},
		{Test: "write_lat"},
		{Test: "write_bw"},
		{Test: "read_lat"}, // here the server only waits for the client's word
	} {
		for _, done := range []bool{false, true} {
			if done && o.Test == "read_lat" {
				continue // whose client has nothing more to say
			}
			t.Run(fmt.Sprintf("%s both %t done %t", o.Test, o.Both, done), func(t *testing.T) {
				o.Count = 10
				ready, ended := make(chan string, 1), make(chan error, 1)
				go func() {
					ended <- run(t.Context(), command(t, o), &bytes.Buffer{}, func(address string) { ready <- address })
				}()
				client := command(t, o)
				client.Host, client.Port = "localhost", netip.MustParseAddrPort(<-ready).Port()
				ia, err := dat.Open(t.Context(), "loop")
				require.NoError(t, err)
				defer ia.Close()
				s, err := meet(t.Context(), client, io.Discard, nil)
				require.NoError(t, err)
				peer := &perf{o: client, s: s}
				defer peer.close()
				require.NoError(t, peer.connect(t.Context(), ia, &bytes.Buffer{}))
				if client.sends() {
					require.NoError(t, peer.meet())
				}
				if done { // it was about to end in order
					require.NoError(t, s.put(peer.links[0].own.encode()))
				}
				require.NoError(t, s.Close()) // as the kernel does for a killed program, whose queue pair says nothing
				select {
				case err := <-ended:
					require.ErrorIs(t, err, errGone)
				case <-time.After(time.Minute):
					require.Fail(t, "the server waits for the dead")
				}
			})
		}
	}
}

func TestAServerThatIsInterruptedEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := run(ctx, command(t, options{Test: "pingpong"}), &bytes.Buffer{}, func(string) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	ctx, slow := context.WithCancelCause(t.Context())
	err = run(ctx, command(t, options{Test: "pingpong"}), &bytes.Buffer{}, func(string) { slow(errSlow) })
	require.ErrorIs(t, err, errSlow)
}

func TestAProviderThatCannotPairSaysSoBeforeAPeerComes(t *testing.T) {
	o := command(t, options{Test: "pingpong", Provider: "iwarp:127.0.0.1"})
	err := run(t.Context(), o, io.Discard, func(string) { assert.Fail(t, "it waits for a client") })
	require.ErrorContains(t, err, "can't pair queue pairs")
	require.ErrorContains(t, err, "its peers connect by the connection manager, as examples/rping and examples/dattest do")
}

func TestAnAddressHasTheTextOfTheCProgram(t *testing.T) {
	a := hw.PairAddr{LID: 0x12, QPN: 0x345, PSN: 0xabcdef, GID: netip.MustParseAddr("::ffff:10.0.2.15").As16(), MTU: 1024}
	b := putPairs([]hw.PairAddr{a}, 2)
	assert.Equal(t, "0012:000345:abcdef:00000000000000000000ffff0a00020f\x00"+
		"0000:000000:000000:00000000000000000000000000000000\x00", string(b))
	got, err := parsePairs(b, 1)
	require.NoError(t, err)
	a.MTU = 0
	assert.Equal(t, []hw.PairAddr{a}, got)
	b[4] = ' '
	_, err = parsePairs(b, 1)
	require.ErrorContains(t, err, "not ibv_rc_pingpong's")
}

func TestKeysHaveTheTextOfTheCProgram(t *testing.T) {
	k := keys{
		pair:  hw.PairAddr{LID: 0x12, QPN: 0x345, PSN: 0xabcdef},
		reads: 16, memory: mem.RemoteSegment{Context: 0x1234567, Addr: 0x7fff00001000},
	}
	const head = "0012:0010:000345:abcdef:01234567:00007fff00001000:"
	const gid = "00:00:00:00:00:00:00:00:00:00:ff:ff:0a:00:02:0f:"
	assert.Equal(t, head+"00000000\x00", string(k.encode()))
	assert.Len(t, k.encode(), k.size())
	got, err := parseKeys(k.encode(), false)
	require.NoError(t, err)
	assert.Equal(t, k, got)

	k.gid, k.pair.GID = true, netip.MustParseAddr("::ffff:10.0.2.15").As16()
	assert.Equal(t, head+gid+"00000000:\x00", string(k.encode()))
	assert.Len(t, k.encode(), k.size())
	got, err = parseKeys(k.encode(), true)
	require.NoError(t, err)
	assert.Equal(t, k, got)
	for _, bad := range []string{"", "0012", head + "00000000\x00", "+" + string(k.encode()[1:])} {
		_, err = parseKeys([]byte(bad), true)
		require.ErrorIs(t, err, errKeys, bad)
	}
}

func TestAPeerWithoutTheRightGIDIsToldWhatToGive(t *testing.T) {
	own := hw.PairAddr{GID: netip.MustParseAddr("::ffff:10.0.2.15").As16()}
	require.ErrorContains(t, refuses(hw.PairAddr{}, own), "-g INDEX, of a GID like 10.0.2.15")
	require.ErrorContains(t, refuses(hw.PairAddr{GID: netip.MustParseAddr("fe80::1").As16()}, own), "not of the same IP version")
	require.NoError(t, refuses(own, own))
	infiniband := hw.PairAddr{LID: 3, GID: netip.MustParseAddr("fe80::1").As16()}
	require.NoError(t, refuses(hw.PairAddr{LID: 4}, infiniband), "InfiniBand needs no GID")
}

func TestOnInfiniBandAGIDIsGivenOnRequestAlone(t *testing.T) {
	infiniband := hw.PairAddr{LID: 3, QPN: 4, PSN: 5, GID: netip.MustParseAddr("fe80::1").As16(), MTU: 4096}
	ethernet := infiniband
	ethernet.LID = 0
	for _, asked := range []bool{false, true} {
		o := options{GID: asked}
		assert.Equal(t, ethernet, o.given(ethernet), "Ethernet has nothing else")
		want := infiniband
		if !asked {
			want.GID = [16]byte{}
		}
		assert.Equal(t, want, o.given(infiniband))
	}
}

// scripted is a session whose peer is the test.
func scripted(t *testing.T, client bool) (*session, net.Conn) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	return &session{Conn: ours, in: bufio.NewReader(ours), client: client, why: t.Context()}, theirs
}

func TestTheGreetingIsThatOfPerftest(t *testing.T) {
	s, peer := scripted(t, true)
	said := make(chan []byte, 1)
	go func() {
		var all []byte
		for _, answer := range []string{"5.92" + string(make([]byte, 12)), "\x00\x01\x00\x00", "\x00\x00\x00\x80", "3\x00"} {
			b := make([]byte, len(answer))
			_, _ = peer.Read(b)
			all = append(all, b...)
			_, _ = peer.Write([]byte(answer))
		}
		said <- all
	}()
	cycle, err := s.greet()
	require.NoError(t, err)
	assert.Equal(t, 65536, cycle, "the longer one")
	mtu, err := s.swapMTU(4096)
	require.NoError(t, err)
	assert.Equal(t, 1024, mtu)
	assert.Equal(t, "6.06"+string(make([]byte, 12))+"\x00\x00\x10\x00"+"\x00\x00\x00\x40"+"5\x00", string(<-said))
}

func TestAPeerThatIsNotPerftestIsNamed(t *testing.T) {
	for _, version := range []string{"5.33", "GET / HTTP/1.1\r\n", ""} {
		s, peer := scripted(t, false)
		go func() {
			b := make([]byte, versionSize)
			copy(b, version)
			_, _ = peer.Write(b)
			_, _ = peer.Read(b)
		}()
		_, err := s.greet()
		require.ErrorContains(t, err, "it is not perftest of version 5.70 or later")
	}
}

func TestImpossibleOptionsAreRefused(t *testing.T) {
	good := options{Test: "send_bw", Count: 1, Timeout: 1}
	for name, change := range map[string]func(*options){
		"size": func(o *options) { o.Size = -1 }, "count": func(o *options) { o.Count = 0 }, "pairs": func(o *options) { o.Pairs = 257 },
		"reads": func(o *options) { o.Test, o.Reads = "read_bw", -1 }, "too many reads": func(o *options) { o.Test, o.Reads = "atomic_bw", 129 },
		"reads of sends": func(o *options) { o.Reads = 2 }, "packets": func(o *options) { o.MTU = 1000 }, "no time": func(o *options) { o.Timeout = 0 },
		"check":    func(o *options) { o.Check = true },
		"atomic":   func(o *options) { o.Test, o.Size = "atomic_bw", 16 },
		"no pairs": func(o *options) { o.Pairs = -1 }, "all and a size": func(o *options) { o.All, o.Size = true, 64 },
		"all atomics":          func(o *options) { o.Test, o.All = "atomic_lat", true },
		"all of pingpong":      func(o *options) { o.Test, o.All = "pingpong", true },
		"pairs of pingpong":    func(o *options) { o.Test, o.Pairs = "pingpong", 2 },
		"pairs of a latency":   func(o *options) { o.Test, o.Pairs = "write_lat", 2 },
		"a latency both ways":  func(o *options) { o.Test, o.Both = "send_lat", true },
		"pingpong both ways":   func(o *options) { o.Test, o.Both = "srq_pingpong", true },
		"more memory than any": func(o *options) { o.Size, o.Pairs = 1<<30, 2 },
		"as much for itself":   func(o *options) { o.Test, o.Size = "write_lat", 1<<30 },
	} {
		o := good
		change(&o)
		require.Error(t, o.check(), name)
	}
	require.NoError(t, good.check())
	assert.Equal(t, 65536, good.Size)
}
