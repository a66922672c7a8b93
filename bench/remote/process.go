package remote

import (
	"context"
	"errors"
	"fmt"

	"godat/bench/ends"
	"godat/bench/load"
)

// Process is the other process. It is for one goroutine.
type Process struct {
	end   *ends.Process
	lanes []Lane
}

// Start starts a process that calls Serve, and asks for its list of lanes.
func Start(ctx context.Context, command ...string) (*Process, error) {
	end, err := ends.Start(ctx, "program of the lanes", command)
	if err != nil {
		return nil, err
	}
	p := &Process{end: end}
	say, err := p.ask(request{Do: doList})
	if err != nil {
		end.Kill()
		<-end.Done
		return nil, fmt.Errorf("no list of lanes: %w", err)
	}
	p.lanes = say.Lanes
	return p, nil
}

// Lanes are what the process can measure.
func (p *Process) Lanes() []Lane { return p.lanes }

// Close ends the process.
func (p *Process) Close() error {
	_, err := p.ask(request{Do: doClose})
	if err != nil {
		p.end.Kill()
	}
	<-p.end.Done
	return err
}

// ask exchanges a request for a reply.
func (p *Process) ask(r request) (say reply, err error) {
	err = p.end.Ask(r, r.Duration, &say)
	var failure ends.Failure
	if errors.As(err, &failure) { // it says why a row is refused, whichever process refuses it
		err = errors.New(failure.Why)
	}
	return say, err
}

// Runner measures one lane of the process: number lane of the list.
type Runner struct {
	p                 *Process
	lane, size, depth int
}

// Runner makes a runner of number lane of the list. All its errors refuse one row.
func (p *Process) Runner(lane, size, depth int) *Runner { return &Runner{p, lane, size, depth} }

func (r *Runner) request(do string, ld load.Load) request {
	return request{Do: do, Lane: r.lane, Size: r.size, Depth: r.depth, Rate: ld.Rate, Duration: ld.Duration}
}

// Refuse says why the lane can't be measured under a load; nil if it can.
func (r *Runner) Refuse(ld load.Load) error {
	_, err := r.p.ask(r.request(doRefuse, ld))
	return err
}

// Run measures a turn.
func (r *Runner) Run(ld load.Load) (load.Result, error) {
	say, err := r.p.ask(r.request(doTurn, ld))
	if err == nil && say.Result.Latency == nil {
		err = errors.New("a result without a histogram")
	}
	if err != nil {
		return load.Result{}, load.Refusal(err.Error())
	}
	return say.Result.read(), nil
}

// Close does nothing: Process.Close ends the process, which closes its lanes.
func (*Runner) Close() error { return nil }
