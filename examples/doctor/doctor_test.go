package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// healthy are the files of a machine with a RoCE device, on which there is nothing to do.
var healthy = map[string]string{
	"/proc/self/cgroup":                                     "0::/a\n",
	"/proc/sys/kernel/osrelease":                            "6.1\n",
	"/proc/sys/net/core/somaxconn":                          "4096\n",
	"/proc/sys/net/ipv4/tcp_rmem":                           "4096 131072 6291456\n",
	"/proc/sys/net/ipv4/tcp_wmem":                           "4096 16384 4194304\n",
	"/proc/sys/net/ipv4/tcp_congestion_control":             "cubic\n",
	"/proc/sys/net/ipv4/tcp_available_congestion_control":   "reno cubic\n",
	"/proc/sys/net/ipv4/ip_local_port_range":                "32768\t60999\n",
	"/sys/module/ib_uverbs/version":                         "1\n",
	"/sys/module/rdma_ucm/version":                          "1\n",
	"/sys/fs/cgroup/a/memory.max":                           "max\n",
	"/sys/fs/cgroup/a/cpu.max":                              "max 100000\n",
	"/sys/class/net/lo/mtu":                                 "65536\n",
	"/dev/infiniband/uverbs0":                               "",
	"/dev/infiniband/rdma_cm":                               "",
	"/sys/class/infiniband/rxe0/node_type":                  "1: CA\n",
	"/sys/class/infiniband/rxe0/ports/1/state":              "4: ACTIVE\n",
	"/sys/class/infiniband/rxe0/ports/1/link_layer":         "Ethernet\n",
	"/sys/class/infiniband/rxe0/ports/1/rate":               "2.5 Gb/sec (1X SDR)\n",
	"/sys/class/infiniband/rxe0/ports/1/gids/0":             "fe80:0000:0000:0000:5054:00ff:fe12:3456\n",
	"/sys/class/infiniband/rxe0/ports/1/gids/1":             "0000:0000:0000:0000:0000:ffff:0a00:020f\n",
	"/sys/class/infiniband/rxe0/ports/1/gids/2":             "0000:0000:0000:0000:0000:0000:0000:0000\n",
	"/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0":  "RoCE v2\n",
	"/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1":  "RoCE v2\n",
	"/sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0":  "eth7\n",
	"/sys/class/infiniband/rxe0/ports/1/gid_attrs/unused/0": "\n",
}

// Parts of machines, which are taken away.
const (
	allDevices = "/sys/class/infiniband/rxe0"
	onePort    = allDevices + "/ports/1"
)

// stage makes the files of a healthy machine with those changes: what a file contains, or
// "gone" for a file, or a directory with all below it, that is not there.
func stage(t *testing.T, changes map[string]string) *machine {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{}
	for name, text := range healthy {
		files[name] = text
	}
	for name, text := range changes {
		files[name] = text
		for other := range files {
			if text == "gone" && (other == name || strings.HasPrefix(other, name+"/")) {
				delete(files, other)
			}
		}
	}
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	m := thisMachine(root)
	m.locked, m.files, m.crc = 1<<40, 1<<20, true
	m.interfaces = []net.Interface{{Name: "lo", MTU: 65536, Flags: net.FlagUp | net.FlagLoopback}, {Name: "eth7", MTU: 1500, Flags: net.FlagUp}}
	return m
}

// of is the line of a check.
func of(t *testing.T, list []line, check string) line {
	t.Helper()
	for _, l := range list {
		if l.Check == check {
			return l
		}
	}
	require.Fail(t, "no line", check)
	return line{}
}

func TestAHealthyMachineNeedsNothing(t *testing.T) {
	list := examine(stage(t, nil))
	for _, l := range list {
		if l.Check != "ports" { // which are this machine's
			assert.Equal(t, fine, l.State, l)
			assert.Empty(t, l.Do, l)
		}
		assert.NotEmpty(t, l.Says, l)
	}
	assert.Equal(t, "rxe0/1: ACTIVE, Ethernet, 2.5 Gb/sec (1X SDR), eth7", of(t, list, "devices").Says)
	assert.Equal(t, "rxe0/1 0: fe80::5054:ff:fe12:3456, RoCE v2\nrxe0/1 1: 10.0.2.15, RoCE v2", of(t, list, "GIDs").Says)
}

func TestEachTroubleIsNamedWithWhatToDo(t *testing.T) {
	noDevice := map[string]string{allDevices: "gone", "/dev/infiniband": "gone"}
	without := func(names ...string) map[string]string {
		changes := map[string]string{}
		for _, name := range names {
			changes[name] = "gone"
		}
		return changes
	}
	with := func(pairs ...string) map[string]string {
		changes := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			changes[pairs[i]] = pairs[i+1]
		}
		return changes
	}
	for _, c := range []struct {
		check, state, do string
		changes          map[string]string
		change           func(*machine)
	}{
		{"devices", note, "make a device in software", noDevice, nil},
		{"devices", bad, "ip link set eth7 up", with(onePort+"/state", "1: DOWN\n"), nil},
		{"device files", bad, "--device /dev/infiniband", without("/dev/infiniband"), nil},
		{"device files", bad, "modprobe rdma_ucm", without("/dev/infiniband/rdma_cm"), nil},
		{"GIDs", bad, "ip addr add 10.0.0.1/24 dev eth7", with(onePort+"/gid_attrs/types/1", "IB/RoCE v1\n"), nil},
		{"GIDs", bad, "ip addr add 10.0.0.1/24 dev eth7", with(onePort+"/gids/1", "gone"), nil},
		{"GIDs", fine, "", with(onePort+"/gids/1", "gone", allDevices+"/node_type", "4: RNIC\n"), nil},
		{"GIDs", fine, "", with(onePort+"/gids/1", "gone", onePort+"/link_layer", "InfiniBand\n"), nil},
		{"modules", bad, "modprobe -a ib_uverbs rdma_ucm", without("/sys/module/rdma_ucm"), nil},
		{"modules", note, "modprobe -a ib_uverbs rdma_ucm", without("/sys/module/ib_uverbs", allDevices), nil},
		{"modules", note, "mount /proc and /sys", without("/sys"), nil},
		{"devices in software", note, "install all modules", noDevice, nil},
		{
			"devices in software", note, "rdma link add rxe0 type rxe netdev eth7\nmodprobe -a siw rdma_ucm; rdma link add siw0 type siw netdev eth7",
			with(allDevices, "gone", "/sys/module/rdma_rxe/version", "1", "/lib/modules/6.1/modules.dep", "kernel/drivers/infiniband/sw/siw/siw.ko.xz: x\n"), nil,
		},
		{"container", bad, "--device /dev/infiniband", without("/dev/infiniband"), nil},
		{"container", note, "--cap-add IPC_LOCK", with("/.dockerenv", "", "/dev/infiniband", "gone", allDevices, "gone"), nil},
		{"container", fine, "", with("/run/.containerenv", ""), nil},
		{"container", note, "mount -t proc", without("/proc"), nil},
		{"control group", note, "MemoryMax=", with("/sys/fs/cgroup/a/memory.max", "1048576\n"), nil},
		{"control group", note, "CPUQuota=", with("/sys/fs/cgroup/a/cpu.max", "50000 100000\n"), nil},
		{"control group", note, "TasksMax=", with("/sys/fs/cgroup/pids.max", "100\n"), nil},
		{"control group", note, "MemoryMax=", with("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n", "/sys/fs/cgroup/a", "gone"), nil},
		{"control group", fine, "", with("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n", "/sys/fs/cgroup/a", "gone"), nil},
		{"control group", note, "rdma.max", with("/sys/fs/cgroup/a/rdma.max", "rxe0 hca_handle=2 hca_object=2000\n"), nil},
		{"control group", note, "mount", without("/sys/fs"), nil},
		{"locked memory", bad, "ulimit -l unlimited", nil, func(m *machine) { m.locked = 8 << 20 }},
		{"locked memory", note, "ulimit -l unlimited", noDevice, func(m *machine) { m.locked = 8 << 10 }},
		{"descriptors", note, "LimitNOFILE=1048576", nil, func(m *machine) { m.files = 1024 }},
		{"descriptors", fine, "", nil, func(m *machine) { m.files = 0 }},
		{"socket buffers", note, `net.ipv4.tcp_wmem="4096 16384 4194304"`, with("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 1048576\n"), nil},
		{"socket buffers", note, "mount", with("/proc/sys/net/ipv4/tcp_wmem", "4096\n"), nil},
		{"congestion control", note, "congestion=cubic", with("/proc/sys/net/ipv4/tcp_congestion_control", "bbr\n"), nil},
		{"congestion control", note, "mount", without("/proc/sys/net"), nil},
		{"backlog", note, "net.core.somaxconn=1024", with("/proc/sys/net/core/somaxconn", "128\n"), nil},
		{"backlog", note, "mount", without("/proc"), nil},
		{"MTU", note, "ip link set eth7 mtu 1500", nil, func(m *machine) { m.interfaces[1].MTU = 576 }},
		{"MTU", bad, "ip link set lo up", nil, func(m *machine) { m.interfaces = nil }},
		{"CRC-32C", note, "crc=false", nil, func(m *machine) { m.crc = false }},
	} {
		m := stage(t, c.changes)
		if c.change != nil {
			c.change(m)
		}
		l := of(t, examine(m), c.check)
		assert.Equal(t, c.state, l.State, "%v: %v", c.changes, l)
		assert.Contains(t, l.Do, c.do)
		assert.Equal(t, c.do == "", l.Do == "", l)
		assert.NotEmpty(t, l.Says)
	}
}

func TestATakenPortIsNamed(t *testing.T) {
	ln, err := net.Listen("tcp", ":7175")
	if err != nil {
		return // somebody else has it
	}
	defer ln.Close()
	assert.Contains(t, of(t, examine(stage(t, nil)), "ports").Says, "taken: 7175")
}

func TestAnEmptyRootIsALineForEachCheck(t *testing.T) {
	list := examine(thisMachine(t.TempDir()))
	require.Len(t, list, len(checks))
	for _, l := range list {
		assert.Contains(t, []string{fine, note}, l.State, l)
		assert.Equal(t, l.State == fine, l.Do == "", l)
		assert.NotEmpty(t, l.Says, l)
	}
}

// report is what the program prints as JSON.
type report struct {
	OK    bool
	Lines []line
}

func TestTheProvidersOfThisMachineAreTried(t *testing.T) {
	var table, text bytes.Buffer
	m := stage(t, nil)
	ok, err := run(t.Context(), &options{JSON: true}, m, &text)
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(text.Bytes(), &r))
	assert.Equal(t, ok, r.OK)
	for _, provider := range []string{"loop", "iwarp"} {
		l := of(t, r.Lines, provider+" to itself")
		assert.Equal(t, fine, l.State, l)
		assert.Contains(t, l.Says, "of 100 round trips")
	}
	assert.NotEmpty(t, of(t, r.Lines, "ibv to itself").Says)

	_, err = run(t.Context(), &options{}, m, &table)
	require.NoError(t, err)
	for _, l := range r.Lines {
		assert.Contains(t, table.String(), l.Check)
	}
	assert.Regexp(t, `GIDs +│ ok +│ rxe0/1 0: fe80::5054:ff:fe12:3456, RoCE v2 +│ .*\n.*│ rxe0/1 1: 10.0.2.15, RoCE v2 +│`, table.String())
}

// TestAMachineWithoutRDMAHasNotesAlone: what is not there is no trouble, since loop and iwarp need none of it.
func TestAMachineWithoutRDMAHasNotesAlone(t *testing.T) {
	list := examine(stage(t, map[string]string{
		allDevices: "gone", "/dev/infiniband": "gone", "/sys/module/ib_uverbs": "gone", "/sys/module/rdma_ucm": "gone",
		"/sys/module/kernel/parameters/panic": "0\n",
	}))
	for check, says := range map[string]string{
		"devices":             "none; loop and iwarp need none",
		"device files":        "no /dev/infiniband/uverbs*",
		"GIDs":                "none, as there is no device",
		"modules":             "ib_uverbs and rdma_ucm, loaded: false",
		"devices in software": "no module rdma_rxe or siw is seen here",
	} {
		l := of(t, list, check)
		assert.Equal(t, says, l.Says)
		assert.NotEqual(t, bad, l.State, l)
	}
	for _, l := range list {
		assert.NotEqual(t, bad, l.State, l)
		assert.Equal(t, l.State == fine, l.Do == "", l)
	}
}

func TestABadLineIsTheExitStatus(t *testing.T) {
	ok, err := run(t.Context(), &options{}, stage(t, map[string]string{onePort + "/state": "1: DOWN\n"}), io.Discard)
	require.NoError(t, err)
	assert.False(t, ok)
}

// serving starts doctor --serve, and returns where it answers.
func serving(ctx context.Context, t *testing.T) (host string, port uint16) {
	t.Helper()
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(ctx, "127.0.0.1:0", in) }()
	text := make([]byte, 100)
	n, err := out.Read(text)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	t.Cleanup(func() {
		require.NoError(t, <-done)
		require.NoError(t, in.Close())
	})
	address := strings.Fields(string(text[:n]))
	host, word, err := net.SplitHostPort(address[len(address)-1])
	require.NoError(t, err)
	number, err := strconv.ParseUint(word, 10, 16)
	require.NoError(t, err)
	return host, uint16(number)
}

func TestADoctorOnAnotherHostAnswers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	host, port := serving(ctx, t)
	for range 2 { // one after the other
		var text bytes.Buffer
		_, err := run(ctx, &options{Host: host, Port: port, JSON: true}, stage(t, nil), &text)
		require.NoError(t, err)
		var r report
		require.NoError(t, json.Unmarshal(text.Bytes(), &r))
		l := of(t, r.Lines, "iwarp to "+net.JoinHostPort(host, strconv.Itoa(int(port))))
		assert.Equal(t, fine, l.State, l)
	}
	stop()
}

func TestAHostThatDoesNotAnswerIsBad(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	l := probe(t.Context(), "iwarp", ln.Addr().String())
	assert.Equal(t, bad, l.State, l)
	assert.Contains(t, l.Do, "doctor --serve")
	assert.Error(t, serve(t.Context(), "127.0.0.1:no", io.Discard), "nobody answers")
}
