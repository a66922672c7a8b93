package host

import (
	"context"
	"errors"
	"fmt"

	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// link is a queue's connection and the slots of its commands. After openLink one goroutine
// at a time uses it: it submits commands, flushes them to the target as one batch, and
// handles the events of the connection, which put the slots of finished commands on done.
type link struct {
	// Immutable after openLink.
	id         uint16
	conn       *dat.Conn
	region     *dat.LMR // the slots' memory, one after the other
	slots      []Slot
	controller uint16
	inCapsule  int // bytes of data that a capsule may have

	batch []dat.DTO // capsules that wait for flush
	done  []*Slot   // finished commands, whose outcome is in the slot
	err   error     // why the connection has ended

	// Sends complete in order, so only the last capsule of a batch asks for an event: it
	// tells of the ones before. The n-th capsule is that of order[n % len(order)].
	order           []*Slot
	submitted, sent uint64
}

// Slot is what one command under way has.
type Slot struct {
	// Data is registered memory for the data of a command: what it sends, or returns.
	Data []byte
	// Result and Err are the outcome of the last command.
	Result uint64
	Err    error

	index   int
	capsule []byte // in the same registered memory, right before Data
	local   dat.Segment
	remote  dat.RemoteSegment
	owed    owed // what is to come before the command is done
	call    call // of a queue
}

// owed is a set of what a command under way waits for. Its completion may come before the
// event of its capsule's send, without which the memory is not free.
type owed uint8

const (
	owesCompletion owed = 1 << iota
	owesSend
)

// ErrEnded is the error of calls on a controller whose connection is over, without an
// error of its own.
var ErrEnded = errors.New("host: the connection has ended")

// errBadCompletion ends the connection of a target that completes what nobody asked for.
var errBadCompletion = errors.New("host: the target completes no command that is under way")

// openLink connects a queue and sends its Connect command.
func openLink(ctx context.Context, ia *dat.IA, cfg *Config, id uint16, depth, transfer int, controller uint16) (*link, error) {
	asked := nvme.ConnectRequest{QueueID: id, RecvSize: uint16(depth), SendSize: uint16(depth - 1)}
	if id != 0 {
		asked.Controller = controller
	}
	// A completion is all that the target sends.
	conn, err := ia.Dial(ctx, cfg.Addr, dat.ConnConfig{Depth: depth, Message: nvme.CompletionLen, Private: asked.Append(nil), Batches: true})
	if err != nil {
		var cause *dat.Cause
		if errors.As(err, &cause) {
			if status, ok := nvme.ParseReject(cause.Private); ok {
				err = errors.Join(RejectError(status), err)
			}
		}
		return nil, fmt.Errorf("host: queue %d: %w", id, err)
	}
	l := &link{id: id, conn: conn}
	err = l.makeSlots(depth-1, transfer)
	if err == nil {
		err = l.connect(ctx, cfg, controller)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("host: queue %d: %w", id, err), l.close())
	}
	return l, nil
}

// makeSlots makes the slots. Their memory is the Go heap's, because a call that ends while
// the connection is closed may still copy its data.
func (l *link) makeSlots(n, transfer int) (err error) {
	stride := nvme.CommandLen + transfer
	memory := make([]byte, n*stride)
	l.region, err = l.conn.Register(memory, dat.LocalRead|dat.LocalWrite|dat.RemoteRead|dat.RemoteWrite)
	if err != nil {
		return err
	}
	l.slots, l.order = make([]Slot, n), make([]*Slot, n)
	l.batch, l.done = make([]dat.DTO, 0, n), make([]*Slot, 0, n)
	for i := range l.slots {
		s, at := &l.slots[i], i*stride
		s.index = i
		s.capsule, s.Data = memory[at:][:nvme.CommandLen], memory[at:][nvme.CommandLen:stride:stride]
		s.local = l.region.Segment(at, stride)
		s.remote = l.region.Remote(at+nvme.CommandLen, transfer)
		s.call.done = make(chan struct{}, 1)
	}
	return nil
}

// connect sends the Connect command.
func (l *link) connect(ctx context.Context, cfg *Config, controller uint16) error {
	if _, err := nvme.ParseAccept(l.conn.Private()); err != nil {
		return err
	}
	s := &l.slots[0]
	d := nvme.ConnectData{HostID: cfg.ID, Controller: controller, Subsystem: cfg.Subsystem, Host: cfg.Name}
	d.Put(s.Data[:nvme.ConnectDataLen])
	asked := nvme.Connect{QueueID: l.id, QueueSize: uint16(len(l.slots))}
	if l.id == 0 && cfg.KeepAlive > 0 {
		asked.KeepAlive = uint32(cfg.KeepAlive.Milliseconds())
	}
	command := asked.Command()
	l.submit(s, &command, nvme.ConnectDataLen, false)
	if err := l.wait(ctx); err != nil {
		return err
	}
	l.controller, l.done = uint16(s.Result), l.done[:0]
	return s.Err
}

// submit queues a slot's next command, whose data are the first n bytes of Data. With
// inline they travel in the capsule if they fit, and by RDMA otherwise. The slot is not
// under way.
func (l *link) submit(s *Slot, c *nvme.Command, n int, inline bool) {
	c.CID, c.Flags = uint16(s.index), nvme.UsesList
	length := nvme.CommandLen
	switch {
	case n == 0:
		c.Data = nvme.Descriptor{Type: nvme.Keyed}
	case inline && n <= l.inCapsule:
		c.Data = nvme.Descriptor{Type: nvme.InCapsule, Length: uint32(n)}
		length += n
	default:
		c.Data = nvme.Descriptor{Type: nvme.Keyed, Address: s.remote.Addr, Length: uint32(n), Key: s.remote.Context}
	}
	c.Put(s.capsule)
	s.owed = owesCompletion | owesSend
	at := len(l.batch)
	l.batch = l.batch[:at+1]
	d := &l.batch[at] // field by field: of the others none is ever set
	d.Op, d.Flags, d.Cookie, d.Segment = dat.OpSend, dat.Suppress, l.submitted, s.local
	d.Segment.Len = uint32(length)
	l.order[l.submitted%uint64(len(l.order))] = s
	l.submitted++
}

// flush posts the queued capsules. There is room for one of each slot. If it fails, the
// connection is ending, and its last event says why.
func (l *link) flush() {
	if len(l.batch) == 0 {
		return
	}
	l.batch[len(l.batch)-1].Flags = dat.Default
	if _, err := l.conn.Endpoint.PostBatch(l.batch); err != nil {
		l.breakOff(err)
	}
	l.batch = l.batch[:0]
}

// wait flushes, and handles events until a command is done, and then those that are at
// hand behind it. It forgets what was done before.
func (l *link) wait(ctx context.Context) error {
	l.done = l.done[:0]
	l.flush()
	for len(l.done) == 0 {
		var batch *dat.Batch
		select {
		case batch = <-l.conn.Batches(): // without a look at ctx, which takes longer
		default:
			select {
			case batch = <-l.conn.Batches():
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if l.handleAll(batch) {
			return l.why()
		}
	}
	return nil
}

// handleAll handles the events of a batch, and of those that are at hand behind it; nil is
// the batch of a closed channel. It reports whether the connection has ended.
func (l *link) handleAll(batch *dat.Batch) (ended bool) {
	for n := len(l.conn.Batches()); !l.handleBatch(batch); n-- {
		if n == 0 {
			return false
		}
		batch = <-l.conn.Batches()
	}
	return true
}

// handleBatch handles the events of a batch.
func (l *link) handleBatch(batch *dat.Batch) (ended bool) {
	defer batch.Release()
	events := batch.Events()
	for i := range events {
		if l.handle(&events[i]) {
			return true
		}
	}
	return batch == nil
}

// handle handles an event.
func (l *link) handle(ev *dat.Event) (ended bool) {
	switch b := l.conn.Message(*ev); {
	case b != nil:
		c, err := nvme.ParseCompletion(b.Bytes())
		l.conn.Release(b)
		if err == nil {
			err = l.complete(c)
		}
		if err != nil {
			l.breakOff(err)
		}
	case ev.Ended():
		if l.err == nil {
			l.err = ev.Err()
		}
		return true
	case ev.Op == dat.OpSend && ev.Status == dat.StatusSuccess:
		for ; l.sent <= ev.Cookie; l.sent++ {
			l.arrived(l.order[l.sent%uint64(len(l.order))], owesSend)
		}
	}
	return false // other failures end the connection, which tells of it
}

// complete notes the outcome of a command.
func (l *link) complete(c nvme.Completion) error {
	if int(c.CID) >= len(l.slots) || l.slots[c.CID].owed&owesCompletion == 0 {
		return errBadCompletion
	}
	s := &l.slots[c.CID]
	s.Result, s.Err = c.Result, c.Status.Err()
	l.arrived(s, owesCompletion)
	return nil
}

// arrived notes that something has come for which a slot's command waits.
func (l *link) arrived(s *Slot, what owed) {
	if s.owed &^= what; s.owed == 0 {
		l.done = append(l.done, s)
	}
}

// breakOff breaks the connection. Its last event follows.
func (l *link) breakOff(why error) {
	if l.err == nil {
		l.err = why
	}
	_ = l.conn.Endpoint.Disconnect(dat.Abrupt) // an error means that it is ending
}

// why is the error of calls when the connection has ended.
func (l *link) why() error {
	if l.err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, l.err)
	}
	return ErrEnded
}

// close ends the connection in order, and gives back what it has.
func (l *link) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return l.conn.Shutdown(ctx)
}
