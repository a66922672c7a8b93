package guest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Errors of programs that did not run to their end may wrap these.
var (
	// ErrTimeout: the program, or the boot, took too long.
	ErrTimeout = errors.New("timed out")
	// ErrMachine: the guest did not boot, or its kernel has reported a fault of its
	// own or tasks that hang. The program is not to blame, so a second try may
	// succeed.
	ErrMachine = errors.New("the guest's kernel failed, or did not boot")
)

// Guest is a machine that runs one program. Its methods may be called from any
// goroutine.
type Guest struct {
	// Immutable after Start.
	cfg     Config
	job     *job
	cancel  context.CancelFunc
	release func() // releases the tree in the cache
	scratch string // holds the initramfs and the log; removed at the end

	booted chan struct{} // closed when the program is about to start
	done   chan struct{} // closed when status and err are set

	// Written by run before it closes done.
	status int
	err    error

	once sync.Once
}

// Run runs a program in a guest and returns its exit status. An error means that
// the program did not run to its end: a tool is missing, the boot failed, a time
// limit passed (ErrTimeout) or ctx ended.
func Run(ctx context.Context, cfg Config, prog string, args ...string) (status int, err error) {
	g, err := Start(ctx, cfg, prog, args...)
	if err != nil {
		return 0, err
	}
	return g.Wait()
}

// Start boots a guest that runs a program. It looks up a program's name without a
// slash in the guest's PATH. The caller must call Wait or Close. When ctx ends, the
// guest is killed.
func Start(ctx context.Context, cfg Config, prog string, args ...string) (*Guest, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	tools, err := find(qemu, busybox, modprobe, rdma, aptCache)
	if err != nil {
		return nil, err
	}
	if err := static(tools[busybox]); err != nil {
		return nil, err
	}
	store, err := userCache()
	if err != nil {
		return nil, err
	}
	counted := readCounter()
	k, tree, release, err := acquire(ctx, store, cfg.Progress)
	if err != nil {
		return nil, err
	}
	g := &Guest{cfg: cfg, release: release, booted: make(chan struct{}), done: make(chan struct{})}
	g.job = &job{
		cfg: &g.cfg, kernel: k, tree: tree, tools: tools, secret: rand.Text(),
		prog: resolve(cfg.Dir, prog), args: args,
	}
	if err := g.prepare(ctx); err != nil {
		g.clean()
		return nil, err
	}
	g.job.rate = counted.rate()
	ctx, g.cancel = context.WithCancel(ctx)
	go g.run(ctx)
	return g, nil
}

// prepare writes the initramfs from which the machine boots.
func (g *Guest) prepare(ctx context.Context) (err error) {
	if g.scratch, err = os.MkdirTemp("", "godat-guest-"); err != nil {
		return fmt.Errorf("guest: %w", err)
	}
	var image bytes.Buffer
	if err := g.job.writeInitramfs(ctx, &image); err != nil {
		return err
	}
	return os.WriteFile(g.initrd(), image.Bytes(), 0o644)
}

func (g *Guest) initrd() string { return filepath.Join(g.scratch, "initrd") }
func (g *Guest) log() string    { return filepath.Join(g.scratch, "console") }

func (g *Guest) clean() {
	if g.scratch != "" {
		_ = os.RemoveAll(g.scratch)
	}
	g.release()
}

// Booted returns a channel that is closed when the program is about to start.
func (g *Guest) Booted() <-chan struct{} { return g.booted }

// Done returns a channel that is closed when the program, or the guest, has ended.
func (g *Guest) Done() <-chan struct{} { return g.done }

// Wait waits for the program and returns its exit status; see Run.
func (g *Guest) Wait() (status int, err error) {
	<-g.done
	return g.status, g.err
}

// Close kills the guest if it still runs, and waits until it has ended and its
// files are removed.
func (g *Guest) Close() {
	g.cancel()
	<-g.done
}

// run is the guest's goroutine: it starts the emulator, waits for its end, and sets
// the result.
func (g *Guest) run(ctx context.Context) {
	defer close(g.done)
	defer g.clean()
	defer g.cancel()
	// The emulator dies with the thread that starts it, so a killed program leaves
	// no emulator behind. Therefore that thread must live longer than the emulator.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if g.boot(ctx) {
		g.job.slowClock = true
		g.boot(ctx)
	}
}

// boot boots the machine and waits for its end. It returns true if the clock was wrong, for
// the first time: then the program has not begun, and no result is set.
func (g *Guest) boot(ctx context.Context) (again bool) {
	running, end := context.WithCancel(ctx)
	defer end()
	w := &watch{g: g, end: end, late: make(chan error, 1), stop: make(chan struct{}), gone: make(chan struct{}), began: time.Now()}
	w.con = newConsole(g.job.secret, g.cfg.Output, g.markBooted, w.readClock)
	var complaint bytes.Buffer
	cmd := exec.CommandContext(running, g.job.tools[qemu], g.job.arguments(g.initrd(), g.log())...)
	cmd.Stdout, cmd.Stderr = w.con, &complaint
	cmd.SysProcAttr = tied()
	cmd.WaitDelay = haltTimeout
	fmt.Fprintf(g.cfg.Progress, "guest: booting %s %s\n", g.job.kernel.name, strings.Join(g.cfg.Devices, " "))
	line, err := cmd.StdinPipe()
	w.line = line
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		g.err = fmt.Errorf("guest: %w", err)
		return false
	}
	go w.run()
	werr := cmd.Wait()
	close(w.stop)
	<-w.gone
	if w.again && ctx.Err() == nil {
		return true
	}
	g.finish(ctx, w, werr, complaint.String())
	return false
}

func (g *Guest) markBooted() { g.once.Do(func() { close(g.booted) }) }

// finish sets the result. Nothing writes to the console any more.
func (g *Guest) finish(ctx context.Context, w *watch, werr error, complaint string) {
	con := w.con
	var late error
	select {
	case late = <-w.late:
	default:
	}
	console := g.consoleTail()
	switch {
	case con.ended:
		g.status = con.status
		return
	case con.failed != nil:
		g.err = fmt.Errorf("guest: %w\n%s", con.failed, console)
	case late != nil:
		g.err = fmt.Errorf("guest: %w\n%s", late, console)
	case ctx.Err() != nil:
		g.err = fmt.Errorf("guest: %w", context.Cause(ctx))
		return
	default:
		g.err = fmt.Errorf("guest: the machine stopped before the program had ended (%v): %s\n%s",
			werr, strings.TrimSpace(complaint), console)
	}
	select {
	case <-g.booted:
		if !kernelFault.MatchString(console) {
			return
		}
	default:
	}
	g.err = fmt.Errorf("%w: %w", ErrMachine, g.err)
}

// kernelFault matches the kernel's reports of a fault of its own. For what the
// kernel does then, see arguments.
var kernelFault = regexp.MustCompile(
	`(?m)^\[ *\d+\.\d+\] .*(kernel BUG at|BUG: |Oops|Kernel panic|blocked for more than \d+ seconds|detected stalls|LOCKUP)`)

// consoleTail returns the last messages of the kernel and init.
func (g *Guest) consoleTail() string {
	const most = 12000 // a kernel's report of its fault fits
	text, err := os.ReadFile(g.log())
	if err != nil {
		return ""
	}
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return "the end of the console's log:\n" + string(text)
}
