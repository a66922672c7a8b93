package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// load is a number of pipelines whose slots each work on a part of a disk of its own.
type load struct {
	disk      *host.Disk
	size      int
	seed      [32]byte
	pipelines []*host.Pipeline
	part      int64 // bytes of a slot's part
}

// bench writes and reads for a while, and prints what came of it.
func bench(ctx context.Context, ia *dat.IA, o *benchOptions, out io.Writer) error {
	subsystem, err := subsystemAt(ctx, ia, o.Addr, o.Subsystem)
	if err != nil {
		return err
	}
	cfg := host.Config{
		Addr: o.Addr, Subsystem: subsystem, Pipelines: o.Queues, Depth: o.Depth + 1, Transfer: max(o.Size, 4096),
	}
	c, err := host.Connect(ctx, ia, cfg)
	if err != nil {
		return err
	}
	l := &load{size: o.Size}
	_, _ = rand.Read(l.seed[:]) // never fails
	if l.disk, err = c.Disk(ctx, o.Namespace); err == nil {
		err = l.connect(ctx, c, o.Queues)
	}
	if err == nil {
		err = l.run(ctx, o.Time, out)
	}
	return errors.Join(err, c.Close())
}

// connect connects the pipelines, and divides the disk.
func (l *load) connect(ctx context.Context, c *host.Controller, queues int) error {
	slots := 0
	for range queues {
		p, err := c.Pipeline(ctx)
		if err != nil {
			return err
		}
		l.pipelines = append(l.pipelines, p)
		slots += len(p.Slots())
	}
	l.part = l.disk.Size() / int64(slots) / int64(l.size) * int64(l.size)
	if l.part == 0 {
		return fmt.Errorf("the disk has %d bytes: too few for %d commands of %d", l.disk.Size(), slots, l.size)
	}
	return nil
}

// run runs the load twice: to write, and to read what was written.
func (l *load) run(ctx context.Context, d time.Duration, out io.Writer) error {
	for _, phase := range []struct {
		name string
		work func(ctx context.Context, p *host.Pipeline, first int) (int64, error)
	}{{"writes", l.write}, {"reads", l.read}} {
		var commands atomic.Int64
		timed, cancel := context.WithTimeout(ctx, d)
		var workers errgroup.Group
		begin, next := time.Now(), 0
		for _, p := range l.pipelines {
			first := next // part of the pipeline
			workers.Go(func() error {
				n, err := phase.work(timed, p, first)
				commands.Add(n)
				return err
			})
			next += len(p.Slots())
		}
		err := workers.Wait()
		elapsed := time.Since(begin).Seconds()
		cancel()
		if err != nil {
			return err
		}
		n := float64(commands.Load())
		fmt.Fprintf(out, "%s: %.0f of %d bytes, %.0f/s, %.1f MB/s\n", phase.name, n, l.size, n/elapsed, n*float64(l.size)/elapsed/1e6)
	}
	return l.flush(ctx)
}

// write writes to the parts of a pipeline over and over. The first one is that of a number.
func (l *load) write(ctx context.Context, p *host.Pipeline, first int) (commands int64, err error) {
	at := make([]int64, len(p.Slots())) // where in its part the slot writes next
	begin := func(s *host.Slot) error {
		i := s.Index()
		from := int64(first+i)*l.part + at[i]
		at[i] = (at[i] + int64(l.size)) % l.part
		return p.Write(l.disk, s, l.size, from)
	}
	for i := range p.Slots() {
		s := &p.Slots()[i]
		copy(s.Data, l.contents(first+i))
	}
	return p.KeepBusy(ctx, begin) // each slot writes at least what read checks
}

// read reads the first command's bytes of the parts of a pipeline, and checks them.
func (l *load) read(ctx context.Context, p *host.Pipeline, first int) (commands int64, err error) {
	want := make([][]byte, len(p.Slots()))
	for i := range want {
		want[i] = l.contents(first + i)
	}
	begun := make([]bool, len(p.Slots()))
	begin := func(s *host.Slot) error {
		i := s.Index()
		if begun[i] && !bytes.Equal(s.Data[:l.size], want[i]) {
			return fmt.Errorf("part %d has not what was written: it is lost, unless another host or bench wrote to the disk meanwhile: benches run one at a time", first+i)
		}
		begun[i] = true
		clear(s.Data[:l.size])
		return p.Read(l.disk, s, l.size, int64(first+i)*l.part)
	}
	return p.KeepBusy(ctx, begin)
}

// flush makes stable what all pipelines have written.
func (l *load) flush(ctx context.Context) error {
	p := l.pipelines[0]
	if err := p.Submit(&p.Slots()[0], l.disk.Command(nvme.IOFlush), 0); err != nil {
		return err
	}
	done, err := p.Wait(ctx)
	if err != nil {
		return err
	}
	return done[0].Err
}

// contents are the bytes of a part.
func (l *load) contents(number int) []byte {
	b := make([]byte, l.size)
	for i := range b {
		b[i] = l.seed[i%len(l.seed)] + byte(number) + byte(i>>8)
	}
	return b
}
