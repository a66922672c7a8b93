package runtime_test

import (
	"fmt"

	"godat/ep"
	"godat/evd"
	"godat/hw"
)

// A reserved service point takes one request, for the endpoint that is reserved for it.
func ExampleRSP() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		server, err := p.ia.NewEndpoint(p.endpoint())
		if err != nil {
			return err
		}
		rsp, err := p.ia.NewRSP(ep.RSPConfig{Endpoint: server, Dispatcher: p.changes})
		if err != nil {
			return err
		}
		fmt.Println(server.State())
		client, err := p.ia.NewEndpoint(p.endpoint())
		if err != nil {
			return err
		}
		if err = client.Connect(ep.ConnectConfig{Qual: rsp.Qual()}); err != nil {
			return err
		}
		ev, err := p.change()
		if err != nil {
			return err
		}
		if err = ep.RequestOf(ev).Accept(nil, nil); err != nil { // with the reserved endpoint
			return err
		}
		for range 2 {
			if ev, err = p.change(); err != nil {
				return err
			}
			fmt.Println(ev.Number)
		}
		return rsp.Close()
	})
	// Output:
	// RESERVED
	// ESTABLISHED
	// ESTABLISHED
}

// A common service point has an address as sockets do, and each request names its peer.
func ExampleCSP() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		csp, err := p.ia.NewCSP(ep.CSPConfig{Address: ":0", Dispatcher: p.changes})
		if err != nil {
			return err
		}
		client, err := p.ia.NewEndpoint(p.endpoint())
		if err != nil {
			return err
		}
		if err = client.CommonConnect(csp.Addr().String(), ep.ConnectConfig{Private: []byte("v1")}); err != nil {
			return err
		}
		ev, err := p.change()
		if err != nil {
			return err
		}
		cr := ep.RequestOf(ev)
		asked, err := cr.Query()
		if err != nil {
			return err
		}
		fmt.Printf("somebody wants %q\n", asked.Private)
		if err = cr.Reject([]byte("v2 only")); err != nil {
			return err
		}
		if ev, err = p.change(); err != nil {
			return err
		}
		fmt.Println(ev.Number)
		return csp.Close()
	})
	// Output:
	// somebody wants "v1"
	// PEER_REJECTED
}

// An adapter says what it can do.
func ExampleIA_Attr() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		attr := p.ia.Attr()
		fmt.Println(attr.Device, "has atomics:", attr.Ops.Has(hw.OpFetchAdd))
		fmt.Println("shared receive queues:", attr.MaxSRQs > 0)
		return nil
	})
	// Output:
	// loop has atomics: true
	// shared receive queues: true
}
