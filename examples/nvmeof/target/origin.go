package target

import (
	"context"
	"time"

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

// signTime is for how long Alive waits for what the host does by itself.
const signTime = 20 * time.Millisecond

// Alive reports whether the host had the connection still, at some time after the call: something comes from it, or its
// transport answers a read. A host that has given up a command, to make it again by another connection, has ended that one
// before. So what came by an Origin that is alive has not been given up, but for an Abort. Alive waits for that, or for the
// end of the connection or of ctx, which is false. It may be called from any goroutine but that of Place, Take and Gate.
func (o Origin) Alive(ctx context.Context) bool {
	if o.queue == nil {
		return ctx.Err() == nil
	}
	answer := make(chan *queue, 2)
	soon, stop := context.WithTimeout(ctx, signTime)
	defer stop()
	return o.queue.tells(soon, inquiry{answer, sign}, answer) || o.queue.tells(ctx, inquiry{answer, proof}, answer)
}

// tells asks, and reports whether there is an answer before the connection or ctx ends.
func (q *queue) tells(ctx context.Context, i inquiry, answer <-chan *queue) bool {
	select {
	case q.inquiries <- i:
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

// origin is that of the queue's commands.
func (q *queue) origin() Origin { return Origin{q.controller.hostID, q} }
