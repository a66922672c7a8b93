package rpc

import (
	"fmt"
	"time"
)

// limit bounds how long the transfers of a request may take: Config.Stall without a piece of the connection
// that moves, and behind the end of the call Config.Patience in which nothing moves at all. Request.mu
// guards it.
type limit struct {
	timer  *time.Timer // breaks the connection; nil before the first transfer
	until  time.Time   // when the timer looks
	stalls bool        // until is of Config.Stall, not of the call's end
	leaves time.Time   // since when the call's end bounds the transfer; zero before
	seen   progress    // since leaves
	late   int         // how often the timer came late
	broke  bool        // it has broken the connection
}

// watch begins the transfer of a piece, and sets the time at which it breaks the connection.
func (r *Request) watch() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.over(); err != nil {
		return err
	}
	r.moves++
	r.until = time.Time{}
	r.bound(time.Now().Add(r.from.server.cfg.Stall))
	r.stalls = true
	r.boundByEnd()
	return nil
}

// bound has the timer look then, unless it looks earlier. The caller holds mu.
func (r *Request) bound(until time.Time) {
	if !r.until.IsZero() && !until.Before(r.until) {
		return
	}
	r.until, r.stalls = until, false
	if r.timer == nil {
		r.timer = time.AfterFunc(time.Until(until), r.overdue)
	} else {
		r.timer.Reset(time.Until(until))
	}
}

// boundByEnd is bound by the end of the call. The caller holds mu.
func (r *Request) boundByEnd() {
	switch {
	case !r.leaves.IsZero():
		r.bound(r.leaves.Add(r.from.server.cfg.Patience))
	case r.header.timeout != 0:
		r.bound(r.deadline())
	}
}

// leave says that the caller does not wait any more, while a transfer is under way, and since when. The
// caller holds mu.
func (r *Request) leave() time.Time {
	if r.leaves.IsZero() {
		r.leaves = time.Now()
		r.seen.moves(r.from.link.conn)
	}
	return r.leaves
}

// overdue breaks the connection of a transfer that takes too long.
func (r *Request) overdue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.moves == 0 || time.Now().Before(r.until) {
		return
	}
	if next, stalls := r.more(); next.After(r.until) {
		r.until = time.Time{}
		r.bound(next)
		if r.stalls = stalls; stalls {
			r.boundByEnd()
		}
		return
	}
	r.broke = true
	r.from.link.fail(fmt.Errorf("method %d, call %#x: %w", r.header.code, r.header.call, r.overlong()))
}

// more is how long a transfer may go on at the end of its time, if that is later, and whether that is of
// Config.Stall. The caller holds mu.
func (r *Request) more() (until time.Time, stalls bool) {
	cfg, now := &r.from.server.cfg, time.Now()
	span := cfg.Patience
	if r.stalls {
		span = cfg.Stall
	}
	paused := isLate(r.until, span) && r.late < lateTries
	switch {
	case !r.stalls && r.until.Before(r.leave().Add(span)): // it was the deadline
		return r.leaves.Add(span), false
	case paused:
		r.late++
		r.seen.moves(r.from.link.conn)
	case r.stalls: // pieces before it may move
		return r.from.turns.moved().Add(cfg.Stall), true
	case now.Sub(r.leaves) >= cfg.Stall || !r.seen.moves(r.from.link.conn):
		return r.until, false
	}
	return now.Add(span), r.stalls
}
