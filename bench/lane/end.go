package lane

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"godat/bench/mode"
	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// end is one end of a connection: an endpoint, and a consumer of the receives that are
// always posted on it. Sends have no events.
type end struct {
	ep       *ep.Endpoint
	pz       *mem.PZ
	lmr      *mem.LMR
	quiet    *evd.Dispatcher
	consumer *mode.Consumer
	out, in  mem.Segment
	stamps   *stamps
	// took is called for each receive that was taken, before it is posted again; a
	// method value that is made once.
	took func(event.Event) bool
	f    func(slot int) bool
	err  error // of a post by took
}

// endConfig says what ends of connections are made of, and where they are made.
type endConfig struct {
	ia          *dat.IA
	pz          *mem.PZ
	conn        *evd.Dispatcher // takes connection events
	quiet       *evd.Dispatcher // takes failed sends; the receives tell of a failure, too
	consumer    *mode.Consumer  // of receives
	size, slots int
	stamps      *stamps // of several producers; nil with one
}

// parts makes what ends of messages of the configuration are made of: so many slots, and so many completions of
// receives, and events of connections and sends.
func (c Config) parts(ia *dat.IA, slots, received, others int) (p endConfig, err error) {
	p = endConfig{ia: ia, size: c.Size, slots: slots}
	if p.pz, err = ia.NewPZ(); err != nil {
		return p, err
	}
	if p.quiet, err = ia.NewDispatcher(evd.Config{QLen: others}); err != nil {
		return p, err
	}
	p.conn = p.quiet
	p.consumer, err = mode.NewConsumer(ia, c.Mode, received, slots)
	return p, err
}

// newEnd makes an end. Its receives have the slots from first on, in steps of step.
func newEnd(c endConfig, first, step int) (*end, error) {
	room := max(c.size, 64)
	lmr, err := c.pz.Alloc(2*room, hw.AllPrivileges)
	if err != nil {
		return nil, err
	}
	e := &end{pz: c.pz, lmr: lmr, quiet: c.quiet, consumer: c.consumer, stamps: c.stamps, out: lmr.Segment(0, c.size), in: lmr.Segment(room, c.size)}
	e.took = e.taken
	n := (c.slots + step - 1) / step
	attr := &ep.Attr{MaxRecvDTOs: n + 16, MaxRequestDTOs: 2*n + 64, MaxRecvIOV: 1, MaxRequestIOV: 1}
	e.ep, err = c.ia.NewEndpoint(ep.Config{PZ: c.pz, Recv: c.consumer.Dispatcher(), Request: c.quiet, Conn: c.conn, Attr: attr})
	if err != nil {
		return nil, err
	}
	for slot := first; slot < c.slots; slot += step {
		if err := e.postRecv(slot); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *end) postRecv(slot int) error {
	if e.stamps != nil {
		return e.consumer.PostRecv(e.ep, slot, e.stamps.in[slot])
	}
	return e.consumer.PostRecv(e.ep, slot, e.in)
}

func (e *end) send(slot int) error { return send(e.ep, slot, e.out) }

// noRoom is what a post finds when as many operations are outstanding as the endpoint
// allows.
var noRoom = &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceCredits}

// A send that finds no room yields for a short time, and then sleeps between its tries:
// what retires the sends of soft-RoCE is a thread of the kernel, which a program that spins
// keeps from the processor.
const (
	briefly  = 100 * time.Microsecond
	nap      = 50 * time.Microsecond
	patience = 10 * time.Second
)

// send posts a send without an event. The endpoint learns of the ends of such sends a few
// at a time, and on a polled device perhaps later than the consumer has what was sent. So
// a post that finds no room waits for some.
func send(e *ep.Endpoint, slot int, seg mem.Segment) error {
	err := e.PostSend(uint64(slot), hw.Suppress, seg)
	if err == nil {
		return nil
	}
	for began := time.Now(); errors.Is(err, noRoom); {
		switch waited := time.Since(began); {
		case waited > patience:
			return fmt.Errorf("no send without an event was retired for %v: %w", patience, err)
		case waited > briefly:
			time.Sleep(nap)
		default:
			runtime.Gosched()
		}
		err = e.PostSend(uint64(slot), hw.Suppress, seg)
	}
	return err
}

// take hands the slots of receives to f, and posts each receive again.
func (e *end) take(f func(slot int) bool) error {
	e.f, e.err = f, nil
	if err := e.consumer.Take(e.took); err != nil {
		return err
	}
	return e.err
}

func (e *end) taken(ev event.Event) bool {
	more := e.f(int(ev.Cookie))
	if e.err = e.postRecv(int(ev.Cookie)); e.err != nil {
		return false
	}
	return more
}

// close closes the end, and what it alone uses.
func (e *end) close() error {
	return errors.Join(e.ep.Close(), e.consumer.Close(), e.quiet.Close(), e.lmr.Free(), e.pz.Close())
}
