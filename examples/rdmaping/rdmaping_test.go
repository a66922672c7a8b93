package main

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	dat "godat/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// command is the command line of a test on loop. The client has no address yet.
func command(t *testing.T, o options) *options {
	t.Helper()
	if o.Provider == "" {
		o.Provider = "loop"
	}
	if o.MTU == 0 {
		o.MTU = 1024
	}
	o.Count, o.Pairs, o.Reads, o.Timeout = max(o.Count, 1), max(o.Pairs, 1), max(o.Reads, 1), time.Minute
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
	if clientErr != nil {
		cancel()
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
	} {
		t.Run(o.Test+" "+strconv.Itoa(o.Size), func(t *testing.T) {
			outputs, err, clientErr := both(t, command(t, o), command(t, o))
			require.NoError(t, err)
			require.NoError(t, clientErr)
			for _, out := range outputs {
				assert.Contains(t, out, "local  address: LID 0x0000, QPN 0x")
				assert.Contains(t, out, strconv.Itoa(o.Count)+" iters in ")
			}
		})
	}
}

func TestEndsThatDoNotAgreeSaySo(t *testing.T) {
	for name, c := range map[string]struct {
		server, client options
		server1, says  string
	}{
		"sizes": {
			options{Test: "pingpong", Size: 100},
			options{Test: "pingpong", Size: 99},
			"give both ends the same size (-s)", "",
		},
		"reads": {
			options{Test: "read_bw", Reads: 2},
			options{Test: "read_bw", Reads: 16},
			"", "the peer takes 2 reads at a time, and this end would make 16: use -o 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err, clientErr := both(t, command(t, c.server), command(t, c.client))
			require.Error(t, err)
			require.Error(t, clientErr)
			assert.ErrorContains(t, err, c.server1)
			assert.ErrorContains(t, clientErr, c.says)
		})
	}
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
	for _, test := range []string{"send_lat", "send_bw"} {
		t.Run(test, func(t *testing.T) {
			ready, ended := make(chan string, 1), make(chan error, 1)
			go func() {
				ended <- run(t.Context(), command(t, options{Test: test, Count: 10}), &bytes.Buffer{}, func(address string) { ready <- address })
			}()
			o := command(t, options{Test: test, Count: 10, Host: "localhost"})
			o.Port = netip.MustParseAddrPort(<-ready).Port()
			ia, err := dat.Open(t.Context(), "loop")
			require.NoError(t, err)
			defer ia.Close()
			s, err := meet(t.Context(), o, nil)
			require.NoError(t, err)
			peer := &perf{o: o, s: s}
			defer peer.close()
			require.NoError(t, peer.connect(t.Context(), ia, &bytes.Buffer{}))
			require.NoError(t, s.Close()) // as the kernel does for a killed program, whose queue pair says nothing
			select {
			case err := <-ended:
				require.ErrorIs(t, err, errGone)
			case <-time.After(20 * time.Second):
				require.Fail(t, "the server waits for the dead")
			}
		})
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

func TestAProviderThatCannotPairSaysSo(t *testing.T) {
	o := command(t, options{Test: "pingpong", Provider: "iwarp:127.0.0.1"})
	_, err, clientErr := both(t, o, command(t, options{Test: "pingpong"}))
	require.ErrorContains(t, err, "can't pair queue pairs")
	require.Error(t, clientErr)
}

func TestAnAddressHasTheTextOfTheCProgram(t *testing.T) {
	a := dat.PairAddr{LID: 0x12, QPN: 0x345, PSN: 0xabcdef, GID: netip.MustParseAddr("::ffff:10.0.2.15").As16(), MTU: 1024}
	b := putPairs([]dat.PairAddr{a}, 2)
	assert.Equal(t, "0012:000345:abcdef:00000000000000000000ffff0a00020f\x00"+
		"0000:000000:000000:00000000000000000000000000000000\x00", string(b))
	got, err := parsePairs(b, 1)
	require.NoError(t, err)
	a.MTU = 0
	assert.Equal(t, []dat.PairAddr{a}, got)
	b[4] = ' '
	_, err = parsePairs(b, 1)
	require.ErrorContains(t, err, "not ibv_rc_pingpong's")
}

func TestKeysHaveTheTextOfTheCProgram(t *testing.T) {
	k := keys{
		pair:  dat.PairAddr{LID: 0x12, QPN: 0x345, PSN: 0xabcdef},
		reads: 16, memory: dat.RemoteSegment{Context: 0x1234567, Addr: 0x7fff00001000},
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
	own := dat.PairAddr{GID: netip.MustParseAddr("::ffff:10.0.2.15").As16()}
	require.ErrorContains(t, refuses(dat.PairAddr{}, own), "-g INDEX, of a GID like 10.0.2.15")
	require.ErrorContains(t, refuses(dat.PairAddr{GID: netip.MustParseAddr("fe80::1").As16()}, own), "not of the same IP version")
	require.NoError(t, refuses(own, own))
	infiniband := dat.PairAddr{LID: 3, GID: netip.MustParseAddr("fe80::1").As16()}
	require.NoError(t, refuses(dat.PairAddr{LID: 4}, infiniband), "InfiniBand needs no GID")
}

func TestOnInfiniBandAGIDIsGivenOnRequestAlone(t *testing.T) {
	infiniband := dat.PairAddr{LID: 3, QPN: 4, PSN: 5, GID: netip.MustParseAddr("fe80::1").As16(), MTU: 4096}
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
	good := options{Test: "send_bw", Count: 1, Pairs: 1, Reads: 1}
	for name, change := range map[string]func(*options){
		"size": func(o *options) { o.Size = -1 }, "count": func(o *options) { o.Count = 0 }, "pairs": func(o *options) { o.Pairs = 257 },
		"reads": func(o *options) { o.Reads = 0 }, "check": func(o *options) { o.Check = true },
		"atomic": func(o *options) { o.Test, o.Size = "atomic_bw", 16 },
	} {
		o := good
		change(&o)
		require.Error(t, o.check(), name)
	}
	require.NoError(t, good.check())
	assert.Equal(t, 65536, good.Size)
}
