package rpc

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"godat/hw"
)

// firstPause is about how long a client waits before its first attempt to connect anew.
const firstPause = 20 * time.Millisecond

// redial is the goroutine that connects anew whenever the connection has ended, until Close.
func (c *Client) redial() {
	defer close(c.done)
	for s := c.now; s != nil; {
		select {
		case <-s.ended:
		case <-c.life.Done():
		}
		_ = s.close() // what it could not free the adapter frees
		var err error
		s, err = c.connect()
		c.follow(s, err)
	}
}

// connect tries to connect, with pauses that grow, until Close or the adapter's end.
func (c *Client) connect() (s *session, err error) {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = min(firstPause, c.cfg.Redial), c.cfg.Redial
	pauses.Reset()
	for err == nil || !errors.Is(err, hw.ErrInvalidHandle) { // which is that of a closed adapter
		pause := time.NewTimer(pauses.NextBackOff())
		select {
		case <-pause.C:
		case <-c.life.Done():
			pause.Stop()
			return nil, errClosed
		}
		if s, err = c.newSession(c.life); err == nil {
			return s, nil
		}
		c.mu.Lock()
		c.failed = err
		c.mu.Unlock()
	}
	return nil, err
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
