package remote

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"godat/bench/load"
)

// Process is the other process. It is for one goroutine.
type Process struct {
	lanes []Lane
	in    io.WriteCloser
	to    *json.Encoder
	from  *json.Decoder
	wait  func() error
	kill  func()
	err   error         // by which it has failed
	stall time.Duration // how long it may take beside a turn
}

// stalled is how long a process may take to answer, beside the turn that it measures. Then it is killed: one
// that has stopped would keep the others from their turns.
const stalled = time.Minute

// Start starts a process that calls Serve, and reads its list of lanes. The command's
// Stderr may be set.
func Start(cmd *exec.Cmd) (*Process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return attach(in, out, cmd.Wait, func() { _ = cmd.Process.Kill() }) // fails when it has ended
}

// attach reads the list of lanes. wait is called when the process's input has been
// closed, and returns when the process has ended, at once after kill.
func attach(in io.WriteCloser, out io.Reader, wait func() error, kill func()) (*Process, error) {
	p := &Process{in: in, to: json.NewEncoder(in), from: json.NewDecoder(bufio.NewReader(out)), wait: wait, kill: kill, stall: stalled}
	guard := time.AfterFunc(p.stall, p.kill)
	defer guard.Stop()
	if err := p.from.Decode(&p.lanes); err != nil {
		return nil, errors.Join(fmt.Errorf("no list of lanes: %w", err), p.Close())
	}
	return p, nil
}

// Lanes are what the process can measure.
func (p *Process) Lanes() []Lane { return p.lanes }

// Close ends the process, and returns how it ended.
func (p *Process) Close() error {
	guard := time.AfterFunc(p.stall, p.kill)
	defer guard.Stop()
	return errors.Join(p.in.Close(), p.wait())
}

// ask exchanges a request for a reply.
func (p *Process) ask(r request) (say reply, err error) {
	if p.err != nil {
		return say, p.err
	}
	guard := time.AfterFunc(r.Duration+p.stall, p.kill)
	if p.err = p.to.Encode(r); p.err == nil {
		p.err = p.from.Decode(&say)
	}
	if !guard.Stop() {
		p.err = fmt.Errorf("its process has not answered for %v, and was killed: %w", r.Duration+p.stall, errors.Join(p.err, os.ErrDeadlineExceeded))
		return say, p.err
	}
	if p.err != nil {
		p.err = fmt.Errorf("its process has ended: %w", p.err)
		return say, p.err
	}
	if say.Error != "" {
		return say, errors.New(say.Error)
	}
	return say, nil
}

// Runner measures one lane of the process: number lane of the list.
type Runner struct {
	p                 *Process
	lane, size, depth int
}

// Runner makes a runner of number lane of the list. All its errors refuse one row.
func (p *Process) Runner(lane, size, depth int) *Runner { return &Runner{p, lane, size, depth} }

func (r *Runner) request(ld load.Load) request {
	return request{Lane: r.lane, Size: r.size, Depth: r.depth, Rate: ld.Rate, Duration: ld.Duration}
}

// Refuse says why the lane can't be measured under a load; nil if it can.
func (r *Runner) Refuse(ld load.Load) error {
	ask := r.request(ld)
	ask.Only = true
	say, err := r.p.ask(ask)
	if err == nil && say.Refused != "" {
		err = errors.New(say.Refused)
	}
	return err
}

// Run measures a turn.
func (r *Runner) Run(ld load.Load) (res load.Result, err error) {
	say, err := r.p.ask(r.request(ld))
	if err == nil && say.Refused != "" {
		err = errors.New(say.Refused)
	}
	if err == nil {
		res, err = say.Result.read()
	}
	if err != nil {
		return res, load.Refusal(err.Error())
	}
	return res, nil
}

// Close does nothing: Process.Close ends the process, which closes its lanes.
func (*Runner) Close() error { return nil }
