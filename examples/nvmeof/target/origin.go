package target

import (
	"context"

	"godat/examples/nvmeof/identity"
)

// Origin is where a command comes from: a connection of a host. Origins are compared by ==.
type Origin struct {
	Host  identity.ID
	queue *queue // nil for one that comes from no connection
}

// Annexed is a Writer with a second room for the data of Writes. A Write is placed there by an offset behind Room:
// the annex begins at len(Room()).
type Annexed interface {
	Writer
	// Annex stays at its place until Close, as Room does.
	Annex() []byte
}

// Alive reports whether the host had the connection still, at some time after the call: see former.go for how a host shows that.
// A host that has given up a command, to make it again by another connection, has ended that one
// before. So what came by an Origin that is alive had not been given up when Alive was called, but for an Abort. Alive waits for
// that, or for the end of the connection or of ctx, which is false. It may be called from any goroutine but that of Place, Take and Gate.
func (o Origin) Alive(ctx context.Context) bool {
	q := o.queue
	if q == nil {
		return ctx.Err() == nil
	}
	answer := make(chan *queue, 1)
	select {
	case q.inquiries <- inquiry{to: answer}:
	case <-q.ended:
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case <-answer:
		return true
	case <-q.ended:
		return false
	case <-ctx.Done():
		return false
	}
}

// Ended reports whether the connection has ended.
func (o Origin) Ended() bool {
	if o.queue == nil {
		return false
	}
	select {
	case <-o.queue.ended:
		return true
	default:
		return false
	}
}

// origin is that of the queue's commands.
func (q *queue) origin() Origin { return Origin{q.controller.hostID, q} }
