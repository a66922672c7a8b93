package host

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"godat/examples/nvmeof/nvme"
)

// queue runs the commands of calls that come from any goroutine. Each call takes a slot,
// gives it to the queue's goroutine, run, and waits until run has given it back.
type queue struct {
	// Immutable after newQueue.
	*link // run owns it
	free  chan *Slot
	calls chan *Slot    // to run; it has room for all
	quit  chan struct{} // closed when run is to end
	ended chan struct{} // closed when run has ended
}

// call is a command that a call gives to run. The call's goroutine sets it before, and
// reads the slot's outcome when done has told it that the command is done.
type call struct {
	command nvme.Command
	n       int  // bytes of data
	inline  bool // the data may travel in the capsule
	done    chan struct{}
	over    atomic.Bool // the command is done, or its call has left it; set by both
}

// newQueue makes the queue of a link, and starts run.
func newQueue(l *link) *queue {
	n := len(l.slots)
	q := &queue{link: l, free: make(chan *Slot, n), calls: make(chan *Slot, n), quit: make(chan struct{}), ended: make(chan struct{})}
	for i := range l.slots {
		q.free <- &l.slots[i]
	}
	go q.run()
	return q
}

// run runs the commands of calls until the connection has ended, or close. Calls that are
// answered together make their next ones soon after another, so run lets them run before
// it posts all that have come as one batch.
func (q *queue) run() {
	defer close(q.ended)
	for {
		select {
		case s := <-q.calls:
			runtime.Gosched()
			q.submitAll(s)
			q.flush()
		case batch := <-q.in.Batches:
			if q.answer(q.handleAll(batch)) {
				return
			}
		case ev := <-q.in.Events:
			if q.answer(q.handleEach(ev)) {
				return
			}
		case <-q.quit:
			return
		}
	}
}

// answer gives the commands that are done back to their calls. It returns ended.
func (q *queue) answer(ended bool) bool {
	for _, s := range q.done {
		if s.call.over.Swap(true) {
			q.free <- s // its call has left
		} else {
			s.call.done <- struct{}{} // which has room
		}
	}
	q.done = q.done[:0]
	return ended
}

// submitAll submits the command of a slot, and those at hand behind it.
func (q *queue) submitAll(s *Slot) {
	for n := len(q.calls); ; n-- {
		q.submit(s, &s.call.command, s.call.n, s.call.inline)
		if n == 0 {
			return
		}
		s = <-q.calls
	}
}

// acquire waits for a free slot. A slot that came back after the end may be in calls
// still, so nobody gets one then.
func (q *queue) acquire(ctx context.Context) (*Slot, error) {
	select {
	case s := <-q.free:
		select {
		case <-q.ended:
			q.free <- s
			return nil, q.why()
		default:
			return s, nil
		}
	case <-q.ended:
		return nil, q.why()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// do runs a command with a buffer, whose contents the command sends, and in which it
// returns its data.
func (q *queue) do(ctx context.Context, command nvme.Command, data []byte) (result uint64, err error) {
	s, err := q.acquire(ctx)
	if err != nil {
		return 0, err
	}
	copy(s.Data, data)
	result, err = q.exchange(ctx, s, command, len(data), false)
	if err == nil {
		copy(data, s.Data)
	}
	q.release(s, err)
	return result, err
}

// doOrAbort runs an admin command without data that may wait long. When ctx ends, it aborts
// the command, and waits for what becomes of it.
func (q *queue) doOrAbort(ctx context.Context, command nvme.Command) (result uint64, err error) {
	s, err := q.acquire(ctx)
	if err != nil {
		return 0, err
	}
	result, err = q.exchange(ctx, s, command, 0, false)
	var unfinished errUnfinished
	if errors.As(err, &unfinished) {
		if _, e := q.do(context.Background(), nvme.Abort(q.id, uint16(s.index)), nil); e != nil {
			q.release(s, err)
			return 0, errors.Join(err, e)
		}
		result, err = q.await(context.Background(), s)
		if errors.Is(err, nvme.StatusError(nvme.AbortRequested)) {
			err = context.Cause(ctx)
		}
	}
	q.release(s, err)
	return result, err
}

// exchange runs a slot's command with the first n bytes of its data; see link.submit.
func (q *queue) exchange(ctx context.Context, s *Slot, command nvme.Command, n int, inline bool) (result uint64, err error) {
	s.call.command, s.call.n, s.call.inline = command, n, inline
	s.call.over.Store(false)
	q.calls <- s // has room for all slots
	return q.await(ctx, s)
}

// await waits for the outcome of the command of a slot.
func (q *queue) await(ctx context.Context, s *Slot) (result uint64, err error) {
	select {
	case <-s.call.done:
		return s.Result, s.Err
	case <-q.ended:
	case <-ctx.Done():
		return 0, errUnfinished{context.Cause(ctx)}
	}
	select {
	case <-s.call.done: // before the end
		return s.Result, s.Err
	default:
		return 0, q.why()
	}
}

// errUnfinished is the error of a command that may yet complete.
type errUnfinished struct{ error }

func (e errUnfinished) Unwrap() error { return e.error }

// release gives a slot back. That of an unfinished command stays the target's, which may
// still write to it: run gives it back when the command is done.
func (q *queue) release(s *Slot, err error) {
	if err != nil {
		var unfinished errUnfinished
		if errors.As(err, &unfinished) {
			if !s.call.over.Swap(true) {
				return
			}
			<-s.call.done // the command is done after all
		}
	}
	q.free <- s
}

// close ends the connection in order, and the calls that are under way with an error.
func (q *queue) close() error {
	close(q.quit)
	<-q.ended
	return q.link.close()
}
