// Package ends runs a measurement in processes of its own: a server and a client, which do what the
// program that started them orders, as lines of JSON over their input and output.
package ends

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// stalled is how long an order may take beyond the time that it names. Then the process is killed.
const stalled = 40 * time.Second

// Process is an end that this program has started.
type Process struct {
	Cmd   *exec.Cmd
	Stall time.Duration // how long an order may take beyond the time that it names
	Done  chan struct{} // closed when it has ended

	What string // its name in errors
	to   *json.Encoder
	from *json.Decoder
}

// Start starts an end by a command. It is killed when ctx ends. what names it in errors.
func Start(ctx context.Context, what string, command []string) (*Process, error) {
	p := &Process{What: what, Stall: stalled, Cmd: exec.CommandContext(ctx, command[0], command[1:]...), Done: make(chan struct{})}
	in, err := p.Cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	from, to := io.Pipe()
	p.to, p.from, p.Cmd.Stdout, p.Cmd.Stderr, p.Cmd.WaitDelay = json.NewEncoder(in), json.NewDecoder(from), to, os.Stderr, 5*time.Second
	if err := p.Cmd.Start(); err != nil {
		return nil, err
	}
	go p.wait(to)
	return p, nil
}

func (p *Process) wait(to *io.PipeWriter) {
	err := p.Cmd.Wait()
	if err == nil {
		err = io.EOF
	}
	_ = to.CloseWithError(fmt.Errorf("the process of the %s has ended: %w", p.What, err))
	close(p.Done)
}

// Kill ends the process at once.
func (p *Process) Kill() { _ = p.Cmd.Process.Kill() } // fails when it has ended

// Ask gives an order, which takes so long, and decodes its report. The error is not one that the report
// has.
func (p *Process) Ask(order any, takes time.Duration, report any) (err error) {
	guard := newGuard(takes+p.Stall, p.Kill)
	if err = p.to.Encode(order); err == nil {
		err = p.from.Decode(report)
	} else if errDecoded := p.from.Decode(report); errDecoded != nil {
		err = errDecoded // says how the process has ended
	}
	if !guard.stop() {
		return fmt.Errorf("the %s has not answered for %v, and was killed: %w", p.What, takes+p.Stall, errors.Join(err, os.ErrDeadlineExceeded))
	}
	return err
}

// Pair is a server and a client: two processes, or one that is both.
type Pair struct {
	Server, Client *Process
	closing        chan struct{} // closed when both are told to end
}

// Open starts a pair.
func Open(ctx context.Context, command []string, oneProcess bool) (_ *Pair, err error) {
	p := &Pair{closing: make(chan struct{})}
	if p.Server, err = Start(ctx, "server", command); err != nil {
		return nil, err
	}
	p.Client = p.Server
	if oneProcess {
		return p, nil
	}
	if p.Client, err = Start(ctx, "client", command); err != nil {
		p.Kill()
		return nil, err
	}
	go p.watch()
	return p, nil
}

// watch ends each process when the other has ended, unless both are told to.
func (p *Pair) watch() {
	select {
	case <-p.closing:
	case <-p.Server.Done:
		p.Client.Kill()
	case <-p.Client.Done:
		p.Server.Kill()
	}
}

// Both are the processes of the pair, the client first.
func (p *Pair) Both() []*Process {
	if p.Client == p.Server {
		return []*Process{p.Server}
	}
	return []*Process{p.Client, p.Server}
}

// Kill ends the processes at once.
func (p *Pair) Kill() {
	for _, end := range []*Process{p.Client, p.Server} {
		if end != nil {
			end.Kill()
			<-end.Done
		}
	}
}

// Close ends the processes in order: tell tells each to end, the client first.
func (p *Pair) Close(tell func(*Process) error) (err error) {
	close(p.closing)
	for _, end := range p.Both() {
		err = errors.Join(err, tell(end))
	}
	guard := newGuard(stalled, p.Kill)
	defer guard.stop()
	<-p.Client.Done
	<-p.Server.Done
	return err
}
