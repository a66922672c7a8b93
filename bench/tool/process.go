package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// output is what a process prints, and can be read while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends what the process printed.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// process is a program that runs.
type process struct {
	cmd   *exec.Cmd
	out   output
	ended chan struct{}
	err   error // after ended
}

// start starts a program, which is killed when ctx ends.
func start(ctx context.Context, env []string, path string, args []string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, path, args...), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.watch()
	return p, nil
}

// watch waits for the process's end.
func (p *process) watch() {
	p.err = p.cmd.Wait()
	close(p.ended)
}

// kill ends the process and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// wait waits for the process's end, which must be a success.
func (p *process) wait(ctx context.Context) error {
	<-p.ended
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w; it said %q", ctx.Err(), lastLine(p.out.String()))
	case p.err != nil:
		return fmt.Errorf("%w: %s", p.err, lastLine(p.out.String()))
	}
	return nil
}

// used is the processor time of a process that has ended.
func (p *process) used() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// listens waits until the process listens on a TCP port, or if ready is not empty until it
// says that.
func (p *process) listens(ctx context.Context, port int, ready string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if ready != "" && strings.Contains(p.out.String(), ready) || ready == "" && listening(port) {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return errors.Join(errors.New("the server has ended"), p.wait(ctx))
		}
	}
}

// listening reports whether a process listens on a TCP port. To connect would take the
// place of the tool's client.
func listening(port int) bool {
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		if err == nil && hasListener(string(text), port) {
			return true
		}
	}
	return false
}

// hasListener finds a listening port in a table of Linux's sockets.
func hasListener(table string, port int) bool {
	const listens = "0A"
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && f[3] == listens && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
			return true
		}
	}
	return false
}

// freePort returns a TCP port that nothing listens on.
func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err := errors.Join(err, ln.Close()); err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}
