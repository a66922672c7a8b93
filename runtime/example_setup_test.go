package runtime_test

import (
	"context"
	"errors"
	"fmt"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// pair is what most examples begin with: two connected endpoints in one process, and
// memory that both use. The example of Endpoint shows how a program gets there; Dial
// and Listen take less code.
type pair struct {
	ia             *dat.IA
	pz             *mem.PZ
	memory         *mem.LMR        // 4096 bytes
	events         *evd.Dispatcher // of completions
	changes        *evd.Dispatcher // of connections
	client, server *ep.Endpoint
}

// withPair runs an example with a pair whose completions go to a dispatcher as in cfg,
// prints its error if it has one, and closes everything.
func withPair(cfg evd.Config, example func(p *pair) error) {
	p, err := newPair(cfg)
	if err == nil {
		err = example(p)
	}
	if err = errors.Join(err, p.ia.Close()); err != nil {
		fmt.Println(err)
	}
}

func newPair(cfg evd.Config) (p *pair, err error) {
	p = new(pair)
	if p.ia, err = dat.Open(context.Background(), "loop"); err != nil {
		return p, err
	}
	if p.pz, err = p.ia.NewPZ(); err != nil {
		return p, err
	}
	if p.memory, err = p.pz.Alloc(4096, hw.AllPrivileges|hw.RemoteAtomic); err != nil {
		return p, err
	}
	if p.events, err = p.ia.NewDispatcher(cfg); err != nil {
		return p, err
	}
	if p.changes, err = p.ia.NewDispatcher(evd.Config{QLen: 16}); err != nil {
		return p, err
	}
	p.client, p.server, err = p.connect(p.endpoint())
	return p, err
}

// endpoint is the configuration of an endpoint of the pair's zone and dispatchers.
func (p *pair) endpoint() ep.Config {
	return ep.Config{PZ: p.pz, Recv: p.events, Request: p.events, Conn: p.changes}
}

// connect makes two endpoints, the second as in cfg, and connects them.
func (p *pair) connect(cfg ep.Config) (client, server *ep.Endpoint, err error) {
	if client, err = p.ia.NewEndpoint(p.endpoint()); err != nil {
		return nil, nil, err
	}
	if server, err = p.ia.NewEndpoint(cfg); err != nil {
		return nil, nil, err
	}
	psp, err := p.ia.NewPSP(ep.PSPConfig{Dispatcher: p.changes})
	if err != nil {
		return nil, nil, err
	}
	if err = client.Connect(ep.ConnectConfig{Qual: psp.Qual()}); err != nil {
		return nil, nil, err
	}
	ev, _, err := p.changes.Wait(context.Background(), 1)
	if err == nil {
		err = ep.RequestOf(ev).Accept(server, nil)
	}
	for range 2 { // both ends get ESTABLISHED
		if err == nil {
			ev, _, err = p.changes.Wait(context.Background(), 1)
			err = errors.Join(err, ev.Err())
		}
	}
	return client, server, errors.Join(err, psp.Close())
}

// exchange makes the client send n messages of 5 bytes. Only the server's receives have
// events, with cookies 1 to n.
func (p *pair) exchange(n int) error {
	for cookie := range uint64(n) {
		if err := p.server.PostRecv(cookie+1, 0, p.memory.Segment(0, 64)); err != nil {
			return err
		}
		if err := p.client.PostSend(0, hw.Suppress, p.memory.Segment(64, 5)); err != nil {
			return err
		}
	}
	return nil
}
