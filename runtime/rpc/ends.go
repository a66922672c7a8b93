package rpc

import (
	"context"
	"errors"
	"time"
)

// countCall is makeCall, whose end it counts.
func (c *Client) countCall(ctx context.Context, call Call, dst []byte) ([]byte, error) {
	got, err := c.makeCall(ctx, call, dst)
	if err != nil && ctx != nil {
		c.noteEnd(ctx, call.Method, err)
	}
	return got, err
}

// noteEnd counts how a call of the program's ended that was not answered without a failure.
func (c *Client) noteEnd(ctx context.Context, method uint16, err error) {
	none, unanswered := errors.AsType[*CallError](err)
	said, failed := errors.AsType[*Error](err)
	switch {
	case !unanswered && failed:
		c.lately.count(uint32(said.Code), said.Text)
	case !unanswered: // the call was not one
	case errors.Is(none.Err, context.DeadlineExceeded), ctx.Err() == context.DeadlineExceeded: //nolint:errorlint // of Err
		c.ends.late.Add(1)
		c.methods.known(method).ends.late.Add(1)
		c.lately.missed(method, 0) // leave has said how long it had
	case ctx.Err() != nil:
		c.ends.left.Add(1)
		c.methods.known(method).ends.left.Add(1)
		c.lately.count(kindLeft, "")
	case failed:
		c.lately.count(kindRefused, said.Text)
	default:
		c.ends.lost.Add(1)
		c.methods.known(method).ends.lost.Add(1)
		c.lately.count(kindLost, "")
	}
}

// noteFailure counts an answer of a server's that is a failure, or that came when the call was over; gone says that the
// connection was, and lost that its caller still waited then.
func (s *Server) noteFailure(r *Request, code uint16, text string, over error, gone, lost bool) {
	if code != 0 {
		s.lately.count(uint32(code), text)
	}
	switch {
	case errors.Is(over, context.DeadlineExceeded) && !lost:
		s.ends.late.Add(1)
		s.counts(r, code).ends.late.Add(1)
		s.lately.missed(r.header.code, time.Duration(r.header.timeout)*time.Millisecond)
		s.lately.answeredLate(time.Since(r.arrived))
	case gone:
		s.ends.lost.Add(1)
		s.counts(r, code).ends.lost.Add(1)
		s.lately.count(kindLost, "")
	}
}
