package lane

import (
	"errors"

	"godat/bench/mode"
	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// Writes are RDMA writes from one endpoint to the memory of another on the same adapter.
// What is taken are their completions at the poster.
type Writes struct {
	ia       *dat.IA
	from     *ep.Endpoint
	consumer *mode.Consumer
	local    mem.Segment
	remote   mem.RemoteSegment
	slots    int
}

// NewWrites opens the adapter and connects the endpoints.
func NewWrites(cfg Config) (l *Writes, err error) {
	l = &Writes{slots: cfg.slots()}
	if l.ia, err = cfg.Adapter(); err != nil {
		return nil, err
	}
	if err = l.connect(cfg); err != nil {
		return nil, errors.Join(err, l.ia.Close())
	}
	return l, nil
}

func (l *Writes) connect(cfg Config) error {
	with, err := cfg.parts(l.ia, l.slots, 2*l.slots+64, 128)
	if err != nil {
		return err
	}
	l.consumer = with.consumer
	pz, quiet := with.pz, with.quiet
	lmr, err := pz.Alloc(2*cfg.Size, hw.AllPrivileges)
	if err != nil {
		return err
	}
	l.local, l.remote = lmr.Segment(0, cfg.Size), lmr.Remote(cfg.Size, cfg.Size)
	psp, err := l.ia.NewPSP(ep.PSPConfig{Dispatcher: quiet})
	if err != nil {
		return err
	}
	attr := &ep.Attr{MaxRequestDTOs: l.slots}
	l.from, err = l.ia.NewEndpoint(ep.Config{PZ: pz, Recv: quiet, Request: l.consumer.Dispatcher(), Conn: quiet, Attr: attr})
	if err != nil {
		return err
	}
	to, err := l.ia.NewEndpoint(ep.Config{PZ: pz, Recv: quiet, Request: quiet, Conn: quiet})
	if err != nil {
		return err
	}
	if err := l.from.Connect(ep.ConnectConfig{Addr: l.ia.Attr().Address, Qual: psp.Qual()}); err != nil {
		return err
	}
	return errors.Join(established(quiet, to, 2), psp.Close())
}

// Slots is how many writes may be outstanding.
func (l *Writes) Slots() int { return l.slots }

// Post posts a write.
func (l *Writes) Post(slot int) error {
	return l.consumer.PostWrite(l.from, slot, l.remote, l.local)
}

// Take takes completions.
func (l *Writes) Take(f func(slot int) bool) error {
	return l.consumer.Take(func(ev event.Event) bool { return f(int(ev.Cookie)) })
}

// Loop is that of the consumer.
func (l *Writes) Loop() string { return l.consumer.Loop() }

// Close closes the adapter. It does not end a Take in mode PerRequest while no write is
// outstanding.
func (l *Writes) Close() error {
	err := l.ia.Close()
	_ = l.consumer.Close() // the adapter has closed its dispatcher
	return err
}

// Copy is a copy in memory, which a channel tells of.
type Copy struct {
	*Channel
	to, from []byte
}

// NewCopy makes a lane that copies Size bytes for each message.
func NewCopy(cfg Config) *Copy {
	return &Copy{Channel: NewChannel(cfg.Depth), to: make([]byte, cfg.Size), from: make([]byte, cfg.Size)}
}

// Post copies.
func (l *Copy) Post(slot int) error {
	copy(l.to, l.from)
	return l.Channel.Post(slot)
}
