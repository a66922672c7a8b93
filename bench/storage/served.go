package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"net"

	"golang.org/x/sync/errgroup"

	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
	"godat/hw/sim"
	dat "godat/runtime"
)

// blocks is how many blocks the store has.
const blocks = 4096

// server is the end that serves the store.
type server interface {
	close() error
}

// newStore makes a store in memory whose blocks begin with their numbers, so that a read proves
// which one it brought, and no page is taken in a turn.
func newStore() (store.Store, error) {
	s, err := store.NewMemory(blocks * size)
	if err != nil {
		return nil, err
	}
	for i := range blocks {
		binary.LittleEndian.PutUint64(s.Memory()[i*size:], uint64(i))
	}
	return s, nil
}

// opener opens the adapters of one process.
type opener struct {
	sim *sim.Provider // nil unless both ends are in the process
}

func (o *opener) open(ctx context.Context, p Place, row Row, device string) (*dat.IA, error) {
	if !p.OneProcess() {
		return dat.Open(ctx, p.Provider, dat.WithPoller(dat.PollerConfig{SpinRounds: row.Rounds}))
	}
	if o.sim == nil {
		o.sim = sim.New(sim.Config{MaxDelay: -1})
	}
	return dat.Open(ctx, simulated+":"+device, dat.WithProvider(o.sim), dat.WithPoller(dat.PollerConfig{SpinRounds: row.Rounds}))
}

// served is a target of the library's.
type served struct {
	target  *target.Target
	stop    context.CancelFunc
	running errgroup.Group
}

// listen serves on an adapter, at its address if it has a network.
func listen(ctx context.Context, ia *dat.IA, p Place, row Row, host string) (*served, error) {
	s, err := newStore()
	if err != nil {
		return nil, err
	}
	addr := ""
	if !p.OneProcess() {
		addr = net.JoinHostPort(host, "0")
	}
	t, err := target.New(ctx, ia, target.Config{
		Addr: addr, Subsystem: subsystem, Namespaces: []target.Namespace{{Store: s}}, Depth: mostDepth + 1, Intake: row.Intake,
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	serving, stop := context.WithCancel(ctx)
	r := &served{target: t, stop: stop}
	r.running.Go(func() error { return t.Run(serving) })
	return r, nil
}

func (s *served) close() error {
	s.stop()
	return s.running.Wait()
}
