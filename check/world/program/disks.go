package program

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
)

// Disks is a program of NVMe targets and hosts: each host writes, reads, compares and flushes blocks of its own on the
// disks of all targets, by several calls at a time, and connects anew when its controller is gone. A target that is
// started anew has its disk again, or what was flushed of it.
type Disks struct{ Size }

const (
	subsystem = "nqn.2026-01.world:disk"
	unit      = 512 // a block
	portion   = 24  // blocks of a goroutine of a host, on each disk
	hands     = 3   // goroutines of a host
	hosts     = 8   // at most
)

// errPower is the error of a disk whose power was cut.
var errPower = errors.New("the disk's power was cut")

// drive is a target's disk, through the target's lives.
type drive struct {
	cuts atomic.Int64 // how often its power was cut

	mu  sync.Mutex
	now *platter
}

// platter is what one life of a target has of a drive. Its end is the drive's affair.
type platter struct {
	*store.Forgetful
	off atomic.Bool
}

// Flush implements store.Store.
func (p *platter) Flush(off, n int) error {
	if p.off.Load() {
		return errPower
	}
	return p.Forgetful.Flush(off, n)
}

// Close implements store.Store.
func (p *platter) Close() error { return nil }

func newPlatter() (*platter, error) {
	s, err := store.NewForgetful(hosts * hands * portion * unit)
	return &platter{Forgetful: s}, err
}

// again is the drive for a further life, behind the end of the one before: all that it had, or behind a power cut what it
// had flushed and some of the rest.
func (d *drive) again(power bool, draw *rand.Rand) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, err := newPlatter()
	if err != nil {
		return err
	}
	if power {
		d.now.Fail(draw)
		d.cuts.Add(1)
	}
	n := copy(next.Memory(), d.now.Memory())
	d.now = next
	return next.Flush(0, n)
}

// cut cuts the power: nothing is flushed any more.
func (d *drive) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now.off.Store(true)
}

// Run runs the program.
func (p Disks) Run(w *World) error {
	drives := make([]*drive, p.Servers)
	return p.play(w, func(ctx context.Context, s *service) error {
		first, err := newPlatter()
		if err != nil {
			return err
		}
		drives[s.number] = &drive{now: first}
		t, err := s.target(ctx, w.Listens(s.host), drives[s.number])
		if err != nil {
			return err
		}
		s.address = t.Addr()
		s.running.Go(func() { serveDisks(ctx, w, s, t, drives[s.number]) })
		return nil
	}, func(ctx context.Context, is party) {
		u := &initiator{party: is, w: w, draw: w.Draw(900 + is.number), id: identity.ID{15: byte(is.number)}, drives: drives}
		u.live(ctx, p.Rounds)
	})
}

// target makes one life of a target.
func (s *service) target(ctx context.Context, address string, d *drive) (*target.Target, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return target.New(ctx, s.ia, target.Config{
		Addr: address, Subsystem: subsystem, Queues: 2, Depth: 32, Controllers: 32, AddressControllers: 32,
		Namespaces: []target.Namespace{{Store: d.now, BlockSize: unit, ID: identity.ID{byte(s.number + 1)}}},
	})
}

// serveDisks serves until ctx ends, by one target after the other.
func serveDisks(ctx context.Context, w *World, s *service, now *target.Target, d *drive) {
	draw := w.Draw(1000 + uint64(s.number))
	for {
		serving, end := context.WithCancel(ctx)
		ran := make(chan error, 1)
		go func() { ran <- now.Run(serving) }()
		again := false
		select {
		case <-s.restart:
			again = true
			power := draw.IntN(2) == 0
			w.Step(s.host, "the target ends, by a power cut: %v", power)
			if power {
				d.cut()
			}
			end()
			if err := errors.Join(<-ran, d.again(power, draw)); err != nil {
				w.Wrong("%s: the target ended: %v", s.host, err)
			}
		case err := <-ran:
			if err != nil || ctx.Err() == nil {
				w.Wrong("%s: the target ended: %v", s.host, err)
			}
		}
		end()
		if !again {
			return
		}
		var err error
		if now, err = s.target(ctx, s.address, d); err != nil {
			if ctx.Err() == nil {
				w.Wrong("%s: no further target: %v", s.host, err)
			}
			return
		}
	}
}

// initiator is a host, and what it expects.
type initiator struct {
	party
	w      *World
	draw   *rand.Rand
	id     identity.ID
	drives []*drive
	known  [][]sector // of each drive
	cuts   []int64    // of each drive, that the host knows of
}

// sector is what the host knows of a block of its own: the values that it may have, and those that it may have behind a
// power cut.
type sector struct{ now, stable []uint64 }

// live connects to disks, one after the other, and uses them.
func (u *initiator) live(ctx context.Context, rounds int) {
	u.known, u.cuts = make([][]sector, len(u.drives)), make([]int64, len(u.drives))
	for i := range u.known {
		u.known[i] = make([]sector, hands*portion)
		for k := range u.known[i] {
			u.known[i][k] = sector{[]uint64{0}, []uint64{0}}
		}
	}
	for range rounds / 3 {
		sleep(ctx, time.Duration(u.draw.Int64N(int64(mostPause))))
		to := u.draw.IntN(len(u.drives))
		c := u.connect(ctx, to)
		if c == nil {
			return
		}
		disk, err := c.Disk(ctx, 1)
		if err == nil {
			if cuts := u.drives[to].cuts.Load(); cuts != u.cuts[to] {
				u.cuts[to] = cuts
				for k := range u.known[to] {
					u.known[to][k].now = append([]uint64(nil), u.known[to][k].stable...)
				}
			}
			u.use(ctx, to, disk, 3+u.draw.IntN(8))
		}
		u.w.Step(u.host, "leaves disk %d: %v", to, err)
		if err := c.Close(); err != nil {
			u.w.Step(u.host, "Close: %v", err)
		}
	}
}

// connect connects, for a minute.
func (u *initiator) connect(ctx context.Context, to int) *host.Controller {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		c, err := host.Connect(bounded, u.ia, host.Config{
			Addr: u.addrs[to], Subsystem: subsystem, ID: u.id, Queues: 2, Depth: 8, Transfer: 8 << 10, KeepAlive: 2 * time.Second,
		})
		if err == nil {
			return c
		}
		u.w.Step(u.host, "no disk %d: %v", to, err)
		if !sleep(bounded, 100*time.Millisecond) {
			u.w.Wrong("%s: no target in a minute: %v", u.host, err)
			return nil
		}
	}
}

// use lets the goroutines of the host use their blocks. They first read what is there.
func (u *initiator) use(ctx context.Context, to int, disk *host.Disk, many int) {
	var all sync.WaitGroup
	for i := range hands {
		h := &hand{
			u: u, disk: disk, who: fmt.Sprintf("%s, disk %d, %d", u.host, to, i), draw: rand.New(rand.NewPCG(u.draw.Uint64(), 10)),
			known: u.known[to][i*portion:][:portion], at: (int(u.number)*hands + i) * portion,
		}
		all.Go(func() {
			for n := 0; n <= many; n++ {
				if err := h.once(ctx, n == 0); err != nil {
					u.w.Step(h.who, "%v", err)
					return
				}
			}
		})
	}
	all.Wait()
}
