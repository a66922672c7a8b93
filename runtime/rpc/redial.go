package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"godat/hw"
)

const (
	firstPause = 20 * time.Millisecond // about, before the second attempt to connect
	lastPause  = time.Second           // and between attempts of Config.Await without Redial
)

// redial is the goroutine that connects anew whenever the connection has ended or its server begins no
// call any more, until Close. Pauses grow from one connection to the next, until one has lived: a call
// that breaks each connection is not made without end.
func (c *Client) redial() {
	defer close(c.done)
	pauses := c.cfg.newPauses()
	for s := c.now; s != nil; {
		select {
		case <-s.ended:
		case <-s.drains:
		case <-c.life.Done():
		}
		if time.Since(s.since) >= pauses.MaxInterval {
			pauses.Reset()
		}
		c.leave(s)
		err := context.Cause(c.life)
		if err == nil && s.hasEnded() {
			err = wait(c.life, pauses)
		}
		if s = nil; err == nil {
			s, err = c.connect(c.life, pauses)
		}
		if c.life.Err() != nil {
			err = errClosed
		}
		c.follow(s, err)
	}
}

// leave closes a session that has ended. One whose server is being shut down still has calls under way:
// the next session comes beside it.
func (c *Client) leave(s *session) {
	if c.life.Err() == nil {
		why := c.why(s)
		if over, ok := errors.AsType[*endError](why); ok {
			why = over.why
		}
		c.log(slog.LevelWarn, ErrEnded.Error(), why)
	}
	if s.hasEnded() || c.life.Err() != nil {
		_ = s.close() // what it could not free the adapter frees
		return
	}
	c.leaving.Go(func() {
		select {
		case <-s.ended:
		case <-c.life.Done():
		}
		_ = s.close()
	})
}

// newPauses are the pauses between attempts to connect, or to listen, which grow.
func (cfg *Config) newPauses() *backoff.ExponentialBackOff {
	pauses := backoff.NewExponentialBackOff()
	pauses.MaxInterval = cmp.Or(cfg.Redial, lastPause)
	pauses.InitialInterval = min(firstPause, pauses.MaxInterval)
	pauses.Reset()
	return pauses
}

// wait waits for the next pause, or until ctx ends, whose cause it returns then.
func wait(ctx context.Context, pauses *backoff.ExponentialBackOff) error {
	pause := time.NewTimer(pauses.NextBackOff())
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connect tries to connect until ctx ends, or no attempt can succeed any more.
func (c *Client) connect(ctx context.Context, pauses *backoff.ExponentialBackOff) (*session, error) {
	for failures := 0; ; failures++ {
		s, err := c.newSession(ctx)
		switch {
		case err == nil:
			c.mu.Lock()
			c.failed, c.attempts = nil, 0
			c.mu.Unlock()
			c.log(slog.LevelInfo, "connected", nil)
			return s, nil
		case isHopeless(err):
			return nil, err
		case failures == 0:
			c.log(slog.LevelWarn, "there is no connection yet", err)
		}
		c.mu.Lock()
		c.attempts++
		if c.failed == nil || ctx.Err() == nil {
			c.failed = err
		}
		last := c.failed
		c.mu.Unlock()
		if cause := wait(ctx, pauses); cause != nil {
			return nil, fmt.Errorf("%w, while there is no connection to %s: %w", cause, c.address, last)
		}
	}
}

// isHopeless reports whether no attempt was made, because the adapter or the zone is closed or the
// arguments are wrong. The error of an attempt, such as UNREACHABLE, says nothing of the next one.
func isHopeless(err error) bool {
	var refused *hw.Error
	return errors.As(err, &refused) &&
		(errors.Is(refused, hw.ErrInvalidHandle) || errors.Is(refused, hw.ErrInvalidAddress) || errors.Is(refused, hw.ErrInvalidParameter))
}

// log says what happens to the client's connections.
func (c *Client) log(level slog.Level, what string, err error) {
	attrs := []slog.Attr{slog.String("server", c.address)}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	c.journal.put(level, what, attrs...)
}

// follow puts a session in the place of the one that has ended, or says that none comes.
func (c *Client) follow(s *session, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
	if s == nil {
		c.over = true
	} else {
		c.now = s
		c.reconnects++
	}
	close(c.next)
	c.next = make(chan struct{})
}
