package ep

import (
	"net"
	"sync"

	"godat/evd"
	"godat/hw"
)

// PSP is a public service point: it listens for connection requests until it is
// closed. It answers to DAT_PSP_HANDLE.
type PSP struct {
	// Immutable after Listen.
	adapter  *Adapter
	to       *evd.Dispatcher
	backlog  int
	listener hw.Listener

	mu      sync.Mutex
	waiting int // requests not answered yet
	closed  bool
}

// PSPConfig says where a service point listens, and who hears of requests.
type PSPConfig struct {
	Addr       string // local address; empty means all of the adapter's
	Qual       uint64 // connection qualifier; 0 lets the provider choose
	Dispatcher *evd.Dispatcher
	// Backlog is the most requests waiting for an answer; 0 means as many as the
	// dispatcher has room for. What exceeds it is rejected (NON_PEER_REJECTED).
	Backlog int
}

// Listen makes a service point. Each connection request is an event on the
// dispatcher; see [RequestOf].
// It answers to dat_psp_create, and with Qual 0 to dat_psp_create_any.
func (a *Adapter) Listen(cfg PSPConfig) (*PSP, error) {
	const op = "ep.Listen"
	switch {
	case a == nil:
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleIA}
	case cfg.Dispatcher == nil:
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEVDCR, Text: "a service point needs a dispatcher"}
	case cfg.Backlog < 0:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "the backlog %d is negative", cfg.Backlog)
	}
	if err := cfg.Dispatcher.Attach(evd.StreamCR); err != nil {
		return nil, wrap(op, err)
	}
	p := &PSP{adapter: a, to: cfg.Dispatcher, backlog: cfg.Backlog}
	l, err := a.dev.Listen(hw.ListenConfig{Addr: cfg.Addr, Qual: cfg.Qual, Backlog: cfg.Backlog, OnRequest: p.onRequest})
	if err != nil {
		cfg.Dispatcher.Detach()
		return nil, wrap(op, err)
	}
	p.listener = l
	a.mu.Lock()
	defer a.mu.Unlock()
	a.psps[p] = struct{}{}
	return p, nil
}

// onRequest makes an event of a request, if there is room for it.
func (p *PSP) onRequest(r hw.Request) bool {
	p.mu.Lock()
	full := p.closed || p.backlog > 0 && p.waiting >= p.backlog
	if !full {
		p.waiting++
	}
	p.mu.Unlock()
	if full {
		return false
	}
	to := p.to.Main()
	if !to.Reserve(1) {
		p.answered()
		return false
	}
	cr := &CR{psp: p, request: r}
	cr.private, cr.truncated = r.Private()
	p.adapter.addCR(cr)
	ev := evd.Event{Number: evd.ConnectionRequest, Source: p, Data: cr}
	to.Put(&ev, false)
	to.Flush()
	return true
}

func (p *PSP) answered() {
	p.mu.Lock()
	p.waiting--
	p.mu.Unlock()
}

// Qual is the connection qualifier it listens on.
func (p *PSP) Qual() uint64 { return p.listener.Qual() }

// Addr is the address it listens on.
func (p *PSP) Addr() net.Addr { return p.listener.Addr() }

// Dispatcher is where its requests go.
func (p *PSP) Dispatcher() *evd.Dispatcher { return p.to }

// Close stops listening. Requests that came before stay valid. Closing it again
// does nothing. It answers to dat_psp_free.
func (p *PSP) Close() error {
	if p == nil {
		return &hw.Error{Op: "ep.PSP.Close", Type: hw.InvalidHandle, Sub: hw.HandlePSP}
	}
	p.mu.Lock()
	was := p.closed
	p.closed = true
	p.mu.Unlock()
	if was {
		return nil
	}
	err := p.listener.Close()
	p.adapter.mu.Lock()
	delete(p.adapter.psps, p)
	p.adapter.mu.Unlock()
	p.to.Detach()
	return wrap("ep.PSP.Close", err)
}
