package performance

import (
	"context"
	"time"

	"godat/examples/dattest/link"
	"godat/examples/dattest/wire"
	"godat/hw"
	"godat/hw/event"
)

// throughput keeps the pipeline full until all operations have completed.
func (t *test) throughput(ctx context.Context, s *Stats) error {
	n := int(t.side.Test.Iterations)
	cpu := cpuTime()
	start := time.Now()
	posted := 0
	for reaped := 0; reaped < n; reaped++ {
		for ; posted < n && posted-reaped < t.pipeline; posted++ {
			if err := t.post(&s.Post); err != nil {
				return err
			}
		}
		before := time.Now()
		if err := t.reap(ctx); err != nil {
			return err
		}
		s.Reap.add(time.Since(before))
	}
	s.Time = time.Since(start)
	s.CPU = cpu.utilization(cpuTime())
	s.Ops = n
	return nil
}

// latency does one operation after the other. Like dapltest, it always polls for their
// completions.
func (t *test) latency(ctx context.Context, s *Stats) error {
	var one [1]event.Event
	for range t.side.Test.Iterations {
		before := time.Now()
		if err := t.post(nil); err != nil {
			return err
		}
		for i := 1; ; i++ {
			n, err := t.link.Request.Dequeue(one[:])
			if n == 1 {
				break
			}
			if err == nil {
				err = link.Idle(ctx, i)
			}
			if err != nil {
				return err
			}
		}
		s.Latency.add(time.Since(before))
		if err := t.link.Check(one[0], t.want); err != nil {
			return err
		}
	}
	return nil
}

func (t *test) post(d *Durations) (err error) {
	before := time.Now()
	if t.side.Test.Op.Transfer == wire.RDMARead {
		err = t.link.EP.PostRDMARead(opCookie, hw.Default, t.remote, t.pool.Segments()...)
	} else {
		err = t.link.EP.PostRDMAWrite(opCookie, hw.Default, t.remote, t.pool.Segments()...)
	}
	if d != nil {
		d.add(time.Since(before))
	}
	return err
}

func (t *test) reap(ctx context.Context) error {
	return t.link.Reap(ctx, t.link.Request, t.want)
}
