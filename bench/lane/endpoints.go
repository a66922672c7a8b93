package lane

import (
	"context"
	"errors"

	"godat/bench/mode"
	dat "godat/runtime"
)

// Config says what an endpoint lane is made of.
type Config struct {
	Provider string // as dat.Open takes it
	Params   map[string]string
	Mode     mode.Mode
	Size     int // bytes of a message
	Depth    int // messages outstanding at most
}

// Endpoints is a connection between two endpoints of one adapter: one sends, and the
// other's receives complete to a consumer. Sends have no events. All messages have the
// same memory at either end, so that what is measured is no cache.
type Endpoints struct {
	ia       *dat.IA
	from, to *dat.Endpoint
	consumer *mode.Consumer
	out, in  dat.Segment
	slots    int

	f       func(slot int) bool
	postErr error // of the last receive that was posted again
	took    func(dat.Event) bool
}

// NewEndpoints opens the adapter and connects the endpoints.
func NewEndpoints(cfg Config) (l *Endpoints, err error) {
	l = &Endpoints{slots: 2 * cfg.Depth}
	if l.ia, err = dat.Open(context.Background(), cfg.Provider, dat.WithParams(cfg.Params)); err != nil {
		return nil, err
	}
	if err = l.connect(cfg); err != nil {
		return nil, errors.Join(err, l.ia.Close())
	}
	l.took = func(ev dat.Event) bool { return l.completed(int(ev.Cookie)) }
	return l, nil
}

func (l *Endpoints) connect(cfg Config) error {
	pz, err := l.ia.NewPZ()
	if err != nil {
		return err
	}
	lmr, err := pz.Alloc(2*max(cfg.Size, 64), dat.AllPrivileges)
	if err != nil {
		return err
	}
	l.out, l.in = lmr.Segment(0, cfg.Size), lmr.Segment(max(cfg.Size, 64), cfg.Size)
	quiet, err := l.ia.NewDispatcher(dat.DispatcherConfig{QLen: 16 + 4*l.slots})
	if err != nil {
		return err
	}
	if l.consumer, err = mode.NewConsumer(l.ia, cfg.Mode, 2*l.slots+64, l.slots); err != nil {
		return err
	}
	attr := &dat.EndpointAttr{MaxRecvDTOs: l.slots + 64, MaxRequestDTOs: 2*l.slots + 64}
	if l.from, err = l.ia.NewEndpoint(dat.EndpointConfig{PZ: pz, Recv: quiet, Request: quiet, Conn: quiet, Attr: attr}); err != nil {
		return err
	}
	if l.to, err = l.ia.NewEndpoint(dat.EndpointConfig{PZ: pz, Recv: l.consumer.Dispatcher(), Request: quiet, Conn: quiet, Attr: attr}); err != nil {
		return err
	}
	for slot := range l.slots {
		if err := l.consumer.PostRecv(l.to, slot, l.in); err != nil {
			return err
		}
	}
	return join(l.ia, quiet, l.from, l.to)
}

// join connects from to to. Their connection events come to quiet.
func join(ia *dat.IA, quiet *dat.Dispatcher, from, to *dat.Endpoint) error {
	psp, err := ia.NewPSP(dat.PSPConfig{Dispatcher: quiet})
	if err != nil {
		return err
	}
	if err := from.Connect(dat.ConnectConfig{Addr: ia.Attr().Address, Qual: psp.Qual()}); err != nil {
		return err
	}
	for established := 0; established < 2; {
		ev, _, err := quiet.Wait(context.Background(), 1)
		if err != nil {
			return err
		}
		switch {
		case ev.Number == dat.ConnectionRequest:
			err = dat.RequestOf(ev).Accept(to, nil)
		case ev.Number == dat.Established:
			established++
		default:
			err = ev.Err()
		}
		if err != nil {
			return err
		}
	}
	return psp.Close()
}

// Slots is how many receives are posted.
func (l *Endpoints) Slots() int { return l.slots }

// Post sends a message.
func (l *Endpoints) Post(slot int) error {
	return l.from.PostSend(uint64(slot), dat.Suppress, l.out)
}

// Take takes the completions of receives, and posts each receive again.
func (l *Endpoints) Take(f func(slot int) bool) error {
	l.f, l.postErr = f, nil
	return errors.Join(l.consumer.Take(l.took), l.postErr)
}

func (l *Endpoints) completed(slot int) bool {
	more := l.f(slot)
	if l.postErr = l.consumer.PostRecv(l.to, slot, l.in); l.postErr != nil {
		return false
	}
	return more
}

// Close closes the adapter.
func (l *Endpoints) Close() error { return l.ia.Close() }
