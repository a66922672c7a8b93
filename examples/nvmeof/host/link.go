package host

import (
	"context"
	"errors"
	"fmt"

	"godat/ep"
	"godat/examples/nvmeof/intake"
	"godat/examples/nvmeof/linger"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// link is a queue's connection and the slots of its commands. After openLink one goroutine
// at a time uses it: it submits commands, flushes them to the target as one batch, and
// handles the events of the connection, which put the slots of finished commands on done.
type link struct {
	// Immutable after openLink.
	id         uint16
	conn       *dat.Conn
	region     *mem.LMR // the slots' memory, one after the other
	slots      []Slot
	controller uint16
	inCapsule  int // bytes of data that a capsule may have

	batch []ep.DTO // capsules that wait for flush
	done  []*Slot  // finished commands, whose outcome is in the slot
	over  bool     // the connection has ended
	err   error    // why

	in     intake.Intake
	waiter linger.Waiter // of wait

	// Memory for as many completions as there are slots. Those that were read are received
	// into again before the next capsules go out, so each command finds a receive.
	completions []byte
	first       mem.Segment // of them
	receives    []ep.DTO    // that wait for flush

	// Sends complete in order, so only the last capsule of a batch asks for an event: it
	// tells of the ones before.
	submitted, sent uint64  // capsules
	early           []*Slot // that have their completion, and whose capsule is not sent
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
	local   mem.Segment
	remote  mem.RemoteSegment
	stage   stage
	number  uint64 // of its capsule
	call    call   // of a queue
}

// stage is how far a slot's command is. Its completion may come before the event of its
// capsule's send, without which the memory is not free.
type stage uint8

const (
	idle stage = iota
	submitted
	completed
)

// ErrEnded is the error of calls on a controller whose connection is over, without an
// error of its own.
var ErrEnded = errors.New("host: the connection has ended")

// errBadCompletion ends the connection of a target that completes what nobody asked for.
var errBadCompletion = errors.New("host: the target completes no command that is under way")

// errImmediate ends the connection of a target whose write with immediate data has taken the
// receive of a completion.
var errImmediate = errors.New("host: the target writes with immediate data")

// openLink connects a queue and sends its Connect command.
func openLink(ctx context.Context, ia *dat.IA, cfg *Config, id uint16, depth, transfer int, controller uint16) (*link, error) {
	asked := nvme.ConnectRequest{QueueID: id, RecvSize: uint16(depth), SendSize: uint16(depth - 1)}
	if id != 0 {
		asked.Controller = controller
	}
	l := &link{id: id}
	way := intake.Batches
	if id != 0 {
		way = cfg.Intake
	}
	conn := dat.ConnConfig{
		Depth: depth, Private: asked.Append(nil), OwnReceives: true,
		Setup: func(c *dat.Conn) ([]byte, error) { return nil, l.make(c, way, depth-1, transfer) },
	}
	way.Set(&conn)
	_, err := ia.Dial(ctx, cfg.Addr, conn)
	if err != nil {
		var cause *hw.Cause
		if errors.As(err, &cause) {
			if status, ok := nvme.ParseReject(cause.Private); ok {
				err = errors.Join(RejectError(status), err)
			}
		}
		return nil, fmt.Errorf("host: queue %d: %w", id, err)
	}
	if err := l.connect(ctx, cfg, controller); err != nil {
		return nil, errors.Join(fmt.Errorf("host: queue %d: %w", id, err), l.close())
	}
	return l, nil
}

// make makes what the link has on its connection: n slots, and receives for their
// completions. The slots' memory is the Go heap's, because a call that ends while the
// connection is closed may still copy its data.
func (l *link) make(c *dat.Conn, way intake.Way, n, transfer int) (err error) {
	l.conn, l.in = c, intake.Of(way, c)
	l.waiter = linger.On(func() bool { return l.in.Waiting() != 0 })
	stride := nvme.CommandLen + transfer
	memory := make([]byte, n*stride)
	l.region, err = l.conn.Register(memory, hw.LocalRead|hw.LocalWrite|hw.RemoteRead|hw.RemoteWrite)
	if err != nil {
		return err
	}
	completions, err := l.conn.Alloc(n*nvme.CompletionLen, hw.LocalWrite)
	if err != nil {
		return err
	}
	l.completions, l.first = completions.Bytes(), completions.Segment(0, nvme.CompletionLen)
	l.slots, l.done, l.early = make([]Slot, n), make([]*Slot, 0, n), make([]*Slot, 0, n)
	l.batch, l.receives = make([]ep.DTO, 0, n), make([]ep.DTO, 0, n)
	for i := range l.slots {
		s, at := &l.slots[i], i*stride
		s.index = i
		s.capsule, s.Data = memory[at:][:nvme.CommandLen], memory[at:][nvme.CommandLen:stride:stride]
		s.local = l.region.Segment(at, stride)
		s.remote = l.region.Remote(at+nvme.CommandLen, transfer)
		s.call.done = make(chan struct{}, 1)
		l.receive(i)
	}
	return l.postReceives()
}

// receive adds a receive into the memory of a completion.
func (l *link) receive(i int) {
	n := len(l.receives)
	l.receives = l.receives[:n+1] // each is posted or here
	d := &l.receives[n]           // field by field, as in submit
	d.Cookie, d.Segment = uint64(i), l.first
	d.Segment.Addr += uint64(i * nvme.CompletionLen)
}

// postReceives posts the receives that were added.
func (l *link) postReceives() error {
	_, err := l.conn.Endpoint.PostRecvBatch(l.receives)
	l.receives = l.receives[:0]
	return err
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
	s.stage, s.number = submitted, l.submitted
	at := len(l.batch)
	l.batch = l.batch[:at+1]
	d := &l.batch[at] // field by field: of the others none is ever set
	d.Op, d.Flags, d.Cookie, d.Segment = hw.OpSend, hw.Suppress, l.submitted, s.local
	d.Segment.Len = uint32(length)
	l.submitted++
}

// flush posts the queued capsules. There is room for one of each slot. If it fails, the
// connection is ending, and its last event says why.
func (l *link) flush() {
	if len(l.batch) == 0 {
		return
	}
	l.batch[len(l.batch)-1].Flags = hw.Default
	err := l.postReceives()
	if err == nil {
		_, err = l.conn.Endpoint.PostBatch(l.batch)
	}
	if err != nil {
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
		if l.over {
			return l.why()
		}
		if err := l.takeNext(ctx); err != nil {
			return err
		}
	}
	return nil
}

// handle handles an event.
func (l *link) handle(ev *event.Event) (ended bool) {
	switch {
	case ev.Number == event.DTOCompletion && ev.Status == hw.StatusSuccess:
		if ev.Op == hw.OpRecv {
			l.received(int(ev.Cookie), int(ev.Length))
		} else {
			l.wasSent(ev.Cookie)
		}
	case ev.Ended():
		if l.err == nil {
			l.err = ev.Err()
		}
		l.over = true
		return true
	case ev.Number == event.IBDTOEvent:
		l.breakOff(errImmediate)
	}
	return false // other failures end the connection, which tells of it
}

// received takes a completion of n bytes.
func (l *link) received(i, n int) {
	c, err := nvme.ParseCompletion(l.completions[i*nvme.CompletionLen:][:n])
	l.receive(i)
	if err == nil {
		err = l.complete(c)
	}
	if err != nil {
		l.breakOff(err)
	}
}

// complete notes the outcome of a command.
func (l *link) complete(c nvme.Completion) error {
	if int(c.CID) >= len(l.slots) || l.slots[c.CID].stage != submitted {
		return errBadCompletion
	}
	s := &l.slots[c.CID]
	s.Result, s.Err = c.Result, c.Status.Err()
	if s.number >= l.sent {
		s.stage = completed
		l.early = append(l.early, s)
		return nil
	}
	s.stage = idle
	l.done = append(l.done, s)
	return nil
}

// wasSent notes that the capsules up to that number were sent.
func (l *link) wasSent(number uint64) {
	l.sent = number + 1
	waiting := l.early[:0]
	for _, s := range l.early {
		if s.number >= l.sent {
			waiting = append(waiting, s)
			continue
		}
		s.stage = idle
		l.done = append(l.done, s)
	}
	l.early = waiting
}

// breakOff breaks the connection. Its last event follows.
func (l *link) breakOff(why error) {
	if l.err == nil {
		l.err = why
	}
	_ = l.conn.Endpoint.Disconnect(ep.Abrupt) // an error means that it is ending
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
