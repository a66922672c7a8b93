// Package tool runs programs in C that measure transports, and reads what they print.
//
// Each has a server and a client on this host. A turn starts both, so that their start
// lies outside of what they measure.
package tool

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"godat/bench/load"
)

// Tool is a program with the arguments for one measurement.
type Tool struct {
	Name      string // of rows
	Binary    string
	Package   string // of Debian
	RoundTrip bool   // what it measures are messages and their answers
	Does      string // and what it does not

	device bool // it needs an RDMA device
	// timed says that it measures for whole seconds, in place of a count.
	timed bool
	// stays says that the server does not end with its client.
	stays bool
	// registry says that it reads from DAPL's registry file which adapters there are.
	registry bool
	// ready is what a server says that listens on no TCP port.
	ready          string
	env            []string
	server, client func(turn) []string
	read           func(output string, t turn) (told, error)
}

// turn is what one run of a tool is told.
type turn struct {
	port, size, depth int
	count             int // messages or round trips
	seconds           int // of a tool that is timed
	device            device
}

// told is what a tool says of its run.
type told struct {
	count        int
	median, mean time.Duration // of round trips; 0 if it does not tell
	perSecond    float64
}

// Runner runs a tool in turns.
type Runner struct {
	tool    *Tool
	path    string
	turn    turn
	began   bool
	started time.Duration // processor time of a run of few messages
	each    time.Duration // time of one message, by the run before
}

const (
	fewest, most = 200, 2_000_000 // messages of a run
	// patience bounds a run beside the time that it measures.
	patience = 20 * time.Second
)

// Start prepares to run the tool with messages of size bytes. It refuses if the program
// or a device that it needs is missing.
func (t *Tool) Start(size, depth int) (*Runner, error) {
	path, err := exec.LookPath(t.Binary)
	if err != nil {
		return nil, load.Refusal(fmt.Sprintf("%s is not installed (Debian's package %s)", t.Binary, t.Package))
	}
	if runtime.GOOS != "linux" && t.ready == "" {
		return nil, load.Refusal("when its server listens is known on Linux alone")
	}
	r := &Runner{tool: t, path: path, turn: turn{size: size, depth: depth}}
	if t.device {
		if r.turn.device, err = findDevice(os.DirFS("/sys/class/infiniband")); err != nil {
			return nil, load.Refusal(err.Error())
		}
	}
	return r, nil
}

// Refuse refuses no load: the tool's arguments are its load.
func (*Runner) Refuse(load.Load) error { return nil }

// Close does nothing: each turn ends its processes.
func (*Runner) Close() error { return nil }

// Run runs the tool once. The first run has few messages: it finds how long one takes, and
// how much processor time the start takes.
func (r *Runner) Run(ld load.Load) (load.Result, error) {
	r.turn.count, r.turn.seconds = fewest, int(math.Ceil(ld.Duration.Seconds()))
	if r.each > 0 {
		r.turn.count = min(max(int(ld.Duration/r.each), fewest), most)
	}
	said, used, err := r.once(patience + 2*ld.Duration)
	if err != nil {
		return load.Result{}, load.Refusal(fmt.Sprintf("%s: %v", r.tool.Binary, err))
	}
	if !r.began && !r.tool.timed {
		r.started = used
	}
	r.began = true
	r.each = max(1, time.Duration(float64(time.Second)/said.perSecond))
	return load.Result{
		Count: int64(said.count), Took: time.Duration(float64(said.count) / said.perSecond * float64(time.Second)),
		Median: said.median, Mean: said.mean, Processor: max(0, used-r.started), Allocs: -1,
	}, nil
}

// once runs a server and a client, and returns what the client said and the processor time
// of both.
func (r *Runner) once(limit time.Duration) (said told, used time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	t := r.turn
	if t.port, err = freePort(); err != nil {
		return said, 0, err
	}
	env, clean, err := r.environment()
	if err != nil {
		return said, 0, err
	}
	defer clean()
	server, err := start(ctx, env, r.path, r.tool.server(t))
	if err != nil {
		return said, 0, err
	}
	defer server.kill()
	if err := server.listens(ctx, t.port, r.tool.ready); err != nil {
		return said, 0, err
	}
	client, err := start(ctx, env, r.path, r.tool.client(t))
	if err != nil {
		return said, 0, err
	}
	defer client.kill()
	if err := client.wait(ctx); err != nil {
		return said, 0, err
	}
	if r.tool.stays {
		server.kill()
	} else if err := server.wait(ctx); err != nil {
		return said, 0, err
	}
	said, err = r.tool.read(client.out.String(), t)
	return said, client.used() + server.used(), err
}

// environment is the tool's. clean removes the registry file that it names.
func (r *Runner) environment() (env []string, clean func(), err error) {
	env, clean = append(os.Environ(), r.tool.env...), func() {}
	if !r.tool.registry {
		return env, clean, nil
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, nil, err
	}
	clean = func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "dat.conf")
	if err := os.WriteFile(file, []byte(r.turn.device.datConf()), 0o600); err != nil {
		clean()
		return nil, nil, err
	}
	return append(env, "DAT_OVERRIDE="+file), clean, nil
}

// lastLine is the last line of a text that is not blank.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
