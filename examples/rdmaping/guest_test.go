//go:build guest

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These run in the guest, on soft-RoCE, against the C programs of ibverbs-utils and perftest:
// see hw/ibv/test-guest.sh.

const (
	guestAddress  = "10.0.2.15"
	guestPatience = 3 * time.Minute
)

type guestRun struct {
	test        string
	size, count int
	more        string
}

// iters is what this program prints of a run.
func (r *guestRun) iters(t *testing.T) string {
	return strconv.Itoa(messages(*ourOptions(t, r.test, r.size, r.count, r.more))) + " iters in "
}

// guestRuns are the tests, and what the C program gets for each besides size and count.
var guestRuns = []guestRun{
	{test: "pingpong", size: 1, count: 1000, more: "-c"},
	{test: "pingpong", size: 4096, count: 1000, more: "-c -e"},
	{test: "pingpong", size: 65536, count: 200, more: "-c -r 20"},
	{test: "pingpong", size: 1 << 20, count: 20, more: "-c -m 512 -r 4"},
	{test: "srq_pingpong", size: 4096, count: 400, more: "-c -q 4"},
	{test: "send_lat", size: 2, count: 500},
	{test: "send_lat", size: 5000, count: 100, more: "-e"},
	{test: "send_bw", size: 65536, count: 200},
	{test: "write_bw", size: 65536, count: 200},
	{test: "read_bw", size: 65536, count: 200},
	{test: "atomic_bw", size: 8, count: 200},
	{test: "write_lat", size: 2, count: 500},
	{test: "write_lat", size: 5000, count: 100, more: "-m 512"},
	{test: "read_lat", size: 2, count: 200},
	{test: "read_lat", size: 5000, count: 100, more: "-e"},
	{test: "atomic_lat", size: 8, count: 200},
	{test: "send_bw", size: 4096, count: 200, more: "-q 4"},
	{test: "send_bw", size: 4096, count: 200, more: "-b"},
	{test: "write_bw", size: 4096, count: 200, more: "-q 5"},
	{test: "write_bw", size: 65536, count: 100, more: "-b"},
	{test: "read_bw", size: 4096, count: 200, more: "-q 3"},
	{test: "read_bw", size: 65536, count: 100, more: "-b"},
	{test: "atomic_bw", size: 8, count: 100, more: "-q 2 -b"},
}

// All sizes take long under emulation, so each of these tests runs with one of the two as the server.
var (
	guestServed = []guestRun{
		{test: "send_bw", count: 5, more: "-a -b -q 2"},
		{test: "write_bw", count: 5, more: "-a"},
		{test: "read_bw", count: 5, more: "-a -b"},
	}
	guestServes = []guestRun{
		{test: "read_lat", count: 5, more: "-a"},
		{test: "write_lat", count: 5, more: "-a"},
		{test: "send_lat", count: 5, more: "-a"},
	}
)

// guestPort is the port of the next test.
var guestPort = 18600

// theirs is the C program of a test; the end of ctx kills it.
func theirs(ctx context.Context, t *testing.T, test string, size, count int, more ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	device := os.Getenv("GODAT_GUEST_DEVICE")
	args := []string{"-d", device, "-p", strconv.Itoa(guestPort), "-n", strconv.Itoa(count)}
	program := "ib_" + test
	switch test {
	case "pingpong":
		program = "ibv_rc_pingpong"
	case "srq_pingpong":
		program = "ibv_srq_pingpong"
	}
	gid, key := gidIndex(t, device), "-x"
	if strings.HasSuffix(test, "pingpong") {
		key = "-g"
	} else {
		args = append(args, "-F") // without it a clock that runs unevenly, as an emulated one does, ends the program
	}
	args = append(args, key, gid)
	if size != 0 && !strings.HasPrefix(test, "atomic") {
		args = append(args, "-s", strconv.Itoa(size))
	}
	cmd := exec.CommandContext(ctx, program, append(args, more...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// gidIndex is the index of the GID of guestAddress.
func gidIndex(t *testing.T, device string) string {
	t.Helper()
	require.NotEmpty(t, device, "these tests run in the guest: see hw/ibv/test-guest.sh")
	names, err := filepath.Glob("/sys/class/infiniband/" + device + "/ports/1/gids/*")
	require.NoError(t, err)
	for _, name := range names {
		if text, _ := os.ReadFile(name); strings.HasSuffix(strings.TrimSpace(string(text)), ":ffff:0a00:020f") {
			return filepath.Base(name)
		}
	}
	require.Fail(t, "no GID of "+guestAddress)
	return ""
}

// ourOptions are the options of this program, for what the C program gets besides size and count.
func ourOptions(t *testing.T, test string, size, count int, more string) *options {
	o := options{Test: test, Size: size, Count: count, Provider: "ibv:" + os.Getenv("GODAT_GUEST_DEVICE")}
	words := strings.Fields(more)
	for i, word := range words {
		switch word {
		case "-a":
			o.All = true
		case "-b":
			o.Both = true
		case "-c":
			o.Check = true
		case "-m", "-q":
			n, err := strconv.Atoi(words[i+1])
			require.NoError(t, err)
			*map[string]*int{"-m": &o.MTU, "-q": &o.Pairs}[word] = n
		}
	}
	checked := command(t, o)
	checked.Port, checked.Timeout = uint16(guestPort), guestPatience
	return checked
}

func TestOurServerServesTheCProgram(t *testing.T) {
	for _, r := range slices.Concat(guestRuns, guestServed) {
		t.Run(fmt.Sprintf("%s %d %s", r.test, r.size, r.more), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
			defer cancel()
			guestPort++
			cmd, theirOut := theirs(ctx, t, r.test, r.size, r.count, append(strings.Fields(r.more), guestAddress)...)
			var out bytes.Buffer
			ready, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- run(ctx, ourOptions(t, r.test, r.size, r.count, r.more), &out, func(string) { close(ready) })
			}()
			<-ready
			require.NoError(t, cmd.Run(), theirOut)
			require.NoError(t, <-ended)
			assert.Contains(t, out.String(), r.iters(t))
		})
	}
}

func TestOurClientIsServedByTheCProgram(t *testing.T) {
	for _, r := range slices.Concat(guestRuns, guestServes) {
		t.Run(fmt.Sprintf("%s %d %s", r.test, r.size, r.more), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
			defer cancel()
			guestPort++
			cmd, theirOut := theirs(ctx, t, r.test, r.size, r.count, strings.Fields(r.more)...)
			require.NoError(t, cmd.Start())
			awaitPort(t, guestPort)
			o := ourOptions(t, r.test, r.size, r.count, r.more)
			o.Host = guestAddress
			var out bytes.Buffer
			err := run(ctx, o, &out, nil)
			if err != nil {
				cancel()
			}
			theirErr := cmd.Wait()
			require.NoError(t, err, theirOut)
			require.NoError(t, theirErr, theirOut)
			assert.NotContains(t, theirOut.String(), "invalid data")
			assert.Contains(t, out.String(), r.iters(t))
		})
	}
}

// awaitPort waits until a server listens. To connect would be to be its client.
func awaitPort(t *testing.T, port int) {
	t.Helper()
	listens := fmt.Sprintf(":%04X 00000000:0000 0A", port)
	require.Eventually(t, func() bool {
		table, err := os.ReadFile("/proc/net/tcp")
		return assert.NoError(t, err) && strings.Contains(string(table), listens)
	}, guestPatience, 20*time.Millisecond)
}

func TestAPeerWithoutAGIDIsToldToGiveOne(t *testing.T) {
	guestPort++
	o := ourOptions(t, "pingpong", 64, 1, "")
	ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ibv_rc_pingpong", "-d", os.Getenv("GODAT_GUEST_DEVICE"), "-p", strconv.Itoa(guestPort), guestAddress)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- run(ctx, o, &bytes.Buffer{}, func(string) { close(ready) }) }()
	<-ready
	require.Error(t, cmd.Run())
	require.ErrorContains(t, <-ended, "start ibv_rc_pingpong with -g INDEX, of a GID like "+guestAddress)
}
