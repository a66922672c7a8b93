package program

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

// Events is a program of dispatchers in all modes: producers that post software events and wait for room, and
// consumers that wait, dequeue, iterate, take batches, have a callback, or hear of events by a CNO, while the queue is
// resized and the CNO switched off and on.
type Events struct{ Size }

// numbered is the payload of an event.
type numbered struct{ producer, number int }

// round is one dispatcher's life.
type round struct {
	w         *World
	who, mode string
	each      []int // how many each producer posts

	mu   sync.Mutex
	came []map[int]bool // by producer
	left int
	all  chan struct{} // closed when all have come
}

// Run runs the program. Its troubles are its own: no script is played.
func (p Events) Run(w *World) error {
	p.Troubles = 0
	return p.play(w, func(_ context.Context, s *service) error {
		s.address = "none"
		return nil
	}, func(ctx context.Context, is party) {
		draw := w.Draw(400 + is.number)
		for range p.Rounds {
			sleep(ctx, time.Duration(draw.Int64N(int64(mostPause))))
			r := &round{w: w, who: is.host, all: make(chan struct{})}
			for range 1 + draw.IntN(4) {
				n := 1 + draw.IntN(30)
				r.each, r.left = append(r.each, n), r.left+n
				r.came = append(r.came, make(map[int]bool))
			}
			r.run(is.ia, draw)
		}
	})
}

// take judges an event: the first and only one of its number, and behind all that the same consumer had of its
// producer.
func (r *round) take(last []int, ev event.Event) {
	payload, _ := ev.Software()
	is, ok := payload.(numbered)
	if !ok {
		r.w.Wrong("%s, %s: an event is %v", r.who, r.mode, ev)
		return
	}
	if is.number <= last[is.producer] {
		r.w.Wrong("%s, %s: event %d of producer %d came behind %d", r.who, r.mode, is.number, is.producer, last[is.producer])
	}
	last[is.producer] = is.number
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.came[is.producer][is.number] {
		r.w.Wrong("%s, %s: event %d of producer %d came twice", r.who, r.mode, is.number, is.producer)
		return
	}
	r.came[is.producer][is.number] = true
	if r.left--; r.left == 0 {
		close(r.all)
	}
}

// over reports whether all events have come.
func (r *round) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left == 0
}

// fresh is what a consumer has had.
func (r *round) fresh() []int {
	last := make([]int, len(r.each))
	for i := range last {
		last[i] = -1
	}
	return last
}

// run makes a dispatcher, lets producers and consumers at it, and closes it.
func (r *round) run(ia *dat.IA, draw *rand.Rand) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cfg := evd.Config{QLen: 8 << draw.IntN(4), Streams: event.StreamSoftware}
	kinds := []string{"waits", "dequeues", "iterators", "iterators that leave", "cno", "cno and iterators", "waits and dequeues", "channel", "batches", "callback"}
	r.mode = kinds[draw.IntN(len(kinds))]
	switch r.mode {
	case "channel":
		cfg.Mode = evd.ModeChannel
	case "batches":
		cfg.Mode, cfg.BatchMin, cfg.BatchMax = evd.ModeBatch, 1+draw.IntN(3), 4
	case "callback":
		last := r.fresh()
		cfg.Mode, cfg.Callback = evd.ModeCallback, func(all []event.Event) {
			for _, ev := range all {
				r.take(last, ev)
			}
		}
	default:
		cfg.Mode, cfg.MaxLen = evd.ModeQueue, 128
	}
	var cno *evd.CNO
	var err error
	if r.mode == "cno" || r.mode == "cno and iterators" {
		if cno, err = ia.NewCNO(evd.CNOConfig{}); err != nil {
			r.w.Wrong("%s: %v", r.who, err)
			return
		}
		cfg.CNO = cno
	}
	d, err := ia.NewDispatcher(cfg)
	if err != nil {
		r.w.Wrong("%s: %v", r.who, err)
		return
	}
	var producers, consumers sync.WaitGroup
	for i, n := range r.each {
		own := rand.New(rand.NewPCG(draw.Uint64(), 3))
		producers.Go(func() { r.produce(d, i, n, own) })
	}
	own := rand.New(rand.NewPCG(draw.Uint64(), 4))
	r.consume(ctx, d, cno, &consumers, own)
	if cfg.Mode == evd.ModeQueue && draw.IntN(3) == 0 {
		seed := draw.Uint64()
		consumers.Go(func() { r.disturb(d, seed) })
	}
	producers.Wait()
	d.Flush()
	late := time.NewTimer(5 * time.Minute)
	select {
	case <-r.all:
	case <-late.C:
		r.mu.Lock()
		r.w.Wrong("%s, %s: %d events have not come", r.who, r.mode, r.left)
		r.mu.Unlock()
	}
	late.Stop()
	stop()
	consumers.Wait()
	if err := d.Close(); err != nil {
		r.w.Wrong("%s, %s: Close: %v", r.who, r.mode, err)
	}
	if err := cno.Close(); cno != nil && err != nil {
		r.w.Wrong("%s, %s: Close of the CNO: %v", r.who, r.mode, err)
	}
	r.w.Step(r.who, "%s: %v events", r.mode, r.each)
}

// produce posts events, and waits where there is no room.
func (r *round) produce(d *evd.Dispatcher, producer, n int, draw *rand.Rand) {
	for i := range n {
		for {
			err := d.PostSoftware(numbered{producer, i})
			if err == nil {
				break
			}
			if !errors.Is(err, hw.ErrQueueFull) {
				r.w.Wrong("%s, %s: PostSoftware: %v", r.who, r.mode, err)
				return
			}
			time.Sleep(time.Duration(1+draw.IntN(1000)) * time.Microsecond)
		}
		if draw.IntN(6) == 0 {
			time.Sleep(time.Duration(draw.IntN(3000)) * time.Microsecond)
		}
	}
}

// disturb resizes the queue, and switches the trigger of the CNO off and on.
func (r *round) disturb(d *evd.Dispatcher, seed uint64) {
	draw := rand.New(rand.NewPCG(seed, 5))
	for range draw.IntN(4) {
		time.Sleep(time.Duration(draw.IntN(2000)) * time.Microsecond)
		_ = d.Resize(8 + draw.IntN(120)) // fails where more are queued
		if draw.IntN(2) == 0 {
			_ = d.Disable()
			time.Sleep(time.Duration(draw.IntN(500)) * time.Microsecond)
			_ = d.Enable()
		}
	}
}

// consume starts the consumers of the dispatcher's mode.
func (r *round) consume(ctx context.Context, d *evd.Dispatcher, cno *evd.CNO, running *sync.WaitGroup, draw *rand.Rand) {
	switch r.mode {
	case "waits", "waits and dequeues":
		running.Go(func() { r.waits(ctx, d, draw) })
		if r.mode == "waits and dequeues" {
			running.Go(func() { r.dequeues(ctx, d) })
		}
	case "dequeues":
		for range 2 {
			running.Go(func() { r.dequeues(ctx, d) })
		}
	case "iterators":
		for range 3 {
			running.Go(func() {
				last := r.fresh()
				for ev := range d.Events(ctx) {
					r.take(last, ev)
				}
			})
		}
	case "iterators that leave":
		stays := draw.IntN(3)
		for i := range 3 {
			own := rand.New(rand.NewPCG(draw.Uint64(), 6))
			running.Go(func() { r.iterates(ctx, d, own, i == stays) })
		}
	case "cno":
		running.Go(func() { r.hears(ctx, d, cno) })
	case "cno and iterators":
		running.Go(func() { r.looks(ctx, d, cno, draw) })
	case "channel":
		running.Go(func() {
			last := r.fresh()
			for {
				select {
				case ev := <-d.C():
					r.take(last, ev)
				case <-ctx.Done():
					return
				}
			}
		})
	case "batches":
		for range 1 + draw.IntN(3) {
			running.Go(func() {
				last := r.fresh()
				for {
					select {
					case b := <-d.Batches():
						for _, ev := range b.Events() {
							r.take(last, ev)
						}
						b.Release()
					case <-ctx.Done():
						return
					}
				}
			})
		}
	}
}

// iterates iterates over a few events at a time, with pauses between. One that does not stay leaves for good after a while.
func (r *round) iterates(ctx context.Context, d *evd.Dispatcher, draw *rand.Rand, stays bool) {
	last := r.fresh()
	for turns := 1 + draw.IntN(3); (stays || turns > 0) && ctx.Err() == nil; turns-- {
		most := 1 + draw.IntN(4)
		for ev := range d.Events(ctx) {
			r.take(last, ev)
			if most--; most == 0 {
				break
			}
		}
		sleep(ctx, time.Duration(draw.IntN(2000))*time.Microsecond)
	}
}

// looks waits for the CNO, and iterates over some of the events, or over those that come in a while: for what it leaves,
// the CNO is triggered again.
func (r *round) looks(ctx context.Context, d *evd.Dispatcher, cno *evd.CNO, draw *rand.Rand) {
	last := r.fresh()
	for {
		if _, err := cno.Wait(ctx); err != nil {
			if ctx.Err() == nil {
				r.w.Wrong("%s, %s: Wait of the CNO: %v", r.who, r.mode, err)
			}
			return
		}
		bounded, cancel := context.WithTimeout(ctx, time.Duration(1+draw.IntN(2000))*time.Microsecond)
		most := 1 + draw.IntN(6)
		for ev := range d.Events(bounded) {
			r.take(last, ev)
			if most--; most == 0 {
				break
			}
		}
		cancel()
	}
}

// waits waits, for one event or for some, with deadlines or without.
func (r *round) waits(ctx context.Context, d *evd.Dispatcher, draw *rand.Rand) {
	last := r.fresh()
	for !r.over() {
		bounded, cancel := context.WithTimeout(ctx, time.Duration(1+draw.IntN(3000))*time.Microsecond)
		if draw.IntN(2) == 0 {
			bounded = ctx
		}
		threshold := 1
		if bounded != ctx {
			threshold += draw.IntN(4) // fewer may be left, so it has a deadline
		}
		ev, _, err := d.Wait(bounded, threshold)
		cancel()
		switch {
		case err == nil:
			r.take(last, ev)
		case errors.Is(err, hw.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
			time.Sleep(time.Duration(draw.IntN(500)) * time.Microsecond)
		default:
			r.w.Step(r.who, "%s: Wait: %v", r.mode, err)
			time.Sleep(time.Millisecond)
		}
	}
}

// dequeues takes what is there, and sleeps.
func (r *round) dequeues(ctx context.Context, d *evd.Dispatcher) {
	last, buf := r.fresh(), make([]event.Event, 4)
	for ctx.Err() == nil {
		n, err := d.Dequeue(buf)
		if err != nil && !errors.Is(err, hw.ErrInvalidState) { // somebody waits
			r.w.Wrong("%s, %s: Dequeue: %v", r.who, r.mode, err)
			return
		}
		for _, ev := range buf[:n] {
			r.take(last, ev)
		}
		sleep(ctx, 300*time.Microsecond)
	}
}

// hears waits for the CNO, and dequeues until there is nothing.
func (r *round) hears(ctx context.Context, d *evd.Dispatcher, cno *evd.CNO) {
	last, buf := r.fresh(), make([]event.Event, 4)
	for {
		if _, err := cno.Wait(ctx); err != nil {
			if ctx.Err() == nil {
				r.w.Wrong("%s, %s: Wait of the CNO: %v", r.who, r.mode, err)
			}
			return
		}
		for {
			n, err := d.Dequeue(buf)
			if err != nil {
				r.w.Wrong("%s, %s: Dequeue: %v", r.who, r.mode, err)
				return
			}
			for _, ev := range buf[:n] {
				r.take(last, ev)
			}
			if n == 0 {
				break
			}
		}
	}
}
