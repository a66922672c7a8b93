//go:build guest

package guest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first boot takes a minute, since it builds the kernel's tree, and later ones
// a quarter of a minute. The bounds are for a machine ten times slower.

func boot(t *testing.T, cfg Config, script string) (status int, output string) {
	t.Helper()
	var out bytes.Buffer
	cfg.Output, cfg.Progress, cfg.Timeout = io.MultiWriter(&out, os.Stdout), os.Stderr, 5*time.Minute
	status, err := Run(t.Context(), cfg, "/bin/sh", "-c", script)
	require.NoError(t, err)
	return status, out.String()
}

func TestGuestRunsAProgramAndReturnsItsOutputAndStatus(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Dir: dir, Share: []string{dir}, Env: []string{"WORD=it's"}, Modules: []string{"dummy", "veth", "sch_netem"}}
	status, out := boot(t, cfg, `
		printf '%s in %s' "$WORD" "$PWD"
		ulimit -l >limit
		ip link add dummy7 type dummy && ip link add veth7 type veth && tc qdisc add dev dummy7 root netem delay 1ms && echo made >links
		touch /etc/godat-guest 2>/dev/null && echo written >root
		exit 3`)
	assert.Equal(t, 3, status)
	assert.Equal(t, "it's in "+dir, out)
	limit, err := os.ReadFile(filepath.Join(dir, "limit"))
	require.NoError(t, err)
	assert.Equal(t, "unlimited\n", string(limit))
	assert.FileExists(t, filepath.Join(dir, "links"))
	assert.NoFileExists(t, filepath.Join(dir, "root"), "the host's root is read-only")
}

// init kills what the program leaves behind, and reports the exit status meanwhile. The end
// of each of these processes is a signal to init.
func TestReportOfInitIsWholeWhileProcessesEnd(t *testing.T) {
	const reports = 5000
	_, report, ok := strings.Cut(string(initScript), "\nreport() ")
	require.True(t, ok)
	report, _, ok = strings.Cut(report, "\n# ")
	require.True(t, ok)
	file := filepath.Join(t.TempDir(), "reports")
	script := fmt.Sprintf("exec 3<>/dev/tty\nSECRET=word\nreport() %s\n"+
		"for i in $(seq %d); do true & true & true & true & report exit 7; done\n", report, reports)
	require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
	// script, the program, gives its child a terminal.
	out, err := exec.CommandContext(t.Context(), "script", "-qec", "busybox sh "+file, os.DevNull).Output()
	require.NoError(t, err)
	assert.Equal(t, reports, strings.Count(string(out), "word exit 7"))
}

func TestHostReachesAPortOfTheGuest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())

	g, err := Start(t.Context(), Config{Forward: []Forward{{port, 9999}}, Progress: os.Stderr},
		"busybox", "nc", "-l", "-p", "9999", "-e", "/bin/echo", "hello")
	require.NoError(t, err)
	defer g.Close()
	select {
	case <-g.Booted():
	case <-g.Done():
	}
	var got []byte
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		defer conn.Close()
		got, _ = io.ReadAll(conn)
		return len(got) > 0
	}, time.Minute, 200*time.Millisecond)
	assert.Equal(t, "hello\n", string(got))
	status, err := g.Wait()
	require.NoError(t, err)
	assert.Zero(t, status)
}

func TestProgramThatHangsIsEnded(t *testing.T) {
	_, err := Run(t.Context(), Config{Timeout: 2 * time.Second}, "sleep", "1000")
	require.ErrorIs(t, err, ErrTimeout)

	ctx, cancel := context.WithCancel(t.Context())
	g, err := Start(ctx, Config{}, "sleep", "1000")
	require.NoError(t, err)
	cancel()
	_, err = g.Wait()
	require.ErrorIs(t, err, context.Canceled)
}

func TestDevicesRunTheirOwnTools(t *testing.T) {
	for _, kind := range []string{"rxe", "siw"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			conf := fmt.Sprintf("%s u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"eth0 0\" \"\"\n", kind)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "dat.conf"), []byte(conf), 0o644))
			script, err := os.ReadFile("testdata/peers.sh")
			require.NoError(t, err)
			cfg := Config{Devices: []string{kind + "0"}, Env: []string{"DAT_OVERRIDE=" + filepath.Join(dir, "dat.conf")}}
			status, out := boot(t, cfg, string(script))
			assert.Zero(t, status)
			assert.Contains(t, out, "ping data: rdma-ping-2: CDEFGHIJKLMNOPQRSTUVWXYZ")
			assert.Contains(t, out, "WQE/Sec", "dapltest's statistics")
			if kind == "rxe" {
				assert.Contains(t, out, "20 iters in", "ibv_rc_pingpong's result")
			}
		})
	}
}
