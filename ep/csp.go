package ep

import (
	"cmp"
	"net"

	"godat/evd"
	"godat/internal/door"
)

// CSP is a common service point: it listens as a socket does, at an address that
// says both host and port. Its methods may be called from any goroutine. It
// answers to DAT_CSP_HANDLE.
//
// [godat/runtime.IA.NewCSP] makes one, [Endpoint.CommonConnect] connects to it.
type CSP point

// CSPConfig says where a common service point listens, and which dispatcher gets
// its requests.
type CSPConfig struct {
	Comm       Comm
	Address    string // "host:port"; an empty host is all of the adapter's addresses
	Dispatcher *evd.Dispatcher
	Backlog    int // as in PSPConfig
}

// NewCSP makes a common service point. Its requests are announced as those of a PSP
// are.
// It answers to dat_csp_create.
func (a *Adapter) NewCSP(cfg CSPConfig) (*CSP, error) {
	const op = "ep.NewCSP"
	if err := cmp.Or(a.checkPoint(op, cfg.Dispatcher, cfg.Backlog), cfg.Comm.check(op)); err != nil {
		return nil, err
	}
	host, qual, err := splitAddress(op, cfg.Address)
	if err != nil {
		return nil, err
	}
	c := &CSP{adapter: &a.pointRegistry, to: cfg.Dispatcher, backlog: cfg.Backlog, comm: cfg.Comm}
	if err := c.point().start(op, c, host, qual); err != nil {
		return nil, err
	}
	return c, nil
}

// Addr returns the address that the service point listens on.
func (c *CSP) Addr() net.Addr { return c.point().addr() }

func (c *CSP) point() *point { return (*point)(c) }

// Query says what the service point was made with, with the address and backlog that it has. It answers to
// dat_csp_query.
func (c *CSP) Query() (CSPConfig, error) {
	if err := c.point().query(kindCSP); err != nil {
		return CSPConfig{}, err
	}
	return CSPConfig{Comm: c.comm, Address: c.Addr().String(), Dispatcher: c.to, Backlog: c.backlog}, nil
}

// Home returns the adapter. Package runtime calls it.
func (c *CSP) Home(door.Key) (ia any, err error) { return c.point().home(kindCSP) }

// Close stops listening, as [PSP.Close] does. It answers to dat_csp_free.
func (c *CSP) Close() error { return c.point().close(kindCSP) }
