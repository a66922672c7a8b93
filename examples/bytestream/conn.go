package bytestream

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

const (
	farewell = 5 * time.Second // that Close waits for the peer to take what was written

	depth      = 16       // messages under way in each direction, at most
	slotSize   = 16 << 10 // bytes of a message
	headerSize = 8
	leastLent  = 4 << 10 // bytes of a Write that lends them
	mostLent   = 1 << 20 // at a time
	sendCookie = 1 << 32 // of sends; a receive has the number of its slot
)

// Conn is one end of a stream. One goroutine at a time may Read, and one Write; further ones wait
// their turn. Close may be called at any time.
type Conn struct {
	// Immutable.
	events   *evd.Dispatcher
	pz       *mem.PZ
	memory   []byte   // depth slots for receives, depth for sends
	slots    *mem.LMR // is that memory
	loan     *mem.LMR // what a Write lends; nil where the device can't
	endpoint *ep.Endpoint
	watcher  hw.Watcher // nil: none
	up, down chan struct{}
	readable chan struct{} // of length 1, as the next two
	writable chan struct{}
	work     chan struct{} // for keep
	stop     chan struct{}
	kept     sync.WaitGroup

	reading, writing sync.Mutex
	sending          sync.Mutex // held while a message is posted
	closing          sync.Once
	closed           error

	mu      sync.Mutex // never held around a call of the library, because hear takes it
	over    error      // why the stream has ended
	sends   bool       // up is closed: messages may come before that, and none is sent
	ended   bool       // down is closed
	parked  bool       // a Read sleeps in the watcher
	inbox   []message  // that came and were not read
	empty   []uint64   // slots to be posted again
	granted uint64     // receives posted so far
	told    uint64     // what the peer knows of them
	allowed uint64     // what the peer has granted
	posted  uint64     // messages
	done    uint64     // of them
}

// message is what is left to read of a message in a slot.
type message struct{ slot, from, to uint64 }

func newConn(ia *dat.IA) (*Conn, error) {
	c := &Conn{
		memory: make([]byte, 2*depth*slotSize),
		up:     make(chan struct{}), down: make(chan struct{}), stop: make(chan struct{}),
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1), work: make(chan struct{}, 1),
	}
	if err := c.make(ia); err != nil {
		return nil, errors.Join(err, c.free())
	}
	c.kept.Go(c.keep)
	return c, nil
}

func (c *Conn) make(ia *dat.IA) (err error) {
	if c.events, err = ia.NewDispatcher(evd.Config{Mode: evd.ModeFunc, Func: c.hear}); err != nil {
		return err
	}
	if c.pz, err = ia.NewPZ(); err != nil {
		return err
	}
	if c.slots, err = c.pz.Register(c.memory, hw.LocalRead|hw.LocalWrite); err != nil {
		return err
	}
	if c.loan, err = c.pz.NewLoan(mostLent, hw.LocalRead); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	c.endpoint, err = ia.NewEndpoint(ep.Config{
		PZ: c.pz, Recv: c.events, Request: c.events, Conn: c.events,
		Attr: &ep.Attr{MaxRecvDTOs: depth, MaxRequestDTOs: depth, MaxRecvIOV: 1, MaxRequestIOV: 2},
	})
	if err != nil {
		return err
	}
	c.watcher = c.endpoint.Watcher()
	for slot := range uint64(depth) { // before the connection: the peer may send at once
		if err := c.postReceive(slot); err != nil {
			return err
		}
	}
	c.told = depth // by the protocol
	return nil
}

// hear gets each event, from the goroutine that completes the operation, while it does.
func (c *Conn) hear(ev event.Event) {
	c.mu.Lock()
	switch {
	case ev.Number == event.Established:
		c.allowed, c.sends = max(c.allowed, depth), true
		close(c.up)
	case ev.Number == event.Closed:
		c.end(net.ErrClosed)
	case ev.Number != event.DTOCompletion: // the connection's end
		c.end(ev.Err())
		if !c.ended {
			c.ended = true
			close(c.down)
		}
	case ev.Cookie&sendCookie != 0: // sends complete in their order
		c.done++
	case ev.Status == hw.StatusSuccess && ev.Length >= headerSize:
		c.arrive(ev.Cookie, uint64(ev.Length))
	}
	due, parked := c.due(), c.parked
	c.mu.Unlock()
	wake(c.readable)
	wake(c.writable)
	if due {
		wake(c.work)
	}
	if parked {
		c.watcher.Disturb()
	}
}

// arrive takes a message. The caller holds mu, as for all functions down to due.
func (c *Conn) arrive(slot, length uint64) {
	c.allowed = max(c.allowed, binary.BigEndian.Uint64(c.slot(slot)))
	if length == headerSize {
		c.empty = append(c.empty, slot)
		return
	}
	c.inbox = append(c.inbox, message{slot, headerSize, length})
}

// end notes why the stream has ended: the first reason stays.
func (c *Conn) end(err error) {
	if err == nil { // the peer has disconnected in order
		err = io.EOF
	}
	if c.over == nil {
		c.over = err
	}
}

func (c *Conn) mayRead() bool  { return len(c.inbox) > 0 }
func (c *Conn) maySend() bool  { return c.sends && c.posted < c.allowed && c.posted-c.done < depth }
func (c *Conn) mayWrite() bool { return c.maySend() && c.posted+1 < c.allowed }
func (c *Conn) allSent() bool  { return c.done == c.posted }

// mayGrant reports whether a message without bytes is worth it. It grants several others: if the last message that an end may
// send granted none, both ends could wait for each other's grants.
func (c *Conn) mayGrant() bool { return c.granted-c.told >= depth/2 && c.maySend() }

// due reports whether keep has something to do, and can do it.
func (c *Conn) due() bool { return len(c.empty) > 0 || c.mayGrant() }

func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // a token is there that nobody has taken yet
	}
}

// slot is the memory of a slot, which stays when its region is freed.
func (c *Conn) slot(i uint64) []byte { return c.memory[i*slotSize:][:slotSize] }

func (c *Conn) postReceive(slot uint64) error {
	err := c.endpoint.PostRecv(slot, 0, c.slots.Segment(int(slot*slotSize), slotSize))
	if err == nil {
		c.mu.Lock()
		c.granted++
		c.mu.Unlock()
	}
	return err
}

// keep posts receives again, and grants them if nothing is written.
func (c *Conn) keep() {
	for {
		select {
		case <-c.work:
		case <-c.stop:
			return
		}
		c.mu.Lock()
		slots := c.empty
		c.empty = nil
		c.mu.Unlock()
		for _, slot := range slots {
			_ = c.postReceive(slot) // if it fails, the connection has ended, which an event tells
		}
		_, _ = c.post(c.mayGrant, nil, -1)
	}
}

// post sends p, which begins at that place of the loan, or has to be copied if at is negative. It
// reports false, and has done nothing, unless may does.
func (c *Conn) post(may func() bool, p []byte, at int) (bool, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	if !may() {
		c.mu.Unlock()
		return false, nil
	}
	slot, granted := depth+c.posted%depth, c.granted
	c.posted++ // before the post, whose completion may come at once
	c.told = granted
	c.mu.Unlock()
	memory := binary.BigEndian.AppendUint64(c.slot(slot)[:0], granted)
	segments := make([]mem.Segment, 0, 2)
	if at < 0 {
		memory = append(memory, p...)
	}
	segments = append(segments, c.slots.Segment(int(slot*slotSize), len(memory)))
	if at >= 0 {
		segments = append(segments, c.loan.Segment(at, len(p)))
	}
	err := c.endpoint.PostSend(sendCookie, 0, segments...)
	if err != nil {
		c.mu.Lock()
		c.posted--
		if c.over != nil { // the stream has ended since, and the endpoint with it
			err = c.over
		}
		c.mu.Unlock()
	}
	return err == nil, err
}

// wait waits until ready, or until the stream has ended. What has come may be read behind the peer's end, and not
// behind Close; nothing is written then.
func (c *Conn) wait(token chan struct{}, ready func() bool) error {
	reads := token == c.readable && c.watcher != nil
	look := func(parks bool) (stops bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if reads { // a Write beside it leaves parked alone
			c.parked = parks
		}
		return ready() || c.over != nil
	}
	for !look(false) {
		if reads && c.watcher.Watch(look) {
			continue
		}
		if c.watcher != nil {
			c.watcher.Need(true)
		}
		if c.events.Asks() {
			c.events.Ask(false)
		}
		if !look(false) {
			<-token
		}
		if c.watcher != nil {
			c.watcher.Need(false)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil && (token == c.writable || !ready() || errors.Is(c.over, net.ErrClosed)) {
		return c.over
	}
	return nil
}

// Read reads what has come, and waits if that is nothing. Behind the peer's Close the error is io.EOF.
func (c *Conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if err := c.wait(c.readable, c.mayRead); err != nil {
		return 0, err
	}
	c.mu.Lock()
	m := c.inbox[0]
	c.mu.Unlock()
	n := copy(p, c.slot(m.slot)[m.from:m.to])
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inbox[0].from += uint64(n); c.inbox[0].from == m.to {
		c.inbox = slices.Delete(c.inbox, 0, 1)
		c.empty = append(c.empty, m.slot)
		wake(c.work)
	}
	return n, nil
}

// Write writes p. It returns when p is the caller's again, whatever the peer does.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for err == nil && n < len(p) {
		var k int
		k, err = c.write(p[n:min(len(p), n+mostLent)])
		n += k
	}
	if errors.Is(err, io.EOF) { // the peer has closed, which is the end of what a Read reads
		err = io.ErrClosedPipe
	}
	return n, err
}

func (c *Conn) write(p []byte) (n int, err error) {
	if err = c.wait(c.writable, c.mayWrite); err != nil {
		return 0, err // sends of an earlier Write may be under way
	}
	lent := len(p) >= leastLent && c.loan != nil && c.loan.Lend(p) == nil
	for err == nil && n < len(p) {
		k, at := min(len(p)-n, slotSize-headerSize), -1
		if lent {
			at = n
		}
		if err = c.wait(c.writable, c.mayWrite); err != nil {
			break
		}
		var posted bool
		if posted, err = c.post(c.mayWrite, p[n:n+k], at); posted {
			n += k
		}
	}
	if lent && c.wait(c.writable, c.allSent) != nil {
		_ = c.loan.TakeBack(slices.Clone(p)) // sends under way go on; if the region is freed, nothing reads p either
	}
	return n, err
}

// Close sends what was written, ends the stream and frees everything. It waits at most [farewell] for a peer that
// takes nothing. Calls of Read and Write end with [net.ErrClosed].
func (c *Conn) Close() error {
	c.closing.Do(func() {
		c.mu.Lock()
		c.over = net.ErrClosed
		c.mu.Unlock()
		wake(c.readable)
		wake(c.writable)
		if c.watcher != nil {
			c.watcher.Disturb()
		}
		if c.endpoint.Disconnect(ep.Graceful) == nil {
			select {
			case <-c.down:
			case <-time.After(farewell):
			}
		}
		close(c.stop)
		c.kept.Wait()
		c.closed = c.free()
	})
	return c.closed
}

// free gives back what there is, the users before what they use.
func (c *Conn) free() error {
	var errs []error
	if c.endpoint != nil {
		errs = append(errs, c.endpoint.Close())
	}
	for _, region := range []*mem.LMR{c.loan, c.slots} {
		if region != nil {
			errs = append(errs, region.Free())
		}
	}
	if c.pz != nil {
		errs = append(errs, c.pz.Close())
	}
	if c.events != nil {
		errs = append(errs, c.events.Close())
	}
	return errors.Join(errs...)
}
