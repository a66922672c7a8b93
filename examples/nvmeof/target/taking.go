package target

import (
	"runtime"

	"godat/examples/nvmeof/intake"
)

// way is how the queue takes its events. An admin queue does not poll: it has few.
func (q *queue) way() intake.Way {
	if q.asked.QueueID == 0 && q.target.cfg.Intake == intake.Poll {
		return intake.Batches
	}
	return q.target.cfg.Intake
}

// takeNext handles what waits, or polls.
func (q *queue) takeNext() (ended bool) {
	switch {
	case len(q.in.Batches) != 0:
		return q.handleAll(<-q.in.Batches)
	case q.in.Spins():
		return q.dequeue()
	}
	ev := <-q.in.Events
	if ended = q.handle(&ev); !ended && len(q.slots.receives) >= q.together {
		q.flush()
	}
	return ended
}

// dequeue handles the events that have come. Without any it lets others run.
func (q *queue) dequeue() (ended bool) {
	events, err := q.in.Dequeue()
	if len(events) == 0 && err == nil {
		runtime.Gosched()
	}
	return err != nil || q.handleEvents(events)
}
