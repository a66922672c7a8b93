package main

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestEndsThatDoNotAgreeSaySo(t *testing.T) {
	for name, c := range map[string]struct {
		server, client options
		server1, says  string // by the server, and by the client; "-": nothing is wrong
	}{
		"sizes": {
			options{Test: "pingpong", Size: 100},
			options{Test: "pingpong", Size: 99},
			"give both ends the same size (-s or -a)", "",
		},
		"reads": {
			options{Test: "read_bw", Reads: 2},
			options{Test: "read_bw", Reads: 16},
			"", "the peer takes 2 reads at a time, and this end would make 16: use -o 2",
		},
		"reads of both ends": {
			options{Test: "read_bw", Reads: 16, Both: true},
			options{Test: "read_bw", Reads: 2, Both: true},
			"the peer takes 2 reads at a time, and this end would make 16: use -o 2", "",
		},
		"more queue pairs of the client's": {
			options{Test: "write_bw"},
			options{Test: "write_bw", Pairs: 2},
			"as many queue pairs (-q)", "as many queue pairs (-q)",
		},
		"more queue pairs of the server's": {
			options{Test: "send_bw", Pairs: 3},
			options{Test: "send_bw", Pairs: 2},
			"where one more is due: give both ends the same test and as many queue pairs (-q)", "as many queue pairs (-q)",
		},
		"counts": {
			options{Test: "send_bw", Count: 20},
			options{Test: "send_bw", Count: 10},
			"the peer is done with its part, and this end still waits", "",
		},
		"counts of a latency": {
			options{Test: "write_lat", Count: 20},
			options{Test: "write_lat", Count: 10},
			"has the same count (-n)", "-",
		},
		"sizes of writes": {
			options{Test: "write_lat", Size: 8},
			options{Test: "write_lat", Size: 9},
			"give both ends the same size (-s or -a)", "has ended in the middle of the test",
		},
		"sizes of one end's requests": {
			options{Test: "read_bw", Size: 4096},
			options{Test: "read_bw", Size: 4097},
			"", "the peer's memory is not for this request: give both ends the same test and size (-s or -a)",
		},
		"sizes of both ends": {
			options{Test: "write_bw", Size: 8, Both: true},
			options{Test: "write_bw", Size: 9, Both: true},
			"the peer made 1 requests of 9 bytes, not 1 of 8", "the peer made 1 requests of 8 bytes, not 1 of 9",
		},
		"the server's requests": {
			options{Test: "send_bw", Both: true},
			options{Test: "send_bw"},
			"the peer says something else at this point: give both ends the same test", "",
		},
		"the client's requests": {
			options{Test: "write_bw"},
			options{Test: "write_bw", Both: true},
			"", "give both ends the same",
		},
		"all sizes": {
			options{Test: "send_bw", All: true},
			options{Test: "send_bw"},
			"give both ends the same size (-s or -a)", "",
		},
		"the test": {
			options{Test: "write_lat", Size: 64},
			options{Test: "write_bw", Size: 64},
			"give both ends the same", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := command(t, c.server), command(t, c.client)
			server.patience = time.Second // the client's is longer, so the server speaks first
			_, err, clientErr := both(t, server, client)
			t.Log("server:", err, "client:", clientErr)
			require.Error(t, err)
			assert.ErrorContains(t, err, c.server1)
			if c.says == "-" {
				require.NoError(t, clientErr)
				return
			}
			require.ErrorContains(t, clientErr, c.says)
		})
	}
}

func TestAKeyThatChangesIsAnotherQueuePair(t *testing.T) {
	one := keys{pair: hw.PairAddr{QPN: 0x12, PSN: 0x34}, gid: true}
	for name, change := range map[string]func(*keys){
		"number": func(k *keys) { k.pair.QPN++ }, "PSN": func(k *keys) { k.pair.PSN++ }, "key": func(k *keys) { k.memory.Context++ },
	} {
		t.Run(name, func(t *testing.T) {
			s, peer := scripted(t, true)
			p := &perf{s: s, links: []*link{{own: one}}}
			go func() {
				other := one
				change(&other)
				for _, k := range []keys{one, one, other} {
					b := make([]byte, k.size())
					_, _ = io.ReadFull(peer, b)
					_, _ = peer.Write(k.encode())
				}
			}()
			require.NoError(t, p.meet())
			require.NoError(t, p.meet())
			require.ErrorContains(t, p.meet(), "where 0x000012 and 0x000034 were before: give both ends the same test")
		})
	}
}

func TestAStrangerOnTheServersPortIsSentAway(t *testing.T) {
	for name, c := range map[string]struct{ test, word, says string }{
		"of HTTP":        {"send_bw", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "the peer's version is"},
		"of pingpong":    {"write_bw", string(putPairs([]hw.PairAddr{{QPN: 3}}, 1)), "the peer's version is"},
		"of perftest":    {"pingpong", version + strings.Repeat("\x00", pairText), "not ibv_rc_pingpong's or ibv_srq_pingpong's kin"},
		"that says less": {"send_bw", "x", "which is not how a client of send_bw begins"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			ready, ended := make(chan string, 1), make(chan error, 1)
			server := command(t, options{Test: c.test})
			server.patience = time.Second
			go func() { ended <- run(t.Context(), server, &out, func(address string) { ready <- address }) }()
			address := <-ready
			stranger, err := net.Dial("tcp", address)
			require.NoError(t, err)
			defer stranger.Close()
			_, err = io.WriteString(stranger, c.word)
			require.NoError(t, err)
			client := command(t, options{Test: c.test, Host: "localhost"})
			client.Port = netip.MustParseAddrPort(address).Port()
			require.NoError(t, run(t.Context(), client, io.Discard, nil))
			require.NoError(t, <-ended)
			assert.Contains(t, out.String(), "is sent away: ")
			assert.Contains(t, out.String(), c.says)
		})
	}
}
