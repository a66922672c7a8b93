package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"godat/hw"
)

// Pairing is a connection that waits for the values of its peer. [IA.NewPaired] makes one.
// Its methods may be called from any goroutine.
type Pairing struct {
	conn  *Conn
	local hw.PairAddr

	mu sync.Mutex
	up bool // Connect has succeeded: the connection is the program's
}

// NewPaired makes a connection to a peer with which the program exchanges values by means
// of its own, in place of Dial and Accept: programs without a connection manager can be such
// peers. The program gives the peer Local, gets the peer's values, and calls Connect. The
// receives are posted before NewPaired returns, and ConnConfig.Setup is called; its private
// data, and ConnConfig.Private, go nowhere. See [ep.Endpoint.Pair] for what is different from
// a connection that was dialed.
//
// A device that can't pair, as iwarp's, fails with MODEL_NOT_SUPPORTED; other errors are those
// of [IA.Dial].
func (ia *IA) NewPaired(cfg ConnConfig) (*Pairing, error) {
	const op = "runtime.NewPaired"
	if err := cfg.prepare(context.Background(), op, ia); err != nil {
		return nil, err
	}
	p := &Pairing{conn: newConn(ia, &cfg, nil, fmt.Sprintf("pair %d", ia.dials.Add(1)), nil)}
	err := p.conn.begin(op, nil, func([]byte) (err error) {
		p.local, err = p.conn.Endpoint.PairAddr()
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// isMade reports whether NewPaired has made the pairing.
func (p *Pairing) isMade() bool { return p != nil && p.conn != nil }

// Local is what the peer needs: the value for its Connect, or for the call of another library.
func (p *Pairing) Local() (local hw.PairAddr) {
	if !p.isMade() {
		return local
	}
	return p.local
}

// Connect pairs with the peer and returns the connection, without waiting for the peer. A value
// that the device can tell is wrong is INVALID_PARAMETER, and the program may call Connect
// again. After another error, and after a first success, the pairing is over:
// INVALID_HANDLE/EP. A nil ctx is INVALID_PARAMETER.
func (p *Pairing) Connect(ctx context.Context, peer hw.PairAddr) (*Conn, error) {
	const op = "runtime.Pairing.Connect"
	if ctx == nil {
		return nil, nilContext(op)
	}
	if !p.isMade() {
		return nil, closedConn(op)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.up || p.conn.closed.Load() {
		return nil, closedConn(op)
	}
	err := p.conn.Endpoint.Pair(peer)
	if errors.Is(err, hw.ErrInvalidParameter) {
		return nil, named(op, peer.String(), err)
	}
	if err == nil {
		err = p.conn.established(ctx)
	}
	if err != nil {
		return nil, p.conn.ia.gate.orClosed(op, errors.Join(named(op, peer.String(), err), p.conn.Close()))
	}
	p.conn.findAddrs() // for a program that asks behind the end
	p.up = true
	return p.conn, nil
}

// Close gives back what a pairing has that has not connected; a second one does nothing. It leaves a connection that
// Connect has returned as it is.
func (p *Pairing) Close() error {
	if !p.isMade() {
		return closedConn("runtime.Pairing.Close")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.up {
		return nil
	}
	return p.conn.Close()
}

// String names the pairing by its endpoint. It may be called at any time, like the String of
// every handle.
func (p *Pairing) String() string {
	if !p.isMade() {
		return "Pairing(nil)"
	}
	return "Pairing(" + p.conn.Endpoint.String() + ")"
}

// LogValue is String, for log/slog.
func (p *Pairing) LogValue() slog.Value { return slog.StringValue(p.String()) }
