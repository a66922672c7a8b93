package rpc

import (
	"context"
	"errors"
	"time"
)

// callOver makes a call over a session. While requests are measured, so is a call that is answered.
func (c *Client) callOver(ctx context.Context, s *session, call *Call, dst []byte) ([]byte, error) {
	if !c.ia.MeasuresLatency() {
		return s.call(ctx, call, dst)
	}
	began := time.Now()
	got, err := s.call(ctx, call, dst)
	if err == nil || !errors.As(err, new(*CallError)) {
		c.methods.known(call.Method).took(time.Since(began))
	}
	return got, err
}
