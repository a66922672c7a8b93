package lane

import (
	"context"
	"errors"
	"fmt"

	"godat/bench/mode"
	"godat/ep"
	"godat/evd"
	"godat/hw/event"
	dat "godat/runtime"
)

// Config says what a lane of endpoints is made of.
type Config struct {
	Provider string // as dat.Open takes it
	Params   map[string]string
	Mode     mode.Mode
	Size     int // bytes of a message
	Depth    int // messages outstanding at most
	// Conns is how many connections the messages go over in turns; 0 means 1. One
	// consumer has the receives of all.
	Conns int
	// Producers is how many goroutines post; 0 means 1. Several share one connection.
	Producers int
}

// Adapter opens the adapter.
func (c Config) Adapter() (*dat.IA, error) {
	return dat.Open(context.Background(), c.Provider, dat.WithParams(c.Params))
}

// In is the same with consumers of another mode.
func (c Config) In(m mode.Mode) Config {
	c.Mode = m
	return c
}

func (c Config) conns() int { return max(c.Conns, 1) }

func (c Config) producers() int { return max(c.Producers, 1) }

// slots are twice as many as messages may be outstanding, because a consumer lets the
// next be posted before it has posted a receive again. Each connection has as many.
func (c Config) slots() int {
	n := c.conns()
	return (2*c.Depth + n - 1) / n * n
}

// Endpoints are connections between endpoints of one adapter: one end sends, and the
// other's receives complete to a consumer. All messages of a connection have the same
// memory at either end, so that what is measured is no cache. Only if several producers
// share the connection, messages have memory of their own, see stamps.
type Endpoints struct {
	ia     *dat.IA
	from   []*ep.Endpoint
	to     []*end
	slots  int
	stamps *stamps // nil with one producer

	f    func(slot int) bool
	took func(event.Event) bool
	err  error // of the last receive that was posted again
}

// NewEndpoints opens the adapter and connects the endpoints.
func NewEndpoints(cfg Config) (l *Endpoints, err error) {
	l = &Endpoints{slots: cfg.slots()}
	if l.ia, err = cfg.Adapter(); err != nil {
		return nil, err
	}
	if err = l.connect(cfg); err != nil {
		return nil, errors.Join(err, l.ia.Close())
	}
	l.took = l.taken
	return l, nil
}

func (l *Endpoints) connect(cfg Config) error {
	each, err := cfg.parts(l.ia, l.slots, 2*l.slots+64, 64+8*(l.slots+cfg.conns()))
	if err != nil {
		return err
	}
	pz, quiet := each.pz, each.quiet
	psp, err := l.ia.NewPSP(ep.PSPConfig{Dispatcher: quiet})
	if err != nil {
		return err
	}
	if cfg.producers() > 1 {
		if l.stamps, err = newStamps(pz, cfg); err != nil {
			return err
		}
	}
	each.stamps = l.stamps
	attr := &ep.Attr{MaxRequestDTOs: 2*l.slots/cfg.conns() + 64, MaxRequestIOV: 1}
	for i := range cfg.conns() {
		to, err := newEnd(each, i, cfg.conns())
		if err != nil {
			return err
		}
		from, err := l.ia.NewEndpoint(ep.Config{PZ: pz, Recv: quiet, Request: quiet, Conn: quiet, Attr: attr})
		if err != nil {
			return err
		}
		if err := from.Connect(ep.ConnectConfig{Addr: l.ia.Attr().Address, Qual: psp.Qual()}); err != nil {
			return err
		}
		if err := established(quiet, to.ep, 2); err != nil {
			return err
		}
		l.from, l.to = append(l.from, from), append(l.to, to)
	}
	return psp.Close()
}

// established waits for n ends of a connection, and accepts the request for it with to.
func established(quiet *evd.Dispatcher, to *ep.Endpoint, n int) error {
	for n > 0 {
		ev, _, err := quiet.Wait(context.Background(), 1)
		if err != nil {
			return err
		}
		switch ev.Number {
		case event.ConnectionRequest:
			err = ep.RequestOf(ev).Accept(to, nil)
		case event.Established:
			n--
		default:
			err = neverUp(ev)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// neverUp is the error of an event that came in place of a connection. An orderly end is one,
// too. It is nil for events that are no ends and no failures.
func neverUp(ev event.Event) error {
	err := ev.Err()
	if err == nil && ev.Ended() {
		err = fmt.Errorf("%w before the connection was up", event.Error(ev.Number))
		if cause := ev.Cause(); cause != nil {
			err = fmt.Errorf("%w: %w", err, cause)
		}
	}
	if ev.Number == event.PeerRejected {
		err = fmt.Errorf("%w: %s", err, refusalIn(ev))
	}
	return err
}

// Slots is how many receives are posted.
func (l *Endpoints) Slots() int { return l.slots }

// Post sends a message.
func (l *Endpoints) Post(slot int) error {
	if l.stamps != nil {
		return send(l.from[0], slot, l.stamps.out[slot/l.stamps.slots])
	}
	c := slot % len(l.from)
	return send(l.from[c], slot, l.to[c].out)
}

// Take takes the completions of receives, and posts each receive again.
func (l *Endpoints) Take(f func(slot int) bool) error {
	l.f, l.err = f, nil
	return errors.Join(l.to[0].consumer.Take(l.took), l.err)
}

func (l *Endpoints) taken(ev event.Event) bool {
	recv := int(ev.Cookie) // its slot, and with one producer the message's
	slot := recv
	if l.stamps != nil {
		slot = l.stamps.slotOf(recv)
	}
	more := l.f(slot)
	if l.err = l.to[recv%len(l.to)].postRecv(recv); l.err != nil {
		return false
	}
	return more
}

// Loop is that of the consumer.
func (l *Endpoints) Loop() string { return l.to[0].consumer.Loop() }

// Close closes the adapter.
func (l *Endpoints) Close() error {
	err := l.ia.Close()
	_ = l.to[0].consumer.Close() // the adapter has closed its dispatcher
	return err
}
