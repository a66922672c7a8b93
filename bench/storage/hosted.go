package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/intake"
	dat "godat/runtime"
)

// client keeps the commands of a turn under way.
type client interface {
	// run runs a turn, and returns the processor time of its pacing.
	run(b *book) (pacing time.Duration, err error)
	// idle waits for completions that do not come.
	idle(until time.Time) error
	close() error
}

const (
	subsystem = "nqn.2026-01.example.godat:study"
	mostDepth = 256
)

// hosted is a client over the library: one goroutine begins commands and takes their completions.
type hosted struct {
	controller *host.Controller
	disk       *host.Disk
	pipeline   *host.Pipeline
	polls      bool
}

func connect(ctx context.Context, ia *dat.IA, row Row, addr string, depth int) (client, error) {
	c, err := host.Connect(ctx, ia, host.Config{
		Addr: addr, Subsystem: subsystem, Pipelines: 1, Depth: depth + 1, Transfer: size, KeepAlive: -1, Intake: row.Intake,
	})
	if err != nil {
		return nil, err
	}
	h := &hosted{controller: c, polls: row.Intake == intake.Poll}
	if h.disk, err = c.Disk(ctx, 1); err == nil {
		h.pipeline, err = c.Pipeline(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return h, nil
}

func (h *hosted) idle(until time.Time) error {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	_, err := h.pipeline.Wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

func (h *hosted) close() error { return h.controller.Close() }

// tick is a context that ends a Wait when the pacer ticks, and may be used again.
type tick struct {
	context.Context
	ticks <-chan struct{}
	polls bool // nobody receives from Done: Err looks itself
	came  bool // a tick has, since run began the next commands
}

var errTick = errors.New("the next command is to begin")

func (t *tick) Done() <-chan struct{} { return t.ticks }
func (*tick) Value(any) any           { return nil }

func (t *tick) Err() error {
	if !t.polls || t.came {
		return errTick
	}
	select {
	case <-t.ticks:
		t.came = true
		return errTick
	default:
		return nil
	}
}

func (h *hosted) run(b *book) (pacing time.Duration, err error) {
	ctx, t := context.Background(), new(tick)
	if !b.closed() {
		p := startPacer(b.base, b.period, b.total)
		defer func() { pacing = p.end() }()
		t = &tick{Context: ctx, ticks: p.ticks, polls: h.polls}
		ctx = t
	}
	free := make([]*host.Slot, 0, b.Depth)
	for i := range b.Depth {
		free = append(free, &h.pipeline.Slots()[i])
	}
	for {
		t.came = false
		for len(free) > 0 && b.ready() {
			s := free[len(free)-1]
			free = free[:len(free)-1]
			if err := h.begin(b, s); err != nil {
				return 0, err
			}
		}
		if b.over() && len(free) == b.Depth {
			return 0, nil
		}
		done, err := h.pipeline.Wait(ctx)
		if err != nil && !errors.Is(err, errTick) {
			return 0, err
		}
		for _, s := range done {
			if err := b.finish(s.Index(), s.Data, s.Err); err != nil {
				return 0, err
			}
			free = append(free, s)
		}
	}
}

func (h *hosted) begin(b *book, s *host.Slot) error {
	block := b.begin(s.Index())
	b.expect(s.Index(), block, s.Data)
	if b.Write {
		return h.pipeline.Write(h.disk, s, size, block*size)
	}
	return h.pipeline.Read(h.disk, s, size, block*size)
}

// expect notes which block a slot's command is about: a block begins with its number.
func (b *book) expect(slot int, block int64, data []byte) {
	b.block[slot] = block
	number := uint64(0)
	if b.Write {
		number = uint64(block)
	}
	binary.LittleEndian.PutUint64(data, number)
}

// finish notes that a slot's command is done, and looks whether a read brought its block.
func (b *book) finish(slot int, data []byte, failed error) error {
	b.end(slot)
	if got := binary.LittleEndian.Uint64(data); failed == nil && got != uint64(b.block[slot]) {
		failed = fmt.Errorf("block %d was asked for, and block %d came", b.block[slot], got)
	}
	return failed
}
