package ep

import (
	"net"

	"godat/evd"
	"godat/hw"
	"godat/internal/door"
)

// PSP is a public service point: it listens for connection requests until it is
// closed. Its methods may be called from any goroutine. It answers to
// DAT_PSP_HANDLE.
//
// [godat/runtime.IA.NewPSP] makes one. Requests that have come stay valid when it closes.
// [godat/runtime.IA.Listen] makes a service point that also accepts.
type PSP point

// PSPConfig says where a service point listens, and which dispatcher gets its
// requests.
type PSPConfig struct {
	Addr       string // local address; empty means all of the adapter's
	Qual       uint64 // connection qualifier, up to hw.MaxQual; 0 lets the provider choose
	Dispatcher *evd.Dispatcher
	// Backlog is the most requests that may wait for an answer; 0 means 128. The
	// service point rejects further ones (NON_PEER_REJECTED). Requests take no
	// places of the dispatcher's QLen.
	Backlog int
	Flags   PSPFlags
	// Refusal is the private data for the peers whose requests the library rejects: those
	// without an answer when the dispatcher or the adapter is closed.
	Refusal []byte
}

// NewPSP makes a service point. Each connection request is an event on the
// dispatcher; see [RequestOf]. Errors in address and qualifier are those of
// [Endpoint.Connect].
// It answers to dat_psp_create, and with Qual 0 to dat_psp_create_any.
func (a *Adapter) NewPSP(cfg PSPConfig) (*PSP, error) {
	const op = "ep.NewPSP"
	if err := a.checkPoint(op, cfg.Dispatcher, cfg.Backlog); err != nil {
		return nil, err
	}
	if cfg.Flags > PSPProvider {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "flags %d", cfg.Flags)
	}
	if err := a.checkPrivate(op, cfg.Refusal); err != nil {
		return nil, err
	}
	p := &PSP{adapter: &a.pointRegistry, to: cfg.Dispatcher, backlog: cfg.Backlog, refusal: cfg.Refusal, flags: cfg.Flags}
	if err := p.point().start(op, p, cfg.Addr, cfg.Qual); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *PSP) point() *point { return (*point)(p) }

// Qual returns the connection qualifier that the service point listens on.
func (p *PSP) Qual() uint64 { return p.point().qual() }

// Addr returns the address that the service point listens on.
func (p *PSP) Addr() net.Addr { return p.point().addr() }

// Query says what the service point was made with, with the qualifier and backlog that it has. It answers
// to dat_psp_query.
func (p *PSP) Query() (PSPConfig, error) {
	if err := p.point().query(kindPSP); err != nil {
		return PSPConfig{}, err
	}
	return PSPConfig{Addr: p.asked, Qual: p.Qual(), Dispatcher: p.to, Backlog: p.backlog, Flags: p.flags, Refusal: p.refusal}, nil
}

// Home returns the adapter. Package runtime calls it.
func (p *PSP) Home(door.Key) (ia any, err error) { return p.point().home(kindPSP) }

// Close stops listening: no request comes once it has returned. Requests that came
// before stay valid. A second Close waits for the first and does nothing else. An
// error is the device's: the service point then takes no more requests, and Close
// may be called once more.
// It answers to dat_psp_free.
func (p *PSP) Close() error { return p.point().close(kindPSP) }

// SetName has the counts of the service point under the name of the listener that it is part of, once it is closed.
// Package runtime calls it.
func (p *PSP) SetName(_ door.Key, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.label = name
}
