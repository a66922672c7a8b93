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

// Ask gives an order, which takes so long, and decodes its report. An order that failed is a Failure.
func (p *Process) Ask(order any, takes time.Duration, report any) (err error) {
	guard, say := newGuard(takes+p.Stall, p.Kill), said{Report: report}
	if err = p.to.Encode(order); err == nil {
		err = p.from.Decode(&say)
	} else if errDecoded := p.from.Decode(&say); errDecoded != nil {
		err = errDecoded // says how the process has ended
	}
	switch inTime := guard.stop(); {
	case !inTime:
		return fmt.Errorf("the %s has not answered for %v, and was killed: %w", p.What, takes+p.Stall, errors.Join(err, os.ErrDeadlineExceeded))
	case err == nil && say.Error != "":
		return Failure{p.What, say.Error}
	}
	return err
}

// Pair is a server and a client: two processes, or one that is both.
type Pair struct {
	Server, Client *Process
	closing        chan struct{} // closed when both are told to end
}

// Open starts a pair. The server gets the order serve, and the client the order that dial makes of the Addr which
// the server reports. Either may take so long.
func Open(ctx context.Context, command []string, oneProcess bool, takes time.Duration, serve any, dial func(addr string) any) (_ *Pair, err error) {
	p := &Pair{closing: make(chan struct{})}
	if p.Server, err = Start(ctx, "server", command); err != nil {
		return nil, err
	}
	p.Client = p.Server
	if !oneProcess {
		if p.Client, err = Start(ctx, "client", command); err == nil {
			go p.watch()
		}
	}
	var at struct{ Addr string }
	if err == nil {
		err = p.Server.Ask(serve, takes, &at)
	}
	if err == nil {
		err = p.Client.Ask(dial(at.Addr), takes, nil)
	}
	if err != nil {
		p.Kill()
		return nil, err
	}
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

// Tell gives both processes an order, the client first.
func (p *Pair) Tell(order any) error {
	err := p.Client.Ask(order, 0, nil)
	if p.Client != p.Server {
		err = errors.Join(err, p.Server.Ask(order, 0, nil))
	}
	return err
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

// AskBoth gives both processes an order at once, which takes so long. One that is both reports as the client.
func (p *Pair) AskBoth(order any, takes time.Duration, client, server any) error {
	if p.Client == p.Server {
		return p.Client.Ask(order, takes, client)
	}
	served := make(chan error, 1)
	go func() { served <- p.Server.Ask(order, takes, server) }()
	return errors.Join(p.Client.Ask(order, takes, client), <-served)
}

// Close ends the processes by an order, the client first.
func (p *Pair) Close(order any) (err error) {
	close(p.closing)
	err = p.Tell(order)
	guard := newGuard(stalled, p.Kill)
	defer guard.stop()
	<-p.Client.Done
	<-p.Server.Done
	return err
}
