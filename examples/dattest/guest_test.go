//go:build guest

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These run in the guest, on the device that it was booted with, against the dapltest
// of dapl2-utils: see hw/ibv/test-guest.sh.

const (
	guestAddress  = "10.0.2.15"
	guestPatience = 3 * time.Minute // for one command line
	guestFarewell = time.Minute     // for a server that was asked to quit

	guestMix = "client RW 4096 1 server RW 2048 4 server RR 1024 1 client RR 2048 1 client SR 1024 3 -f server SR 256 3 -f"
)

// guestLines are the command lines of clients, each with the counts that the client
// must print: MB sent and received, read and written by RDMA. They were computed by
// hand: endpoints × iterations × bytes, and with -V one barrier of 4096 bytes from the
// client and two from the server in each iteration.
var guestLines = []struct {
	test, args string
	megabytes  []float64 // of a transaction test
	raw        string    // of a performance test, without the fields that depend on time
}{
	{test: "T", args: "-i 16 client SR 8192 server SR 8192", megabytes: []float64{0.131, 0.131, 0, 0}},
	{test: "T", args: "-i 8 -t 2 -w 2 -V " + guestMix, megabytes: []float64{0.229, 0.287, 0.098, 0.393}},
	{test: "T", args: "-i 8 -P -V " + guestMix, megabytes: []float64{0.057, 0.072, 0.025, 0.098}},
	{
		test: "T", args: "-i 8 -V client SR 8192 3 server SR 8192 3 server RW 65536 client RR 65536",
		megabytes: []float64{0.229, 0.262, 0.524, 0.524},
	},
	{test: "T", args: "-i 8 -w 2 -r client SR 4096 server SR 4096", megabytes: []float64{0.066, 0.066, 0, 0}},
	{test: "P", args: "-i 64 -p 8 RW 4096 2", raw: "RW, 64, 4096, 2, 8, "},
	{test: "P", args: "-m p -i 64 -p 4 RR 4096", raw: "RR, 64, 4096, 1, 4, "},
}

// side is dapltest or dattest, and the name by which it knows the device.
type side struct{ name, program, device string }

func ours(device string) side {
	return side{name: "ours on " + device, program: os.Args[0], device: device}
}

func theirs() side {
	kind := strings.TrimSuffix(os.Getenv("GODAT_GUEST_DEVICE"), "0")
	return side{name: "theirs", program: "dapltest", device: kind}
}

// pairs are all pairs of a server and a client of which exactly one is dattest.
func pairs(t *testing.T) (all [][2]side) {
	t.Helper()
	device := os.Getenv("GODAT_GUEST_DEVICE")
	require.NotEmpty(t, device, "these tests run in the guest: see hw/ibv/test-guest.sh")
	ourselves := []side{ours("ibv:" + device)}
	if strings.HasPrefix(device, "siw") { // the kernel's iWARP, and the iWARP in Go
		ourselves = append(ourselves, ours("iwarp:"+guestAddress))
	}
	for _, o := range ourselves {
		all = append(all, [2]side{o, theirs()}, [2]side{theirs(), o})
	}
	return all
}

// asProgram is the environment variable that makes the test binary run the program.
const asProgram = "GODAT_DATTEST"

func init() {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
}

// command is the process of a side; the end of ctx kills it.
func (s side) command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.program, append([]string{args[0], args[1], "-D", s.device}, args[2:]...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "DAT_OVERRIDE="+registry(t))
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// registry writes a dat.conf that names the guest's devices to the C program.
func registry(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "dat.conf")
	var conf string
	for _, kind := range []string{"rxe", "siw"} {
		conf += kind + ` u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "eth0 0" ""` + "\n"
	}
	require.NoError(t, os.WriteFile(path, []byte(conf), 0o644))
	return path
}

// guestPort is the port of the next server. Its tests use the ports after it.
var guestPort = 40000

// output is what a process has printed. Each time that the process prints that its
// server is ready, ready gets a value.
type output struct {
	mu    sync.Mutex
	all   bytes.Buffer
	ready chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := strings.Count(o.all.String(), "Service Point Ready")
	o.all.Write(b)
	for range strings.Count(o.all.String(), "Service Point Ready") - before {
		o.ready <- struct{}{}
	}
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// trouble is what either program prints when something went wrong. The C program exits
// with 0 nevertheless.
var trouble = regexp.MustCompile(`(?i)error|fail|mismatch|bad |unexpected|reject|cannot|not support`)

func TestAgainstTheCProgram(t *testing.T) {
	for _, pair := range pairs(t) {
		server, client := pair[0], pair[1]
		t.Run("server "+server.name+", client "+client.name, func(t *testing.T) { playAgainst(t, server, client) })
	}
}

func playAgainst(t *testing.T, server, client side) {
	guestPort += 100
	port := strconv.Itoa(guestPort)
	serverOut := &output{ready: make(chan struct{}, 100)}
	serving := server.command(t.Context(), t, "-T", "S", "-n", port)
	serving.Stdout, serving.Stderr = serverOut, serverOut
	require.NoError(t, serving.Start())
	ended := make(chan error, 1)
	go func() { ended <- serving.Wait() }()
	t.Cleanup(func() {
		_ = serving.Process.Kill() // it has ended already if all went well
		if t.Failed() {
			t.Logf("the server said:\n%s", serverOut)
		}
	})
	for _, line := range guestLines {
		ok := t.Run(line.test+" "+line.args, func(t *testing.T) {
			printed := ask(t, serverOut, client, port, append([]string{"-T", line.test}, strings.Fields(line.args)...))
			if line.raw != "" {
				assert.Contains(t, printed, "raw: "+line.raw)
				return
			}
			// The C program truncates where this one rounds.
			assert.InDeltaSlice(t, line.megabytes, megabytes(t, printed), 0.0101, printed)
		})
		if !ok {
			return
		}
	}
	t.Run("Q", func(t *testing.T) {
		ask(t, serverOut, client, port, []string{"-T", "Q"})
		select {
		case err := <-ended:
			if server.program == theirs().program && err != nil && err.Error() == "signal: segmentation fault" {
				t.Log("the C server has crashed while it quit, as it may on a busy machine; it had served all")
				err = nil
			}
			require.NoError(t, err)
		case <-time.After(guestFarewell):
			t.Fatal("the server does not quit")
		}
		assert.NotRegexp(t, trouble, serverOut.String())
		assert.Equal(t, 5, strings.Count(serverOut.String(), "Server: Transaction Test Finished for this client"))
	})
}

func waitReady(t *testing.T, serverOut *output) {
	t.Helper()
	select {
	case <-serverOut.ready:
	case <-time.After(guestPatience):
		t.Fatal("the server does not wait for a client")
	}
}

// ask runs a client to its end when the server waits for one, and returns what it
// printed. The C client crashed once in some seventy runs when its test was over. If the
// server has ended that test in order and waits again, the client is run once more.
func ask(t *testing.T, serverOut *output, client side, port string, args []string) string {
	t.Helper()
	waitReady(t, serverOut)
	printed, err := client.run(t, port, args)
	if client == theirs() && crashed(err) {
		fmt.Printf("different: the C client ended with %v and was run once more: %v\n", err, args)
		waitReady(t, serverOut)
		printed, err = client.run(t, port, args)
	}
	require.NoError(t, err, printed)
	require.NotRegexp(t, trouble, printed)
	return printed
}

// run runs a client to its end.
func (s side) run(t *testing.T, port string, args []string) (printed string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
	defer cancel()
	args = append(args[:2:2], append([]string{"-s", guestAddress, "-n", port}, args[2:]...)...)
	out, err := s.command(ctx, t, args...).CombinedOutput()
	return string(out), err
}

// crashed reports whether a process ended by a memory fault of its own.
func crashed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGSEGV
}

var total = regexp.MustCompile(`Total (?:Send|Recv|RDMA Read|RDMA Write) +: +([0-9.]+) MB`)

// megabytes are the counts that the client of a transaction test prints.
func megabytes(t *testing.T, printed string) (all []float64) {
	t.Helper()
	for _, m := range total.FindAllStringSubmatch(printed, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}
