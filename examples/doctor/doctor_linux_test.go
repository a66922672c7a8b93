package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const nobody = 65534

// asNobody calls f on a thread that has no rights to files of others.
func asNobody(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		_ = syscall.Setfsuid(nobody)
		f()
	}()
	<-done
}

func TestNobodyHearsThatDevicesAreClosedToHim(t *testing.T) {
	m := stage(t, nil)
	for _, dir := range []string{m.root, filepath.Dir(m.root)} {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	for _, file := range []string{"uverbs0", "rdma_cm"} {
		mode := os.FileMode(0o600)
		if os.Getuid() != 0 {
			mode = 0 // the files are this user's own
		}
		require.NoError(t, os.Chmod(filepath.Join(m.root, "dev/infiniband", file), mode))
	}
	var l line
	asNobody(func() { l = deviceFiles(m) })
	assert.Equal(t, bad, l.State, l)
	assert.Contains(t, l.Says, "permission denied")
	assert.Contains(t, l.Do, "udev")
}

// TestTheProgramRunsInAnEmptyRootAndAsNobody needs root for both.
func TestTheProgramRunsInAnEmptyRootAndAsNobody(t *testing.T) {
	root := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(root, "doctor"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, dir := range []string{root, filepath.Dir(root)} {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	for name, attr := range map[string]*syscall.SysProcAttr{
		"empty root": {Chroot: root},
		"nobody":     {Credential: &syscall.Credential{Uid: nobody, Gid: nobody}},
	} {
		cmd := exec.Command("/doctor", "--json")
		if attr.Chroot == "" {
			cmd.Path = filepath.Join(root, "doctor")
		}
		cmd.Dir, cmd.SysProcAttr = "/", attr
		text, err := cmd.Output()
		if errors.Is(err, syscall.EPERM) {
			continue // the test has no right to change root or user
		}
		var r report
		require.NoError(t, json.Unmarshal(text, &r), "%s: %v", name, err)
		assert.Equal(t, r.OK, err == nil, "%s: the exit status", name)
		assert.Equal(t, fine, of(t, r.Lines, "loop to itself").State, name)
		assert.Equal(t, fine, of(t, r.Lines, "iwarp to itself").State, "%s: %s", name, text)
		if attr.Chroot != "" {
			assert.True(t, r.OK, "%s: %s", name, text)
			assert.Equal(t, "unknown: can't read /proc/sys/net/core/somaxconn", of(t, r.Lines, "backlog").Says)
		}
	}
}
