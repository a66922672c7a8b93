package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/examples/dattest/control"
	"godat/examples/dattest/wire"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/sim"
	dat "godat/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// test runs the program.
func test(t *testing.T, line string) (string, error) {
	t.Helper()
	o, err := parse(strings.Fields(line), io.Discard)
	require.NoError(t, err)
	var out bytes.Buffer
	err = run(t.Context(), o, &out)
	return out.String(), err
}

const mix = "client RW 4096 1 server RW 2048 4 server RR 1024 1 client RR 2048 1 client SR 1024 3 -f server SR 256 3 -f"

func TestTransactionsPassOnEveryProvider(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1", "sim"} {
		if provider == "sim" {
			require.NoError(t, hw.Register(sim.New(sim.Config{Seed: 1})))
			t.Cleanup(func() { assert.NoError(t, hw.Unregister("sim")) })
		}
		for name, line := range map[string]string{
			"conn":      "-i 1 client SR 4096 server SR 4096",
			"a mix":     "-i 8 -t 2 -w 2 " + mix,
			"polling":   "-i 8 -P " + mix,
			"validated": "-i 300 -V " + mix,
			"reserved":  "-i 2 -w 2 -r client SR server SR",
			"threads":   "-i 4 -t 6 client SR 8192 3 server SR 8192 3",
			"a CNO":     "-i 8 -t 2 -w 2 -Q " + mix,
		} {
			t.Run(provider+"/"+name, func(t *testing.T) {
				if name == "reserved" && provider == "sim" {
					line = strings.Replace(line, "-r ", "", 1)
				}
				out, err := test(t, "-T T -D "+provider+" "+line)
				require.NoError(t, err)
				assert.Contains(t, out, "Total WQE        :")
				assert.Contains(t, out, "Total RDMA Write :")
			})
		}
	}
}

func TestWithoutFlagsItTestsItself(t *testing.T) {
	out, err := test(t, "")
	require.NoError(t, err)
	assert.Contains(t, out, "----- Stats ---- : 1 threads, 1 EPs\n")
	// 1000 messages of 4096 bytes in each direction.
	assert.Contains(t, out, "Total Send       :       4.10 MB -")
	assert.Contains(t, out, "Total Recv       :       4.10 MB -")
}

func TestThePerformanceTestPrintsItsFigures(t *testing.T) {
	for _, line := range []string{"-m b -i 64 -p 16 RW 4096 2", "-m p -i 64 -p 1 RR 512", "-i 32"} {
		out, err := test(t, "-T P "+line)
		require.NoError(t, err, line)
		for _, word := range []string{"Operation Throughput : ", "Bandwidth            : ", "Latency\n", "Time Per Post\n", "Time Per Reap\n", "raw: R"} {
			assert.Contains(t, out, word, line)
		}
	}
	out, err := test(t, "-T P -m p -i 64 -p 16 RR 512 2")
	require.NoError(t, err)
	assert.Contains(t, out, "Mode                 : polling\n    Operation Type       : RR\n    Number of Operations : 64\n")
	assert.Contains(t, out, "raw: RR, 64, 512, 2, 16, ")
}

func TestTheLimitTestsCountWhatTheyMade(t *testing.T) {
	out, err := test(t, "-T L -w 2 -m 20 limit_pz limit_ep limit_rpost limit_rsp limit_cno")
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(out, "LimitTest: PZs created: 20\n"))
	assert.Equal(t, 2, strings.Count(out, "LimitTest: EPs created: 20\n"))
	assert.Equal(t, 2, strings.Count(out, "LimitTest: CNOs created: 20\n"))
	assert.Equal(t, 2, strings.Count(out, "LimitTest: recv buffers posted per EP: 16\n"))
	assert.Contains(t, out, "Limitation Test                      limit_rsp\n")
}

func TestEveryFunctionalAreaPasses(t *testing.T) {
	for area, cases := range map[string]int{"hwconn": 4, "endpoint": 3, "pz": 3, "mem": 5, "connmgt": 2, "queryinfo": 18} {
		masks := map[string]int{"queryinfo": 4}[area] // a query has no mask, which could be bad
		for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
			out, err := test(t, "-T F -D "+provider+" -f "+area)
			require.NoError(t, err, out)
			assert.Equal(t, cases-masks, strings.Count(out, "Result: PASS\n"), out)
			assert.Equal(t, masks, strings.Count(out, "Result: UNSUPP\n"), out)
			assert.Equal(t, cases, strings.Count(out, "Function feature: "), out)
		}
	}
	out, err := test(t, "-T F -f mem case4 case2")
	require.NoError(t, err)
	assert.Regexp(t, `(?s)case: 4\n.*null lmr_handle\n.*case: 2\n.*size 0\n`, out)
	assert.Equal(t, 2, strings.Count(out, "Result: PASS\n"))
}

func TestACaseThatFailsSaysSo(t *testing.T) {
	out, err := test(t, "-T F -D missing -f endpoint")
	require.ErrorIs(t, err, hw.ErrProviderNotFound)
	assert.Equal(t, 3, strings.Count(out, "Result: FAIL\n"))
	assert.NotContains(t, out, "Result: PASS")
}

func TestAFileMayHaveTheCommandLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "line")
	require.NoError(t, os.WriteFile(file, []byte("-T T -i 3 # three\n\tclient SR 8 #none 9\nserver SR 16\n"), 0o600))
	for _, args := range [][]string{{"-f", file}, {"-f" + file}} {
		o, err := parse(args, io.Discard)
		require.NoError(t, err)
		assert.Equal(t, "T", o.test)
		assert.EqualValues(t, 3, o.iterations)
		assert.Equal(t, []wire.Op{
			{Transfer: wire.SendRecv, Segments: 1, Size: 8},
			{Server: true, Transfer: wire.SendRecv, Segments: 1, Size: 16},
		}, o.ops)
	}
	for _, args := range [][]string{{"-f"}, {"-f", file, "-T"}, {"-f" + file, "-d"}, {"-f", file + "x"}} {
		_, err := parse(args, io.Discard)
		require.Error(t, err, args)
	}
}

func TestDebuggingPrintsTheCommand(t *testing.T) {
	out, err := test(t, "-T T -d -i 2 -V client RW 128 2 client SR 64 3 -f server SR 64 -f")
	require.NoError(t, err)
	for _, line := range []string{
		"TransCmd.num_iterations           : 2\n", "TransCmd.validate                 : 1\n", "TransCmd.num_ops                  : 6\n",
		"TransCmd.op[0].transfer_type      : RDMA_WRITE (client)\n", "TransCmd.op[0].num_segs           : 2\n",
		"TransCmd.op[2].transfer_type      : SEND_RECV (server)\n", "TransCmd.op[2].reap_send_on_recv  : 1\n",
	} {
		assert.Contains(t, out, line)
	}
	out, err = test(t, "-T P -d -i 8 -p 4 RR 512")
	require.NoError(t, err)
	assert.Contains(t, out, "PerfCmd.transfer_type             : RDMA_READ\n")
}

func TestBadCommandLinesAreRefused(t *testing.T) {
	for line, says := range map[string]string{
		"-T X":                                    "-T is S, T, P, L, F or Q",
		"-T F":                                    "-f must name",
		"-T F -f cqmgt":                           "no area \"cqmgt\"",
		"-T F -f pz case3":                        "the last case of pz is case2",
		"-T F -f pz 1":                            "case0, case1",
		"-T T -P -Q client SR server SR":          "-P polls",
		"-T T client SR":                          "at least one server SR",
		"-T T client SR server SX":                "SR, RR or RW",
		"-T T client SR -f server SR":             "-f",
		"-T T server SR -f client SR -f":          "-f without one on a client SR",
		"-T T client RW -f client SR server SR":   "SR only",
		"-T T client SR 0 server SR":              "1 segments of 0 bytes",
		"-T T client SR 8 65 server SR":           "65 segments",
		"-T T peer SR":                            "client or server",
		"-T T -i 0 client SR server SR":           "at least 1",
		"-T P SR":                                 "RR or RW",
		"-T P -m x RW":                            "-m is b or p",
		"-T P -p 0 RW":                            "0 at a time",
		"-T L limit_all":                          "no limit test",
		"-T Q":                                    "-s",
		"-T S now":                                "too much",
		"-T T -z client SR server SR":             "-z",
		"-T T -t 4000 client SR server SR":        "threads",
		"-T T -w 2 client SR server SR client":    "lacks its transfer",
		"-T P RW 4096 1 9":                        "too much after",
		"-T T client SR 99999999999999 server SR": "size or segments",
		"-T T client SR 1073741825 server SR":     "bytes",
		"-T T -V " + strings.Repeat("client SR server SR ", 49) + "client SR": "operations",
	} {
		_, err := parse(strings.Fields(line), io.Discard)
		assert.ErrorContains(t, err, says, line)
	}
}

// serve runs a server until the test ends.
func serve(t *testing.T, provider string) (ia *dat.IA, at control.Server, ended chan error) {
	ia, err := dat.Open(t.Context(), provider)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, ia.Close()) })
	s, err := control.Listen(ia, 0, io.Discard)
	require.NoError(t, err)
	ended = make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	return ia, control.Server{Addr: ia.Attr().Address, Port: s.Port()}, ended
}

func TestAServerServesManyAndQuits(t *testing.T) {
	ia, at, ended := serve(t, "iwarp:127.0.0.1")
	for range 3 {
		o, err := parse(strings.Fields("-T T -i 4 -w 2 client SR server SR"), io.Discard)
		require.NoError(t, err)
		require.NoError(t, client(t.Context(), o, ia, at, io.Discard))
	}
	require.NoError(t, control.Quit(t.Context(), ia, at))
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the server does not quit")
	}
}

func TestAServerOutlivesMalformedClients(t *testing.T) {
	ia, at, ended := serve(t, "loop")
	never := func(wire.ServerInfo) error { t.Error("answered"); return nil }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for name, info := range map[string]wire.ClientInfo{
		"an unknown test": {Test: 9, Threads: 1},
		"no command":      {Test: wire.TransactionTest, Threads: 1},
	} {
		assert.Error(t, control.Ask(ctx, ia, at, info, nil, never), name)
	}
	require.NoError(t, ctx.Err())
	require.NoError(t, control.Quit(ctx, ia, at))
	require.NoError(t, <-ended)
}

func TestAClientWithoutAServerFails(t *testing.T) {
	_, err := test(t, "-T T -D loop -s loop -n 99 client SR server SR")
	require.ErrorIs(t, err, event.Error(event.NonPeerRejected))
	_, err = test(t, "-T Q -s nowhere")
	require.ErrorIs(t, err, event.Error(event.Unreachable))
}
