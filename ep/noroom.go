package ep

import (
	"fmt"

	"godat/hw"
	"godat/internal/delivery"
)

// noRoom is the error of a post that found its dispatcher full. Error makes the text, because a
// poster may try again and again.
type noRoom struct {
	queue           string
	reserved, limit uint64
	endpoint        string
	requests, recvs uint32
}

func (n *noRoom) Error() string {
	return fmt.Sprintf("%s has no room for the event: QLen is %d, %d places are reserved or hold events; "+
		"%s has %d requests and %d receives outstanding", n.queue, n.limit, n.reserved, n.endpoint, n.requests, n.recvs)
}

// fullQueue returns the error of a post, or of a connection's start, that found no room in to.
func fullQueue(e *Endpoint, op string, to *delivery.Queue) error {
	n := &noRoom{
		queue: to.Name(), endpoint: e.String(),
		requests: e.box.Requests.Outstanding(), recvs: e.box.Recvs.Outstanding(),
	}
	n.reserved, n.limit = to.Places()
	return &hw.Error{Op: op, Type: hw.InsufficientResources, Sub: hw.ResourceTEVD, Err: n}
}
