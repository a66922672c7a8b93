package calls

import (
	"context"
	"fmt"
	"time"

	"godat/bench/ends"
)

// pair is the two processes of a row, or its one.
type pair struct {
	*ends.Pair
	row Row
}

// ask gives an order to a process and waits for its report.
func ask(p *ends.Process, o order) (r report, err error) {
	err = p.Ask(o, o.For, &r)
	return r, err
}

// open starts the processes of a row.
func open(ctx context.Context, row Row, command []string, plan []group) (_ *pair, err error) {
	most := shortBytes
	for _, g := range plan {
		most = max(most, g.Kind.Size)
	}
	both, err := ends.Open(ctx, command, row.OneProcess, 0, order{Do: doServe, Row: row.Name, Most: most}, func(addr string) any {
		return order{Do: doDial, Row: row.Name, Addr: addr, Plan: plan}
	})
	if err != nil {
		return nil, err
	}
	return &pair{both, row}, nil
}

// close ends the processes in order.
func (p *pair) close() error { return p.Close(order{Do: doClose}) }

// turn lets the callers of a plan call for so long, and returns what both processes have done, if the
// row proves it.
func (p *pair) turn(plan []group, duration time.Duration) (t turn, err error) {
	if err = p.Tell(order{Do: doMark}); err != nil {
		return t, err
	}
	called, err := ask(p.Client, order{Do: doTurn, Plan: plan, For: duration})
	if err != nil {
		return t, err
	}
	served, err := ask(p.Server, order{Do: doCount})
	if err != nil {
		return t, err
	}
	t = turn{groups: called.Groups, client: called.Tally, server: served.Tally, processor: served.Processor}
	if p.Client != p.Server {
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
