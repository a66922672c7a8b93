//go:build guest

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// These run in the guest, as root: see hw/ibv/test-guest.sh.

// asDoctor is the environment variable that makes a process the program. Its value is how many
// bytes the process may lock.
const asDoctor = "GODAT_GUEST_DOCTOR"

func init() {
	text := os.Getenv(asDoctor)
	if text == "" {
		return
	}
	if most, err := strconv.ParseUint(text, 10, 64); err != nil || unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: most, Max: most}) != nil {
		os.Exit(2)
	}
	main()
	os.Exit(0)
}

// consult runs the program in a process of a user, and returns what it printed as JSON and
// its exit status. It checks that the table has the same lines.
func consult(t *testing.T, user uint32, locks uint64) (r report, status int) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	begin := func(args ...string) (string, int) {
		cmd := exec.Command(self, args...)
		cmd.Path, cmd.Dir = "/proc/self/exe", "/" // this program's file, which that user may not find by its name
		cmd.Env = append(os.Environ(), asDoctor+"="+strconv.FormatUint(locks, 10))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, os.Stdout
		if err := cmd.Run(); err != nil {
			require.IsType(t, &exec.ExitError{}, err)
		}
		return said.String(), cmd.ProcessState.ExitCode()
	}
	table, tableStatus := begin()
	text, status := begin("--json")
	t.Log(table)
	require.NoError(t, json.Unmarshal([]byte(text), &r), text)
	assert.Equal(t, tableStatus, status)
	assert.Equal(t, r.OK, status == 0)
	for _, l := range r.Lines {
		assert.Contains(t, table, l.Check)
		assert.NotEmpty(t, l.Says, l)
		assert.Equal(t, l.State == fine, l.Do == "", l)
	}
	return r, status
}

// assertDevice checks the lines of the guest's device, which do not depend on the user.
func assertDevice(t *testing.T, list []line) {
	t.Helper()
	device := os.Getenv("GODAT_GUEST_DEVICE")
	soft := of(t, list, "devices")
	assert.Equal(t, fine, soft.State, soft)
	assert.Regexp(t, "^"+device+"/1: ACTIVE, Ethernet, .*, (eth0|no interface)$", soft.Says)
	ids := of(t, list, "GIDs")
	assert.Equal(t, fine, ids.State, ids)
	module := "siw is loaded"
	if strings.HasPrefix(device, "rxe") {
		module = "rdma_rxe is loaded"
		assert.Regexp(t, `(?m)^rxe0/1 \d+: 10\.0\.2\.15, RoCE v2$`, ids.Says)
		assert.Regexp(t, `(?m)^rxe0/1 0: fe80::.*, RoCE v2$`, ids.Says)
	} else {
		assert.Regexp(t, `^siw0/1 0: .+, .+$`, ids.Says)
	}
	assert.Contains(t, of(t, list, "devices in software").Says, module)
	assert.Equal(t, fine, of(t, list, "modules").State)
	for _, provider := range []string{"loop", "iwarp"} {
		assert.Equal(t, fine, of(t, list, provider+" to itself").State, provider)
	}
}

const (
	root     = 0
	anyBytes = uint64(unix.RLIM_INFINITY)
)

func TestTheGuestIsWellForEachUser(t *testing.T) {
	for name, user := range map[string]uint32{"root": root, "nobody": nobody} {
		t.Run(name, func(t *testing.T) {
			r, status := consult(t, user, anyBytes)
			assert.Zero(t, status)
			assertDevice(t, r.Lines)
			files := of(t, r.Lines, "device files")
			assert.Equal(t, good("this user may use rdma_cm and /dev/infiniband/uverbs0").Says, files.Says)
			assert.Equal(t, "no limit for regions of ibv; loop and iwarp lock none", of(t, r.Lines, "locked memory").Says)
			l := of(t, r.Lines, "ibv to itself")
			assert.Equal(t, fine, l.State, l)
			assert.Contains(t, l.Says, "of 100 round trips")
		})
	}
}

func TestTheGuestKeepsItsDeviceFromNobody(t *testing.T) {
	const file = "/dev/infiniband/uverbs0"
	require.NoError(t, os.Chmod(file, 0o600))
	defer func() { assert.NoError(t, os.Chmod(file, 0o666)) }()
	r, status := consult(t, nobody, anyBytes)
	assert.Equal(t, 1, status)
	assertDevice(t, r.Lines)
	files := of(t, r.Lines, "device files")
	assert.Equal(t, bad, files.State, files)
	assert.Equal(t, "user 65534 can't use "+file+": permission denied", files.Says)
	l := of(t, r.Lines, "ibv to itself")
	assert.Equal(t, bad, l.State, l)
	assert.Contains(t, l.Says, os.Getenv("GODAT_GUEST_DEVICE")+": open "+file+": permission denied: give this user access")
	assert.Contains(t, l.Do, "lines above")
}

func TestTheGuestMissesAFileOfItsDevice(t *testing.T) {
	const file, away = "/dev/infiniband/uverbs0", "/dev/infiniband/away"
	require.NoError(t, os.Rename(file, away))
	defer func() { assert.NoError(t, os.Rename(away, file)) }()
	r, status := consult(t, root, anyBytes)
	assert.Equal(t, 1, status)
	files := of(t, r.Lines, "device files")
	assert.Equal(t, bad, files.State, files)
	assert.Contains(t, of(t, r.Lines, "ibv to itself").Says, file+" is missing: load the kernel modules (modprobe -a ib_uverbs rdma_ucm)")
}

func TestTheGuestLetsNobodyLockLittle(t *testing.T) {
	r, status := consult(t, nobody, 64<<10)
	assert.Equal(t, 1, status)
	assertDevice(t, r.Lines)
	locked := of(t, r.Lines, "locked memory")
	assert.Equal(t, bad, locked.State, locked)
	assert.Contains(t, locked.Says, "64 KiB")
	assert.Contains(t, locked.Do, "memlock")
	l := of(t, r.Lines, "ibv to itself")
	assert.Equal(t, bad, l.State, l)
	assert.Contains(t, l.Says, "locked-memory limit is 64 KiB")
}
