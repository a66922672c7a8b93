package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// queue is a connection, with slots for the commands under way.
type queue struct {
	// Immutable after openQueue.
	id         uint16
	conn       *dat.Conn
	slots      []slot
	free       chan *slot
	controller uint16
	inCapsule  int           // bytes of data that a capsule may have
	ended      chan struct{} // closed when run has ended

	err error // why the connection ended; valid when ended is closed
}

// slot is what one command under way has.
type slot struct {
	cid    uint16
	memory []byte // the target reads and writes it
	remote dat.RemoteSegment
	busy   atomic.Bool // its command is under way
	done   chan nvme.Completion
}

// ErrEnded is the error of calls on a controller whose connection is over, without an
// error of its own.
var ErrEnded = errors.New("host: the connection has ended")

// errBadCompletion ends the connection of a target that completes what nobody asked for.
var errBadCompletion = errors.New("host: the target completes no command that is under way")

// openQueue connects a queue and sends its Connect command.
func openQueue(ctx context.Context, ia *dat.IA, cfg *Config, id uint16, depth, transfer int, controller uint16) (*queue, error) {
	asked := nvme.ConnectRequest{QueueID: id, RecvSize: uint16(depth), SendSize: uint16(depth - 1)}
	if id != 0 {
		asked.Controller = controller
	}
	conn, err := ia.Dial(ctx, cfg.Addr, dat.ConnConfig{
		// A command's slot is free when its completion is here, which may be before this
		// end knows that its capsule was sent.
		Depth: 2 * depth, Message: nvme.CommandLen + nvme.PageLen, Private: asked.Append(nil),
	})
	if err != nil {
		var cause *dat.Cause
		if errors.As(err, &cause) {
			if status, ok := nvme.ParseReject(cause.Private); ok {
				err = errors.Join(RejectError(status), err)
			}
		}
		return nil, fmt.Errorf("host: queue %d: %w", id, err)
	}
	q := &queue{id: id, conn: conn, slots: make([]slot, depth-1), free: make(chan *slot, depth-1), ended: make(chan struct{})}
	if err := q.connect(ctx, cfg, depth, transfer, controller); err != nil {
		return nil, errors.Join(fmt.Errorf("host: queue %d: %w", id, err), q.close())
	}
	return q, nil
}

// connect makes the slots, starts run, and sends the Connect command.
func (q *queue) connect(ctx context.Context, cfg *Config, depth, transfer int, controller uint16) error {
	region, err := q.conn.Alloc(len(q.slots)*transfer, dat.LocalRead|dat.LocalWrite|dat.RemoteRead|dat.RemoteWrite)
	if err != nil {
		close(q.ended)
		return err
	}
	for i := range q.slots {
		at := i * transfer
		s := &q.slots[i]
		s.cid, s.memory, s.remote = uint16(i), region.Bytes()[at:at+transfer:at+transfer], region.Remote(at, transfer)
		s.done = make(chan nvme.Completion, 1)
		q.free <- s
	}
	go q.run()
	if _, err := nvme.ParseAccept(q.conn.Private()); err != nil {
		return err
	}
	d := nvme.ConnectData{HostID: cfg.ID, Controller: controller, Subsystem: cfg.Subsystem, Host: cfg.Name}
	told := make([]byte, nvme.ConnectDataLen)
	d.Put(told)
	asked := nvme.Connect{QueueID: q.id, QueueSize: uint16(depth - 1)}
	if q.id == 0 && cfg.KeepAlive > 0 {
		asked.KeepAlive = uint32(cfg.KeepAlive.Milliseconds())
	}
	result, err := q.do(ctx, asked.Command(), told)
	q.controller = uint16(result)
	return err
}

// run takes the completions until the connection has ended.
func (q *queue) run() {
	defer close(q.ended)
	for ev := range q.conn.Events() {
		b := q.conn.Message(ev)
		switch {
		case b != nil:
			c, err := nvme.ParseCompletion(b.Bytes())
			q.conn.Release(b)
			if err == nil {
				err = q.complete(c)
			}
			if err != nil && q.err == nil {
				q.err = err
				_ = q.conn.Endpoint.Disconnect(dat.Abrupt) // an error means that it is ending
			}
		case ev.Ended():
			if q.err == nil {
				q.err = ev.Err()
			}
			return
		}
	}
}

// complete gives a completion to its command.
func (q *queue) complete(c nvme.Completion) error {
	if int(c.CID) >= len(q.slots) || !q.slots[c.CID].busy.CompareAndSwap(true, false) {
		return errBadCompletion
	}
	q.slots[c.CID].done <- c // which has room, since the command is completed once
	return nil
}

// acquire waits for a free slot.
func (q *queue) acquire(ctx context.Context) (*slot, error) {
	select {
	case s := <-q.free:
		return s, nil
	case <-q.ended:
		return nil, q.why()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// why is the error of calls on a queue that has ended.
func (q *queue) why() error {
	if q.err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, q.err)
	}
	return ErrEnded
}

// do runs a command with a buffer, whose contents the command sends, and in which it
// returns its data.
func (q *queue) do(ctx context.Context, command nvme.Command, data []byte) (result uint64, err error) {
	s, err := q.acquire(ctx)
	if err != nil {
		return 0, err
	}
	copy(s.memory, data)
	result, err = q.exchange(ctx, s, &command, len(data), 0)
	if err == nil {
		copy(data, s.memory)
	}
	q.release(s, err)
	return result, err
}

// exchange sends the command of a slot, whose data are the first n bytes of the slot's
// memory, and waits for its completion. inline of them go in the capsule in place of a key.
func (q *queue) exchange(ctx context.Context, s *slot, command *nvme.Command, n, inline int) (result uint64, err error) {
	command.CID, command.Flags = s.cid, nvme.UsesList
	command.Data = nvme.Descriptor{Type: nvme.Keyed}
	if inline > 0 {
		command.Data = nvme.Descriptor{Type: nvme.InCapsule, Length: uint32(inline)}
	} else if n > 0 {
		command.Data = nvme.Descriptor{Type: nvme.Keyed, Address: s.remote.Addr, Length: uint32(n), Key: s.remote.Context}
	}
	b := q.conn.Buffer()
	for ; b == nil; b = q.conn.Buffer() { // sends are under way whose answers are here
		select {
		case <-q.ended:
			return 0, q.why()
		default:
			runtime.Gosched()
		}
	}
	capsule := b.Resize(nvme.CommandLen + inline)
	command.Put(capsule)
	copy(capsule[nvme.CommandLen:], s.memory[:inline])
	s.busy.Store(true)
	if err := q.conn.Send(b); err != nil {
		return 0, errUnfinished{err}
	}
	select {
	case c := <-s.done:
		return c.Result, c.Status.Err()
	case <-q.ended:
		return 0, q.why()
	case <-ctx.Done():
		return 0, errUnfinished{context.Cause(ctx)}
	}
}

// errUnfinished is the error of a command that may yet complete.
type errUnfinished struct{ error }

func (e errUnfinished) Unwrap() error { return e.error }

// release gives a slot back. That of an unfinished command stays the target's, which may
// still write to it.
func (q *queue) release(s *slot, err error) {
	if err != nil {
		var unfinished errUnfinished
		if errors.As(err, &unfinished) {
			return
		}
	}
	q.free <- s
}

// close ends the connection in order, and gives back what it has.
func (q *queue) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := q.conn.Shutdown(ctx)
	<-q.ended
	return err
}
