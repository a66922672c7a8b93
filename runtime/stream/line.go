package stream

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// line is a connection without its calls: what both directions share, what completions
// change, and what posts. A Conn adds who may read, write and close.
type line struct {
	// Immutable.
	linger   time.Duration
	events   *evd.Dispatcher
	pz       *mem.PZ
	slots    *mem.LMR    // of messages
	sends    mem.Segment // of slots: messages under way
	recvs    mem.Segment // of slots: receives
	endpoint *ep.Endpoint
	up       chan struct{} // closed when the connection is established
	down     chan struct{} // closed when it has ended, or an attempt at it
	gone     chan struct{} // closed when the adapter's close, or free, has closed events

	flow   flow
	reader waiter
	writer waiter
	ended  atomic.Pointer[end] // why the connection is over
	closed atomic.Bool         // Close was called

	sending sync.Mutex // held while messages and receives are posted; after the other two
	batch   [2]ep.DTO  // the holder of sending uses it
	growing sync.WaitGroup

	late *time.Timer // makes reports that no call makes; immutable
	owed atomic.Bool // late is set for what became due while no call was there

	looked atomic.Pointer[looked] // by Snapshot; nil before the first
	memory atomic.Int64           // octets that are registered; the holder of sending writes it
}

type end struct{ err error }

// The offsets in line.slots.
const (
	sendSlots = 0
	recvSlots = messages * slotSize
	slotBytes = 2 * messages * slotSize
)

// The cookies of a connection's operations: those of receives are the number of the slot,
// those of signaled messages sendCookie and the number of the slot.
const (
	sendCookie   = 1 << 32
	silentCookie = 1 << 33 // of operations whose success says nothing
)

func (c *line) make(ia *dat.IA) (err error) {
	c.gone = make(chan struct{})
	c.events, err = ia.NewDispatcher(evd.Config{Mode: evd.ModeFunc, Func: c.hear})
	if err != nil {
		return err
	}
	if c.pz, err = ia.NewPZ(); err != nil {
		return err
	}
	c.memory.Store(slotBytes + leastRing)
	if c.flow.in.first, err = newRing(c.pz, leastRing, forPeer); err != nil {
		return err
	}
	slots := make([]byte, slotBytes)
	c.flow.in.slots, c.flow.out.slots = slots[recvSlots:], slots[sendSlots:recvSlots]
	if c.slots, err = c.pz.Register(slots, hw.LocalRead|hw.LocalWrite); err != nil {
		return err
	}
	c.endpoint, err = ia.NewEndpoint(ep.Config{
		PZ: c.pz, Recv: c.events, Request: c.events, Conn: c.events, Context: c,
		Attr: &ep.Attr{
			MaxRecvDTOs: messages, MaxRequestDTOs: 2 * messages, MaxRecvIOV: 1, MaxRequestIOV: 1,
		},
	})
	if err != nil {
		return err
	}
	c.late = time.AfterFunc(longestHold, c.reportLate)
	c.late.Stop() // until hold or reportSoon starts it
	c.sends, c.recvs = c.slots.Segment(sendSlots, recvSlots-sendSlots), c.slots.Segment(recvSlots, slotBytes-recvSlots)
	c.reader.watcher = c.endpoint.Watcher()
	c.writer.watcher = c.reader.watcher
	if c.reader.watcher != nil {
		c.reader.ready, c.reader.lookFn = c.mayRead, c.reader.look
	}
	for slot := uint64(0); err == nil && slot < messages; slot += receiveLot {
		_, err = c.postReceives(slot, receiveLot)
	}
	return err
}

// hello is what this end tells the peer.
func (f *flow) hello() []byte {
	return hello{f.in.first.region.Remote(0, leastRing), messages, 0}.append(nil)
}

// meet takes the peer's hello, before any message can come or go.
func (f *flow) meet(h hello) {
	f.out.peer = h.ring
	f.out.smallest = h.ring.Len
	f.out.receives = uint64(h.receives)
	f.out.version = h.version
}

// free gives back everything. The rings stay for a call that still reads them, such as a
// WriteTo whose writer is slow: they are of the Go heap, and no device knows them any more.
// What the adapter's close has taken already is no error.
func (c *line) free() error {
	if c.endpoint != nil {
		if err := c.endpoint.Close(); err != nil {
			return gone(err) // the endpoint still uses the rest
		}
	}
	c.growing.Wait() // no message comes any more that starts it
	c.sending.Lock() // for a stage under way
	defer c.sending.Unlock()
	if c.late != nil {
		c.late.Stop()
	}
	var errs []error
	for _, region := range []*mem.LMR{c.flow.in.first.region, c.flow.in.second.region, c.flow.in.landing.region, c.flow.out.image.region, c.flow.out.loan.region, c.slots} {
		if region != nil {
			errs = append(errs, gone(region.Free()))
		}
	}
	if c.pz != nil {
		errs = append(errs, gone(c.pz.Close()))
	}
	if c.events != nil {
		errs = append(errs, gone(c.events.Close()))
	}
	return errors.Join(errs...)
}

// gone drops the error of an object that is closed already.
func gone(err error) error {
	if errors.Is(err, hw.ErrInvalidHandle) {
		return nil
	}
	return err
}

// disconnect sends a FIN and ends the connection: gracefully, unless that takes too long. A
// connection that is not up yet may come up first.
func (c *line) disconnect() {
	if c.linger > 0 {
		late := time.NewTimer(c.linger)
		defer late.Stop()
		if c.await(c.up, late.C) && c.finish() == nil && c.endpoint.Disconnect(ep.Graceful) == nil {
			c.await(c.down, late.C)
		}
	}
	_ = c.endpoint.Disconnect(ep.Abrupt) // not if it has ended
}

// await waits until done is closed, and reports whether it was. It gives up when the
// connection or the adapter is down, and when it is late.
func (c *line) await(done <-chan struct{}, late <-chan time.Time) bool {
	c.writer.need(true)
	defer c.writer.need(false)
	select {
	case <-done:
		return true
	case <-c.down:
	case <-c.gone:
	case <-late:
	}
	return false
}

// wait waits for ready. Where consumers poll the device or help it, it polls first, and
// leaves the device to the adapter. Where messages can be waited for as they come in, a
// reader does so.
func (c *line) wait(w *waiter, ready func() bool) {
	if w.watch() {
		return
	}
	c.events.Ask(false)
	w.wait(c.events, ready)
}
