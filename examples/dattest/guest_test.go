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
	guestPatience = time.Minute // for one command line
	guestFarewell = time.Minute // for a server that was asked to quit

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
	args = append([]string{s.program, args[0], args[1], "-D", s.device}, args[2:]...)
	if s == theirs() { // what it has printed must be here when it is killed
		args = append([]string{"stdbuf", "-oL"}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
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
	v := &visits{client: client, port: strconv.Itoa(guestPort), server: &output{ready: make(chan struct{}, 100)}}
	serving := server.command(t.Context(), t, "-T", "S", "-n", v.port)
	serving.Stdout, serving.Stderr = v.server, v.server
	require.NoError(t, serving.Start())
	ended := make(chan error, 1)
	go func() { ended <- serving.Wait() }()
	t.Cleanup(func() {
		_ = serving.Process.Kill() // it has ended already if all went well
		if t.Failed() {
			t.Logf("the server said:\n%s", v.server)
		}
	})
	for _, line := range guestLines {
		ok := t.Run(line.test+" "+line.args, func(t *testing.T) {
			printed := v.ask(t, append([]string{"-T", line.test}, strings.Fields(line.args)...))
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
		printed, err := v.visit(t, []string{"-T", "Q"})
		if why := client.excuse(printed, err); why != "" {
			fmt.Printf("different: %s, when it asked the server to quit\n", why)
		} else {
			inOrder(t, printed, err)
		}
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
		said := v.server.String()
		if v.refused {
			said = endedTest.ReplaceAllString(said, "")
		}
		assert.NotRegexp(t, trouble, said)
		assert.Equal(t, v.transactions, strings.Count(v.server.String(), "Server: Transaction Test Finished for this client"))
	})
}

// visits are a client's visits to a server, one after the other.
type visits struct {
	client       side
	port         string
	server       *output
	transactions int  // transaction tests that the server must have finished
	refused      bool // a connection failed by siw's fault and the C server's
}

// ask has the client run one test, and returns what the client printed. A client that
// fails by no fault of ours is run once more, when the server has ended that test and
// waits again.
func (v *visits) ask(t *testing.T, args []string) string {
	t.Helper()
	printed, err := v.visit(t, args)
	if why := v.client.excuse(printed, err); why != "" {
		fmt.Printf("different: %s; the client was run once more: %v\n", why, args)
		v.refused = v.refused || v.client != theirs()
		printed, err = v.visit(t, args)
	}
	inOrder(t, printed, err)
	return printed
}

// inOrder checks that a client met no trouble.
func inOrder(t *testing.T, printed string, err error) {
	t.Helper()
	require.NoError(t, err, printed)
	require.NotRegexp(t, trouble, printed)
}

// visit runs the client to its end when the server waits for one.
func (v *visits) visit(t *testing.T, args []string) (printed string, err error) {
	t.Helper()
	select {
	case <-v.server.ready:
	case <-time.After(guestPatience):
		t.Fatal("the server does not wait for a client")
	}
	if args[1] == "T" {
		v.transactions++
	}
	return v.client.run(t, v.port, args)
}

var (
	// failedSend is what libdapl2 says of a send that the device completed with an error.
	failedSend = regexp.MustCompile(`DTO completion ERR: status 2, op OP_SEND`)
	// refusedAnswer is what our client on siw says when siw refuses the peer's answer.
	refusedAnswer = regexp.MustCompile(`UNREACHABLE: verbs: RDMA_CM_EVENT_CONNECT_ERROR: invalid argument`)
	// endedTest is what the C server then says of a performance test.
	endedTest = regexp.MustCompile(`Test Error: Received Sync_Msg-reaping DTO problem, status = FAILURE\n\s*Length mismatch.*\nServer: Test Failed\n`)
)

// excuse says why a client that ended so may have failed by no fault of ours. It is empty
// if there is no such reason.
//
// The C client ended with a memory fault in one of 755 runs on a busy machine. By its
// source, libdapl2 does not join its thread, which may still return from a lock when the
// library is unloaded.
//
// siw completes a send with an error, though the peer has the message, if the peer
// closes the connection before siw looks whether it may go on (siw_qp_sq_proc_tx). The
// client sends the last message of a test, and the server closes when it has come. Where
// that call was delayed on purpose, some C clients said so, and some waited without end.
//
// siw refuses an answer to a request for a connection when a message is close behind it
// (siw_recv_mpa_rr). The C server of a performance test sends first. Where each third of
// these calls was delayed by 20 ms, our client met this in nine of ten runs.
func (s side) excuse(printed string, err error) string {
	onSIW := strings.Contains(s.device, "siw")
	switch {
	case s != theirs():
		if onSIW && refusedAnswer.MatchString(printed) {
			return "siw refused an answer with a message close behind it"
		}
	case crashed(err):
		return fmt.Sprintf("the C client ended with %v", err)
	case onSIW && failedSend.MatchString(printed):
		return "siw failed a send that its peer has received"
	}
	return ""
}

// run runs a client to its end.
func (s side) run(t *testing.T, port string, args []string) (printed string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
	defer cancel()
	args = append(args[:2:2], append([]string{"-s", guestAddress, "-n", port}, args[2:]...)...)
	out, err := s.command(ctx, t, args...).CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("the client did not end in %v: %w", guestPatience, err)
	}
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
