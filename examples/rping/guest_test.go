//go:build guest

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// These run in the guest, against the rping that comes with librdmacm, on the device
// that the guest was booted with. This rping runs on the same device, or on the adapter
// that the environment names, with its parameters: see hw/ibv/test-guest.sh and
// hw/iwarp/test-guest.sh.

const (
	guestAddress  = "10.0.2.15"
	guestPatience = time.Minute
	guestPings    = 5
)

var guestSizes = []int{64, 100, 4096, mostSize}

// guestPort is the port of the next test. A port that was just used may not be free
// yet.
var guestPort = 7174

func guestAdapter(t *testing.T, ctx context.Context) *dat.IA {
	t.Helper()
	device := os.Getenv("GODAT_GUEST_DEVICE")
	require.NotEmpty(t, device, "these tests run in the guest: see hw/ibv/test-guest.sh")
	name := cmp.Or(os.Getenv("GODAT_RPING_IA"), "ibv:"+device)
	params := make(map[string]string)
	for _, p := range strings.Fields(os.Getenv("GODAT_RPING_PARAMS")) {
		key, value, _ := strings.Cut(p, "=")
		params[key] = value
	}
	ia, err := dat.Open(ctx, name, dat.WithParams(params))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	return ia
}

// theirs is the C program on the next port; the end of ctx kills it.
func theirs(ctx context.Context, size int, role ...string) (*exec.Cmd, *bytes.Buffer) {
	args := append(role, "-a", guestAddress, "-p", strconv.Itoa(guestPort), "-S", strconv.Itoa(size), "-V", "-v")
	cmd := exec.CommandContext(ctx, "rping", args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

func TestOurServerAnswersTheirClient(t *testing.T) {
	for _, size := range guestSizes {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
			defer cancel()
			ia := guestAdapter(t, ctx)
			guestPort++
			cmd, clientOut := theirs(ctx, size, "-c", "-C", strconv.Itoa(guestPings))
			var serverOut bytes.Buffer
			ready, done := make(chan struct{}), make(chan error, 1)
			o := options{Port: uint64(guestPort), Size: size, Verbose: true}
			go func() { done <- serve(ctx, ia, &o, &serverOut, func(string) { close(ready) }) }()
			<-ready
			err := cmd.Run()
			require.NoError(t, err, clientOut)
			require.NoError(t, <-done)
			assert.Equal(t, guestPings, strings.Count(serverOut.String(), "server ping data: rdma-ping-"))
			assert.Equal(t, guestPings, strings.Count(clientOut.String(), "ping data: rdma-ping-"), clientOut)
		})
	}
}

func TestTheirServerAnswersOurClient(t *testing.T) {
	for _, size := range guestSizes {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
			defer cancel()
			ia := guestAdapter(t, ctx)
			guestPort++
			cmd, serverOut := theirs(ctx, size, "-s")
			require.NoError(t, cmd.Start())
			awaitServer(t, cmd)
			o := options{Addr: guestAddress, Port: uint64(guestPort), Size: size, Count: guestPings, Validate: true, Verbose: true}
			var clientOut bytes.Buffer
			require.NoError(t, ping(ctx, ia, &o, &clientOut))
			assert.Equal(t, guestPings, strings.Count(clientOut.String(), "ping data: rdma-ping-"))
			require.NoError(t, cmd.Wait(), serverOut)
			assert.Equal(t, guestPings, strings.Count(serverOut.String(), "server ping data: rdma-ping-"), serverOut)
		})
	}
}

// awaitServer waits until the C program's main thread sleeps on its semaphore, as it does
// when rdma_listen has returned. A connection that comes to siw earlier may never be
// answered: see hw/iwarp's documentation.
func awaitServer(t *testing.T, server *exec.Cmd) {
	t.Helper()
	sleeps := fmt.Sprintf("%d ", syscall.SYS_FUTEX)
	require.Eventually(t, func() bool {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", server.Process.Pid))
		return assert.NoError(t, err) && strings.HasPrefix(string(call), sleeps)
	}, guestPatience, 10*time.Millisecond)
}
