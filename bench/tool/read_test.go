package tool

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// recorded is what a tool once printed.
func recorded(t testing.TB, name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	require.NoError(t, err)
	return string(text)
}

var fiveSeconds = turn{size: 64, depth: 32, count: 1000, seconds: 5}

func TestWhatAToolPrintedIsRead(t *testing.T) {
	for _, c := range []struct {
		file         string
		read         func(string, turn) (told, error)
		count        int
		median, mean time.Duration
		perSecond    float64
	}{
		{"ucx_tag_lat_tcp", readUCX(true), 2000, 15198, 1114858, 896.97},
		{"ucx_tag_lat_shm", readUCX(true), 20000, 320, 68586, 14580.2},
		{"ucx_tag_bw_tcp", readUCX(false), 20000, 0, 0, 146380},
		{"fi_tcp", readPingpong, 1000, 0, 1158880, 862.90},
		{"fi_tcp_64k", readPingpong, 1000, 0, 1888980, 529.39},
		{"fi_shm", readPingpong, 1000, 0, 457860, 2184.07},
		{"qperf_tcp_lat", readQperf("latency", "ns", qperfTrips), 159184, 0, 31410, 31837},
		{"qperf_tcp_bw", readQperf("bw", "bytes/sec", qperfMessages), 601651, 0, 0, 120330},
		{"ib_send_lat", readPerftestLatency, 2000, 39280, 478920, 2088.03},
		{"ib_write_bw", readPerftestBandwidth, 1000, 0, 0, 40949},
		{"dapltest", readDapltest, 1000, 0, 0, 6213.3},
	} {
		said, err := c.read(recorded(t, c.file), fiveSeconds)
		require.NoError(t, err, c.file)
		assert.Equal(t, c.count, said.count, c.file)
		assert.InDelta(t, c.median, said.median, 2, c.file)
		assert.InDelta(t, c.mean, said.mean, 2, c.file)
		assert.InEpsilon(t, c.perSecond, said.perSecond, 1e-4, c.file)
	}
}

func TestWhatIsNoFigureIsAnError(t *testing.T) {
	readers := map[string]func(string, turn) (told, error){
		"ucx latency": readUCX(true), "ucx rate": readUCX(false), "fi": readPingpong,
		"qperf latency": readQperf("latency", "ns", qperfTrips), "qperf rate": readQperf("bw", "bytes/sec", qperfMessages),
		"perftest latency": readPerftestLatency, "perftest rate": readPerftestBandwidth, "dapltest": readDapltest,
	}
	texts := map[string]string{
		"nothing": "", "zeros": "0 0 0 0 0 0 0 0", "other": "latency = fast ns\nbw = -1 bytes/sec\nOperation Throughput : nan ops/sec",
		"infinite": "latency = inf ns\nbw = 1e300 bytes/sec\n64 1 inf inf inf inf inf inf inf\n1 inf inf inf inf inf inf inf\n64 1 1 1 inf",
	}
	for _, file := range []string{"ucx_bad", "fi_bad", "qperf_bad", "ib_bad", "ib_send_lat_inf"} {
		texts[file] = recorded(t, file)
	}
	for name, read := range readers {
		for what, text := range texts {
			_, err := read(text, fiveSeconds)
			assert.Error(t, err, "%s reads %s", name, what)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, file := range []string{"ucx_tag_lat_tcp", "ucx_tag_bw_tcp", "fi_tcp", "qperf_tcp_lat", "qperf_tcp_bw", "ib_send_lat", "ib_write_bw", "dapltest"} {
		f.Add(recorded(f, file))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tool := range All() {
			if said, err := tool.read(text, fiveSeconds); err == nil {
				assert.Positive(t, said.count, tool.Name)
				assert.Greater(t, said.perSecond, 0.0, tool.Name)
				assert.GreaterOrEqual(t, said.mean, time.Duration(0), tool.Name)
			}
		}
	})
}

func TestAListeningPortIsFound(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 2 1
`
	assert.True(t, hasListener(table, 0x1F90))
	assert.False(t, hasListener(table, 0x1F91), "a connection is no listener")
	assert.False(t, hasListener("", 0x1F90))
}

func TestADeviceIsKnownByItsAddress(t *testing.T) {
	_, err := findDevice(fstest.MapFS{})
	assert.EqualError(t, err, "it needs an RDMA device, and this host has none")
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	sys := fstest.MapFS{"ib0/ports/1/gids/0": file("fe80:0000:0000:0000:0002:c903:0001:0203")}
	_, err = findDevice(sys)
	assert.ErrorContains(t, err, "ib0 have none")
	sys["rxe0/ports/1/gids/0"] = file("fe80:0000:0000:0000:5054:00ff:fe12:3456")
	sys["rxe0/ports/1/gids/1"] = file("0000:0000:0000:0000:0000:ffff:0a00:020f")
	sys["rxe0/ports/1/gid_attrs/ndevs/1"] = file("eth0")
	d, err := findDevice(sys)
	require.NoError(t, err)
	assert.Equal(t, device{"rxe0", 1, "10.0.2.15", "eth0"}, d)
	assert.Contains(t, d.datConf(), `rxe0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "eth0 0" ""`)
}

func TestEveryToolSaysWhatItDoes(t *testing.T) {
	names := map[string]bool{}
	for _, tool := range All() {
		assert.False(t, names[tool.Name], tool.Name)
		names[tool.Name] = true
		assert.NotEmpty(t, tool.Does, tool.Name)
		assert.NotEmpty(t, tool.Package, tool.Name)
		turn := turn{port: 7471, size: 100, depth: 7, count: 1000, seconds: 1, device: device{name: "rxe0", addr: "10.0.2.15"}}
		assert.Contains(t, tool.server(turn), "7471", tool.Name)
		assert.Contains(t, tool.client(turn), "7471", tool.Name)
		assert.Contains(t, tool.client(turn), "100", tool.Name)
	}
}

func TestAToolThatIsNotInstalledIsRefused(t *testing.T) {
	_, err := (&Tool{Binary: "no-such-program", Package: "some-package"}).Start(64, 1)
	assert.Equal(t, load.Refusal("no-such-program is not installed (Debian's package some-package)"), err)
}
