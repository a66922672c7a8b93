// Package intake is how a queue takes the events of its connection: from a channel of batches, from
// a channel of events, or by polling. A target and a host work the same in each way; which one costs
// what is a question that `go run ./bench storage` answers.
package intake

import (
	"fmt"
	"strings"

	"godat/evd"
	"godat/hw/event"
	dat "godat/runtime"
)

// Way is one of the ways. The zero value is Batches.
type Way string

// The ways.
const (
	Batches Way = "batches" // many events at a time, from a channel
	Channel Way = "channel" // one event at a time, from a channel
	// Poll dequeues in a loop, which keeps a processor busy for each queue while nothing comes.
	Poll Way = "poll"
)

// Ways are all ways.
func Ways() []Way { return []Way{Batches, Channel, Poll} }

// Check is an error if there is no such way.
func (w Way) Check() error {
	switch w {
	case "", Batches, Channel, Poll:
		return nil
	}
	return fmt.Errorf("intake: there is no way %q to take events: one of %s", string(w), strings.Trim(fmt.Sprint(Ways()), "[]"))
}

// Set makes connections bring their events that way.
func (w Way) Set(cfg *dat.ConnConfig) {
	cfg.Batches, cfg.Queue = w != Channel, w == Poll
}

// Intake takes the events of a connection. One goroutine uses it. It receives from Batches and
// Events, of which one is nil: in Poll, Batches has the connection's end. Polls is nil unless the
// way is Poll, and else always ready, for a select of which Dequeue is one case.
type Intake struct {
	Batches <-chan *evd.Batch
	Events  <-chan event.Event
	Polls   <-chan struct{}

	conn *dat.Conn
	buf  []event.Event
}

// mostPolled is how many events one Dequeue takes.
const mostPolled = 32

// ready is always ready.
var ready = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Of takes the events of a connection that was made with Way.Set.
func Of(w Way, c *dat.Conn) Intake {
	switch w {
	case Poll:
		return Intake{Batches: c.Batches(), Polls: ready, conn: c, buf: make([]event.Event, mostPolled)}
	case Channel:
		return Intake{Events: c.Events()}
	case Batches:
	}
	return Intake{Batches: c.Batches()}
}

// Waiting is how many events or batches wait in the channel.
func (in *Intake) Waiting() int { return len(in.Batches) + len(in.Events) }

// Spins reports whether the way is Poll.
func (in *Intake) Spins() bool { return in.Polls != nil }

// Dequeue takes what has come, without waiting. The events are valid until the next call.
func (in *Intake) Dequeue() ([]event.Event, error) {
	n, err := in.conn.Dequeue(in.buf)
	return in.buf[:n], err
}
