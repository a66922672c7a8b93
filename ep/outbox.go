package ep

import (
	"errors"

	"godat/hw"
)

// Outbox gathers requests for an endpoint, and posts them together: a server that
// handles the events at hand and then flushes the answers rings the device's
// doorbell once for all of them. One goroutine uses it; it allocates nothing once
// it is made.
type Outbox struct {
	ep   *Endpoint
	dtos []DTO
}

// NewOutbox makes an outbox for an endpoint that holds n requests. It panics
// unless n is positive.
func NewOutbox(e *Endpoint, n int) *Outbox {
	if n < 1 {
		panic(hw.Errorf("ep.NewOutbox", hw.InvalidParameter, hw.Arg2, "room for %d requests", n).Error())
	}
	return &Outbox{ep: e, dtos: make([]DTO, 0, n)}
}

// Add gathers a request, and flushes first if the outbox is full. With an error,
// which is Flush's, the request was not taken.
func (o *Outbox) Add(d DTO) error {
	if len(o.dtos) == cap(o.dtos) {
		if err := o.Flush(); err != nil {
			return err
		}
	}
	o.dtos = append(o.dtos, d)
	return nil
}

// Flush posts what was gathered, in order, as one batch. When the endpoint or a
// dispatcher has no more room, which is INSUFFICIENT_RESOURCES, the requests that
// were not posted stay for the next Flush. Any other error is about the first
// request that was not posted, and drops it and those behind it: see
// [Endpoint.PostBatch].
func (o *Outbox) Flush() error {
	if len(o.dtos) == 0 {
		return nil
	}
	n, err := o.ep.PostBatch(o.dtos)
	left := 0
	if errors.Is(err, hw.ErrInsufficientResources) {
		left = copy(o.dtos, o.dtos[n:])
	}
	clear(o.dtos[left:])
	o.dtos = o.dtos[:left]
	return err
}

// Len is how many requests are gathered.
func (o *Outbox) Len() int { return len(o.dtos) }
