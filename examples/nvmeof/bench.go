package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"godat/examples/nvmeof/host"
	dat "godat/runtime"
)

// load is a number of goroutines that each work on a part of a disk of its own.
type load struct {
	disk *host.Disk
	size int
	seed [32]byte
	part int64 // bytes of a goroutine's part

	commands atomic.Int64
	errs     chan error
}

// bench writes and reads for a while, and prints what came of it.
func bench(ctx context.Context, ia *dat.IA, o *benchOptions, out io.Writer) error {
	cfg := host.Config{Addr: o.Addr, Subsystem: o.Subsystem, Queues: o.Queues, Depth: o.Depth + 1, Transfer: max(o.Size, 4096)}
	_, _ = rand.Read(cfg.ID[:]) // never fails
	c, err := host.Connect(ctx, ia, cfg)
	if err != nil {
		return err
	}
	disk, err := c.Disk(ctx, o.Namespace)
	if err == nil {
		l := &load{disk: disk, size: o.Size, errs: make(chan error, o.Queues*o.Depth)}
		_, _ = rand.Read(l.seed[:])
		l.part = disk.Size() / int64(cap(l.errs)) / int64(o.Size) * int64(o.Size)
		err = l.run(ctx, o.Time, out)
	}
	return errors.Join(err, c.Close())
}

// run runs the load twice: to write, and to read what was written.
func (l *load) run(ctx context.Context, d time.Duration, out io.Writer) error {
	if l.part == 0 {
		return fmt.Errorf("the disk has %d bytes: too few for %d commands of %d", l.disk.Size(), cap(l.errs), l.size)
	}
	for _, phase := range []struct {
		name string
		work func(ctx context.Context, number int) error
	}{{"writes", l.write}, {"reads", l.read}} {
		l.commands.Store(0)
		timed, cancel := context.WithTimeout(ctx, d)
		var wg sync.WaitGroup
		begin := time.Now()
		for i := range cap(l.errs) {
			wg.Go(func() { l.errs <- phase.work(timed, i) })
		}
		wg.Wait()
		elapsed := time.Since(begin).Seconds()
		cancel()
		for range cap(l.errs) {
			if err := <-l.errs; err != nil {
				return err
			}
		}
		n := float64(l.commands.Load())
		fmt.Fprintf(out, "%s: %.0f of %d bytes, %.0f/s, %.1f MB/s\n", phase.name, n, l.size, n/elapsed, n*float64(l.size)/elapsed/1e6)
	}
	return l.disk.Flush(ctx)
}

// write writes to the part over and over.
func (l *load) write(ctx context.Context, number int) error {
	b := l.contents(number)
	for at := int64(0); ctx.Err() == nil; at = (at + int64(l.size)) % l.part {
		if _, err := l.disk.WriteAt(b, int64(number)*l.part+at); err != nil {
			return err
		}
		l.commands.Add(1)
	}
	return nil
}

// read reads the first command's bytes of the part, and checks them.
func (l *load) read(ctx context.Context, number int) error {
	b, want := make([]byte, l.size), l.contents(number)
	for ctx.Err() == nil {
		if _, err := l.disk.ReadAt(b, int64(number)*l.part); err != nil {
			return err
		}
		if string(b) != string(want) {
			return fmt.Errorf("part %d has not what was written", number)
		}
		l.commands.Add(1)
	}
	return nil
}

// contents are the bytes of a part.
func (l *load) contents(number int) []byte {
	b := make([]byte, l.size)
	for i := range b {
		b[i] = l.seed[i%len(l.seed)] + byte(number) + byte(i>>8)
	}
	return b
}
