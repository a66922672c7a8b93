package calls

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

// process is an end that this program has started.
type process struct {
	what  string
	cmd   *exec.Cmd
	stall time.Duration // stalled
	to    *json.Encoder
	from  *json.Decoder
	done  chan struct{} // closed when it has ended
}

// start starts an end. It is killed when ctx ends.
func start(ctx context.Context, what string, command []string) (*process, error) {
	p := &process{what: what, stall: stalled, cmd: exec.CommandContext(ctx, command[0], command[1:]...), done: make(chan struct{})}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	from, to := io.Pipe()
	p.to, p.from, p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = json.NewEncoder(in), json.NewDecoder(from), to, os.Stderr, 5*time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.wait(to)
	return p, nil
}

func (p *process) wait(to *io.PipeWriter) {
	err := p.cmd.Wait()
	if err == nil {
		err = io.EOF
	}
	_ = to.CloseWithError(fmt.Errorf("the process of the %s has ended: %w", p.what, err))
	close(p.done)
}

func (p *process) kill() { _ = p.cmd.Process.Kill() } // fails when it has ended

// ask gives an order and waits for its report.
func (p *process) ask(o order) (r report, err error) {
	guard := time.AfterFunc(o.For+p.stall, p.kill)
	if err = p.to.Encode(o); err == nil {
		err = p.from.Decode(&r)
	} else if errDecoded := p.from.Decode(&r); errDecoded != nil {
		err = errDecoded // says how the process has ended
	}
	if !guard.Stop() {
		return r, fmt.Errorf("the %s has not answered for %v, and was killed: %w", p.what, o.For+p.stall, errors.Join(err, os.ErrDeadlineExceeded))
	}
	if err == nil && r.Error != "" {
		err = fmt.Errorf("the %s: %s", p.what, r.Error)
	}
	return r, err
}

// pair is the two processes of a row, or its one.
type pair struct {
	row            Row
	server, client *process
	closing        chan struct{} // closed when both are told to end
}

// open starts the processes of a row.
func open(ctx context.Context, row Row, command []string, plan []group) (_ *pair, err error) {
	p := &pair{row: row, closing: make(chan struct{})}
	defer func() {
		if err != nil {
			p.kill()
		}
	}()
	if p.server, err = start(ctx, "server", command); err != nil {
		return nil, err
	}
	p.client = p.server
	if !row.OneProcess {
		if p.client, err = start(ctx, "client", command); err != nil {
			return nil, err
		}
		go p.watch()
	}
	most := shortBytes
	for _, g := range plan {
		most = max(most, g.Kind.Size)
	}
	served, err := p.server.ask(order{Do: doServe, Row: row.Name, Most: most})
	if err != nil {
		return nil, err
	}
	_, err = p.client.ask(order{Do: doDial, Row: row.Name, Addr: served.Addr, Plan: plan})
	return p, err
}

// watch ends each process when the other has ended, unless both are told to.
func (p *pair) watch() {
	select {
	case <-p.closing:
	case <-p.server.done:
		p.client.kill()
	case <-p.client.done:
		p.server.kill()
	}
}

// kill ends the processes at once.
func (p *pair) kill() {
	for _, end := range []*process{p.client, p.server} {
		if end != nil {
			end.kill()
			<-end.done
		}
	}
}

// close ends the processes in order.
func (p *pair) close() error {
	close(p.closing)
	_, err := p.client.ask(order{Do: doClose})
	if p.server != p.client {
		_, failed := p.server.ask(order{Do: doClose})
		err = errors.Join(err, failed)
	}
	guard := time.AfterFunc(stalled, p.kill)
	defer guard.Stop()
	<-p.client.done
	<-p.server.done
	return err
}

// turn lets the callers of a plan call for so long, and returns what both processes have done, if the
// row proves it.
func (p *pair) turn(plan []group, duration time.Duration) (t turn, err error) {
	if _, err = p.server.ask(order{Do: doMark}); err != nil {
		return t, err
	}
	if p.client != p.server {
		if _, err = p.client.ask(order{Do: doMark}); err != nil {
			return t, err
		}
	}
	called, err := p.client.ask(order{Do: doTurn, Plan: plan, For: duration})
	if err != nil {
		return t, err
	}
	served, err := p.server.ask(order{Do: doCount})
	if err != nil {
		return t, err
	}
	t = turn{groups: called.Groups, client: called.Tally, server: served.Tally, processor: served.Processor}
	if p.client != p.server {
		t.processor += called.Processor
	}
	if called.Processor < 0 || served.Processor < 0 {
		t.processor = -1
	}
	return t, t.prove(p.row, plan)
}

// turn is what a row has done in one turn.
type turn struct {
	groups         []called // of the client
	client, server tally
	processor      time.Duration // of both processes; negative if it is not known
}

// prove compares what both ends have counted with what the row and the plan say.
func (t turn) prove(row Row, plan []group) error {
	var want tally // at the client
	for i, g := range plan {
		n := t.groups[i].Calls
		if n == 0 {
			return fmt.Errorf("no %v was made", g.Kind)
		}
		want.Calls += n
		want.Out += n * g.Kind.sent()
		want.In += n * g.Kind.taken()
	}
	if !row.NoLimit {
		want.Deadlines = want.Calls
	}
	if t.client != want {
		return fmt.Errorf("the client counted %+v, and what it says it made is %+v", t.client, want)
	}
	want.In, want.Out, want.Deadlines = want.Out, want.In, 0
	if row.Deadline {
		want.Deadlines = want.Calls
	}
	if t.server != want {
		return fmt.Errorf("the server counted %+v, and the client's calls are %+v", t.server, want)
	}
	return nil
}
