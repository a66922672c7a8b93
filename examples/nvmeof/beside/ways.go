package beside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"

	"golang.org/x/sync/errgroup"

	"godat/ep"
	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/plain"
	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

const (
	subsystem = "nqn.2026-01.example.godat:beside"
	diskSize  = 2 * depth * size
)

// Run measures, and prints ratios: on loop beside plain RDMA writes, and on iwarp over
// loopback beside a net.Conn. It sets GOMAXPROCS meanwhile.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range cfg.Processors {
		runtime.GOMAXPROCS(n)
		fmt.Fprintf(out, "GOMAXPROCS=%d\n", n)
		if err := errors.Join(onLoop(ctx, cfg, out), onIwarp(ctx, cfg, out)); err != nil {
			return err
		}
	}
	return nil
}

func onLoop(ctx context.Context, cfg Config, out io.Writer) error {
	return withDisk(ctx, "loop", "", func(ia *dat.IA, d *disk) error {
		p, err := newWriter(ctx, ia)
		if err != nil {
			return err
		}
		for _, op := range ops {
			if err == nil {
				err = compare(ctx, cfg, out, with("NVMe "+op.name+" on loop", op.op, d.run), way{"plain RDMA writes", p.run})
			}
		}
		return errors.Join(err, p.close())
	})
}

func onIwarp(ctx context.Context, cfg Config, out io.Writer) error {
	return withDisk(ctx, "iwarp:127.0.0.1", "127.0.0.1:0", func(_ *dat.IA, d *disk) error {
		c, s, err := tcpPair(nil)
		if err != nil {
			return err
		}
		for _, op := range ops {
			if err == nil {
				err = compare(ctx, cfg, out, with("NVMe "+op.name+" on iwarp", op.op, d.run), with(op.name+" on a net.Conn", op.op, c.run))
			}
		}
		return errors.Join(err, c.Close(), <-s)
	})
}

// ops are what a way is measured with.
var ops = []struct {
	name string
	op   nvme.Opcode
}{{"writes", nvme.IOWrite}, {"reads", nvme.IORead}}

// tcpPair connects a client and a server, which compute a checksum of the blocks unless it is
// nil.
func tcpPair(checksum plain.Checksum) (*client, <-chan error, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	far, err := l.Accept()
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, nil, errors.Join(err, near.Close())
	}
	s, ended := plain.NewServer(far, make([]byte, diskSize), depth, checksum), make(chan error, 1)
	go func() { ended <- s.Run() }()
	return &client{plain.NewClient(near, depth, checksum)}, ended, nil
}

// client keeps depth commands under way.
type client struct{ *plain.Client }

// run reads or writes blocks, one in each slot, until ctx is done.
func (c *client) run(ctx context.Context, op nvme.Opcode) (n int64, err error) {
	for i := range depth {
		c.Begin(i, op, i)
	}
	for under := depth; under > 0; {
		if err := c.Flush(); err != nil {
			return n, err
		}
		err := c.Receive(func(i int) {
			n++
			if ctx.Err() == nil {
				c.Begin(i, op, i)
			} else {
				under--
			}
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// withDisk serves a disk in memory, and calls f with the disk as a host sees it.
func withDisk(ctx context.Context, provider, address string, f func(ia *dat.IA, d *disk) error) error {
	ia, err := dat.Open(ctx, provider)
	if err != nil {
		return err
	}
	memory, err := store.NewMemory(diskSize)
	if err != nil {
		return errors.Join(err, ia.Close())
	}
	t, err := target.New(ctx, ia, target.Config{Addr: address, Subsystem: subsystem, Namespaces: []target.Namespace{{Store: memory}}})
	if err != nil {
		return errors.Join(err, memory.Close(), ia.Close())
	}
	serving, stop := context.WithCancel(ctx)
	var running errgroup.Group
	running.Go(func() error { return t.Run(serving) })
	err = onDisk(ctx, ia, t.Addr(), f)
	stop()
	return errors.Join(err, running.Wait(), ia.Close())
}

func onDisk(ctx context.Context, ia *dat.IA, address string, f func(ia *dat.IA, d *disk) error) error {
	c, err := host.Connect(ctx, ia, host.Config{Addr: address, Subsystem: subsystem, Pipelines: 1, Depth: depth + 1, Transfer: size})
	if err != nil {
		return err
	}
	d := new(disk)
	if d.disk, err = c.Disk(ctx, 1); err == nil {
		d.pipeline, err = c.Pipeline(ctx)
	}
	if err == nil {
		err = f(ia, d)
	}
	return errors.Join(err, c.Close())
}

// with is a way that reads or writes.
func with(name string, op nvme.Opcode, run func(ctx context.Context, op nvme.Opcode) (int64, error)) way {
	return way{name, func(ctx context.Context) (int64, error) { return run(ctx, op) }}
}

// disk is the way over a target: one goroutine keeps depth commands under way.
type disk struct {
	pipeline *host.Pipeline
	disk     *host.Disk
}

// run reads or writes blocks, one in each slot, until ctx is done.
func (d *disk) run(ctx context.Context, op nvme.Opcode) (n int64, err error) {
	move := d.pipeline.Write
	if op == nvme.IORead {
		move = d.pipeline.Read
	}
	return d.pipeline.KeepBusy(ctx, func(s *host.Slot) error {
		return move(d.disk, s, size, int64(s.Index())*size)
	})
}

// writer writes blocks to the other end of a connection by RDMA, depth at a time, each with
// a completion.
type writer struct {
	ln            *dat.Listener
	from          *dat.Conn
	local, remote *mem.LMR
	batch         [depth]ep.DTO
}

func newWriter(ctx context.Context, ia *dat.IA) (p *writer, err error) {
	p = new(writer)
	if p.ln, err = ia.Listen(ctx, "", dat.ConnConfig{Depth: depth}); err != nil {
		return nil, err
	}
	if err := p.connect(); err != nil {
		return nil, errors.Join(err, p.ln.Close())
	}
	return p, nil
}

func (p *writer) connect() (err error) {
	if p.from, err = p.ln.Dial(p.ln.Addr(), nil); err != nil {
		return err
	}
	to, err := p.ln.Accept(ep.RequestOf(<-p.ln.Requests()), nil)
	if err != nil {
		return err
	}
	for range 2 {
		if err := (<-p.ln.Events()).Err(); err != nil {
			return err
		}
	}
	if p.local, err = p.from.Alloc(size, hw.LocalRead); err != nil {
		return err
	}
	if p.remote, err = to.Alloc(depth*size, hw.LocalWrite|hw.RemoteWrite); err != nil {
		return err
	}
	for i := range p.batch {
		p.batch[i] = ep.DTO{Op: hw.OpWrite, Segment: p.local.Segment(0, size), Remote: p.remote.Remote(i*size, size)}
	}
	return nil
}

func (p *writer) run(ctx context.Context) (n int64, err error) {
	for ; ctx.Err() == nil; n += depth {
		if _, err := p.from.Endpoint.PostBatch(p.batch[:]); err != nil {
			return n, err
		}
		for range depth {
			if err := (<-p.ln.Events()).Err(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (p *writer) close() error { return p.ln.Close() }
