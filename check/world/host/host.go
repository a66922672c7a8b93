// Package host runs a program that was built for wasip1 as a function of a seed: one thread, no
// preemption, and a clock, sleeps and random numbers that come from here. A program whose goroutines
// all wait sleeps until its next timer, which takes no time. So an hour takes seconds, and two runs with the
// same seed are the same to the step.
package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// Limits end a run. They count what the program does, so they repeat as it does.
type Limits struct {
	Time  time.Duration // of the program's clock
	Spins int           // readings of the clock without a sleep between them
}

// Result is what a run was.
type Result struct {
	Output string
	Err    string        // why it ended, unless the program did with status 0
	Time   time.Duration // of the program's clock
	Sleeps int
}

// Program is a program that runs any number of times.
type Program struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

// Load compiles a program, and keeps what it made in a directory for the next Load of the same code.
func Load(ctx context.Context, code []byte, cache string) (*Program, error) {
	kept, err := wazero.NewCompilationCacheWithDir(cache)
	if err != nil {
		return nil, err
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCompilationCache(kept))
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	compiled, err := r.CompileModule(ctx, code)
	if err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return &Program{r, compiled}, nil
}

// Close gives the program's memory back.
func (p *Program) Close(ctx context.Context) error { return p.runtime.Close(ctx) }

// epoch is when each run begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// clock is the program's.
type clock struct {
	now      int64
	readings int // since the last sleep
	sleeps   int
	limits   Limits
	tick     int64
}

// limitErr is what a limit ends a run with.
type limitErr string

// reading is how long a reading of the clock takes: so much of it passes for a program that only computes.
const reading = 50 * time.Nanosecond

func (c *clock) read() int64 {
	c.now += int64(reading)
	if c.readings++; c.readings > c.limits.Spins {
		panic(limitErr(fmt.Sprintf("the program spins: %d readings of the clock without a sleep", c.readings)))
	}
	return c.now
}

func (c *clock) sleep(ns int64) {
	c.now += ns
	if c.tick > 0 { // as a system's timer does: who sleeps to nearly the same moment wakes at the same
		c.now += (c.tick - c.now%c.tick) % c.tick
	}
	c.sleeps, c.readings = c.sleeps+1, 0
	if time.Duration(c.now-epoch) > c.limits.Time {
		panic(limitErr(fmt.Sprintf("the program has not ended in %v", c.limits.Time)))
	}
}

// random is what the program takes for the system's random numbers.
type random struct{ *rand.PCG }

func (r random) Read(b []byte) (int, error) {
	for n := 0; n < len(b); n += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(b[n:], word[:])
	}
	return len(b), nil
}

// Run is what a run depends on, beside the program.
type Run struct {
	Seed uint64
	Limits
	Tick time.Duration // sleeps end at its multiples; 0 is at any time
	Env  map[string]string
	Args []string
}

// Run runs the program once.
func (p *Program) Run(ctx context.Context, run Run) Result {
	c := &clock{now: epoch, limits: run.Limits, tick: int64(run.Tick)}
	var out bytes.Buffer
	cfg := wazero.NewModuleConfig().WithName("").WithArgs(append([]string{"world"}, run.Args...)...).
		WithStdout(&out).WithStderr(&out).
		WithRandSource(random{rand.NewPCG(run.Seed, 0)}).
		WithNanotime(c.read, sys.ClockResolution(1)).
		WithWalltime(func() (int64, int32) { now := c.read(); return now / 1e9, int32(now % 1e9) }, sys.ClockResolution(1)).
		WithNanosleep(c.sleep).WithOsyield(func() {})
	for name, value := range run.Env {
		cfg = cfg.WithEnv(name, value)
	}
	module, err := p.runtime.InstantiateModule(withMemory(ctx), p.code, cfg)
	if module != nil {
		_ = module.Close(ctx)
	}
	r := Result{Output: out.String(), Time: time.Duration(c.now - epoch), Sleeps: c.sleeps}
	if exit, ok := errors.AsType[*sys.ExitError](err); err != nil && !(ok && exit.ExitCode() == 0) {
		r.Err, _, _ = strings.Cut(err.Error(), "\n") // behind it is the stack of the wasm code
	}
	return r
}
