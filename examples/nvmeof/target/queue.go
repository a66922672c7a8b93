package target

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/examples/nvmeof/intake"
	"godat/examples/nvmeof/linger"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// queue is a submission queue and its completion queue: one connection. Its goroutine,
// run, owns it.
type queue struct {
	// Immutable when run begins.
	target  *Target
	from    *listener
	conn    *dat.Conn
	asked   nvme.ConnectRequest
	local   string        // the address at which the host reached the target
	address string        // of the host, as addressOf
	evicted chan struct{} // closed when the queue gives way to another: see strangers
	ended   chan struct{} // closed when the connection is

	inquiries chan inquiry // see former

	results  chan result // has room for the result of each command
	together int         // how many commands of a batch are completed at a time

	// Owned by run.
	in          intake.Intake
	controller  *controller // nil before Connect; a worker reads it for a job of this queue
	admin       admin
	disks       disks
	gone        <-chan struct{} // closed when the queue is to end: evicted, or of an I/O queue its controller's
	slots       slots
	proofs      proofs
	heard       time.Duration // when the last command came
	outstanding int           // commands that have no completion yet
	head        uint16        // in the host's submission queue
	limit       limit         // of the time until Connect, and then of that between two Keep Alives
	leaving     bool          // it takes no more commands
	finished    []finished    // commands that were completed since the last flush
	batch       time.Duration // when the first command since the last flush came; 0 if none has
	quick       tally         // reads and writes that came and were completed since the last flush

	stats queueStats
}

// command is a command that has no completion yet.
type command struct {
	sqe    nvme.Command // the entry of the submission queue
	q      *queue       // whose goroutine calls the command's methods
	slot   int
	memory []byte      // the slot's
	local  mem.Segment // the same
	disk   *disk       // of an I/O command
	write  *Write      // of a Write for a Writer; kept for the slot's next one
	read   *Read       // the same of a Read or Compare for a Reader
	inside int         // bytes of data in the slot, behind the command
	next   step        // what the end of its transfer or job leads to
	at     int         // how far a command of several steps is
	begun  time.Duration
}

// step goes on with a command when its transfer or its job has ended; err is that of the
// job.
type step func(c *command, err error)

// fewTogether lets a host on another processor go on while the target completes the rest of
// a batch. On a single processor that would only take more posts, and over a network more
// calls of the system.
const fewTogether = 16

// busyTurns is how many turns a queue takes for each select while its host keeps it busy. A
// plain receive takes less, and the select sees that the other channels have their turn.
const busyTurns = 8

// data is where the data of a capsule begins.
const data = nvme.CommandLen

func newQueue(t *Target, from *listener, asked nvme.ConnectRequest) *queue {
	entries := asked.Entries()
	q := &queue{
		target: t, from: from, asked: asked, results: make(chan result, entries+1),
		finished: make([]finished, 0, entries+1), stats: queueStats{record: newRecord()},
	}
	if q.together = entries + 1; from.fences && runtime.GOMAXPROCS(0) > 1 {
		q.together = fewTogether
	}
	q.ended, q.inquiries = make(chan struct{}), make(chan inquiry)
	q.evicted = make(chan struct{})
	q.gone = q.evicted
	q.admin.q, q.admin.settings = q, defaults()
	return q
}

// setup makes what the queue has on its connection, before the host may send.
func (q *queue) setup(c *dat.Conn) ([]byte, error) {
	q.conn, q.disks.target, q.disks.conn, q.in = c, q.target, c, intake.Of(q.way(), c)
	err := q.slots.make(c, q.asked.Entries(), requestsOf(q.asked.Entries()))
	for i := range q.slots.commands {
		q.slots.commands[i].q = q
	}
	return nil, err
}

// run serves the queue until its connection has ended.
func (q *queue) run() {
	q.limit = newLimit(q.target.cfg.ConnectTime)
	defer q.limit.timer.Stop()
	if q.asked.QueueID != 0 {
		q.disks.openAll()
	}
	stop, waiter := (<-chan struct{})(q.target.down), linger.On(q.atHand)
	for ended, turn := false, 0; !ended; turn++ {
		waiter.Linger()
		if turn%busyTurns != 0 && (q.in.Spins() || q.in.Waiting() != 0) {
			ended = q.takeNext()
		} else {
			select {
			case batch := <-q.in.Batches:
				ended = q.handleAll(batch)
			case ev := <-q.in.Events:
				ended = q.handle(&ev)
			case <-q.in.Polls:
				ended = q.dequeue()
			case r := <-q.results:
				c := &q.slots.commands[r.command]
				c.next(c, r.err)
			case <-q.limit.timer.C:
				q.late()
			case <-q.admin.notices:
				q.admin.notify()
			case i := <-q.inquiries:
				q.inquired(i)
			case <-q.gone:
				q.gone = nil
				q.sentAway()
			case <-stop:
				stop = q.stop()
			}
		}
		if len(q.slots.receives) < int(q.asked.SendSize) && q.in.Waiting() == 0 {
			// The provider may be about to bring more commands, whose completions then go
			// out in the same batch: the host is not waiting for all that it may have sent.
			runtime.Gosched()
		}
		if len(q.proofs.asked) != 0 {
			q.prove()
		}
		if q.in.Waiting() == 0 {
			q.flush()
		}
	}
	q.leave()
	q.target.statistics.end(&q.stats)
	if err := q.conn.Close(); err != nil {
		q.target.log.Warn("close a queue", "host", q.conn, "error", err)
	}
	q.dropWrites()
	q.disks.giveBack(q)
	q.target.controllers.ran(q)
	<-q.target.places
}

// atHand reports whether run has something to handle that does not come rarely. A queue that
// polls has always to look.
func (q *queue) atHand() bool { return q.in.Waiting() != 0 || len(q.results) != 0 || q.in.Spins() }

// handleAll handles the events of a batch. It reports whether the last one was among them.
func (q *queue) handleAll(batch *evd.Batch) (ended bool) {
	defer batch.Release()
	return q.handleEvents(batch.Events())
}

// handleEvents handles events that came together.
func (q *queue) handleEvents(events []event.Event) (ended bool) {
	for i := range events {
		if q.handle(&events[i]) {
			return true
		}
		if len(q.slots.receives) >= q.together {
			q.flush()
		}
	}
	return false
}

// handle handles an event of the connection. It reports whether it was the last one.
func (q *queue) handle(ev *event.Event) (ended bool) {
	switch {
	case ev.Number == event.DTOCompletion && ev.Status == hw.StatusSuccess:
		if ev.Op == hw.OpRecv {
			q.received(&q.slots.commands[ev.Cookie], int(ev.Length))
			return false
		}
		if ev.Op == hw.OpRead {
			q.proofs.ended++
		}
		if ev.Cookie == q.proofCookie() {
			return false
		}
		c := &q.slots.commands[ev.Cookie]
		c.next(c, nil) // its transfer has ended
	case ev.Ended():
		q.target.log.Info("queue ended", "host", q.conn, "queue", q.asked.QueueID, "error", ev.Err())
		return true
	case ev.Number == event.IBDTOEvent:
		q.breakOff(errors.New("a capsule with immediate data"))
	}
	return false // other failures end the connection, which tells of it
}

// received takes the command of a capsule of n bytes.
func (q *queue) received(c *command, n int) {
	err := c.sqe.Parse(c.memory[:n])
	if err == nil && q.outstanding >= q.asked.Entries() {
		err = fmt.Errorf("more commands than the queue's %d entries", q.asked.Entries())
	}
	if err != nil || q.leaving {
		q.slots.receive(c)
		q.check(err)
		return
	}
	if q.controller != nil {
		q.controller.mark()
	}
	q.outstanding++
	q.proofs.commands++
	q.head++
	if q.head > q.asked.SendSize {
		q.head = 0
	}
	if q.batch == 0 {
		q.batch = now()
		q.heard = q.batch
	}
	c.inside, c.at, c.begun = n-data, 0, q.batch
	switch {
	case c.sqe.Opcode == nvme.OpFabrics:
		q.fabrics(c)
	case q.controller == nil || !q.controller.enabled():
		c.complete(nvme.CommandSequenceError | nvme.DoNotRetry)
	case q.asked.QueueID == 0:
		q.admin.serve(c)
	default:
		c.io()
	}
}

// complete answers the command with a status.
func (c *command) complete(status nvme.Status) { c.answer(status, 0) }

// answer answers the command with a status and a result. The completion goes out with the
// next flush, behind the data that was queued before.
func (c *command) answer(status nvme.Status, result uint64) *ep.DTO {
	q := c.q
	q.outstanding--
	q.note(c, status)
	if status.Code() != nvme.Success {
		q.target.log.Debug("command failed", "host", q.conn, "queue", q.asked.QueueID, "opcode", c.sqe.Opcode, "status", status)
	}
	d := q.slots.completion(nvme.Completion{Result: result, SQ: nvme.SQ{Head: q.head, ID: q.asked.QueueID}, CID: c.sqe.CID, Status: status})
	if c.sqe.Data.Type == nvme.KeyedInvalidate && c.sqe.Data.Length != 0 && q.from.invalidates {
		d.Op, d.Immediate = hw.OpSendInvalidate, c.sqe.Data.Key
	}
	q.slots.receive(c)
	return d
}

// flush posts what was queued, and adds to the statistics. A queue that takes no more
// commands and has completed all ends here.
func (q *queue) flush() {
	q.check(q.slots.flush(q.conn.Endpoint))
	q.account()
	if q.leaving && q.outstanding == len(q.admin.waiting) {
		_ = q.conn.Endpoint.Disconnect(ep.Graceful)
	}
}

// check ends the connection if err is an error: the host broke the protocol, or takes no
// completions. An error of a connection that is over means nothing; its last event says
// why it ended.
func (q *queue) check(err error) {
	if err != nil && !errors.Is(err, hw.ErrInvalidState) && !errors.Is(err, hw.ErrInvalidHandle) {
		q.breakOff(err)
	}
}

// breakOff breaks the connection.
func (q *queue) breakOff(why error) {
	q.target.log.Warn("queue broken off", "host", q.conn, "queue", q.asked.QueueID, "reason", why)
	q.leaving = true
	_ = q.conn.Endpoint.Disconnect(ep.Abrupt)
}

// stop is called when the target ends, and again if the queue's commands took too long. It
// returns the channel that tells of the latter.
func (q *queue) stop() <-chan struct{} {
	if isClosed(q.target.over) {
		q.breakOff(errors.New("the target ends"))
		return nil
	}
	q.leaving = true
	return q.target.over
}

// sentAway is called when another wants the queue's place, or when its controller is gone.
func (q *queue) sentAway() {
	q.leaving = true
	switch {
	case q.controller == nil:
		q.breakOff(errGaveWay)
	case !q.target.stopping():
		_ = q.conn.Endpoint.Disconnect(ep.Graceful)
	} // and otherwise flush disconnects when the commands under way are completed
}

// late is called when the limit's timer has fired.
func (q *queue) late() {
	switch {
	case q.limit.again():
	case q.controller == nil:
		q.breakOff(errors.New("no Connect command in time"))
	case q.admin.expired():
		q.breakOff(errors.New("neither a command nor a Keep Alive in time"))
	default:
		q.admin.alive()
	}
}

// leave takes the queue from its controller; the admin queue takes the controller and
// its other queues along.
func (q *queue) leave() {
	if q.controller == nil {
		q.target.strangers.leave(q)
		return
	}
	q.target.controllers.leave(q.controller, q.asked.QueueID, q.gone)
}
