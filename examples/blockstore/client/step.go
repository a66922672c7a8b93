package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	dat "godat/runtime"
)

// step waits for one event and does what follows from it.
func (l *Link) step(ctx context.Context) error {
	if l.lost != nil {
		return l.lost
	}
	if ctx.Err() != nil { // or events that never cease would hide it
		return context.Cause(ctx)
	}
	var ev dat.Event
	select {
	case ev = <-l.events.C(): // most often it is there already
	default:
		timer := time.NewTimer(l.stall)
		defer timer.Stop()
		select {
		case ev = <-l.events.C():
		case <-timer.C:
			return l.lose(ErrStalled)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if _, ok := ev.DTO(); !ok {
		// The connection is over: nothing else is said of it once it is up.
		if ev.Err() == nil {
			return l.lose(errors.New("the server ended it"))
		}
		return l.lose(ev.Err())
	}
	switch ev.Status {
	case dat.StatusSuccess:
		return l.completed(ev)
	case dat.StatusFlushed:
		return nil // the connection is over; the event that says why comes after this
	default:
		return l.lose(ev.Err())
	}
}

// completed counts a completion towards its request.
func (l *Link) completed(ev dat.Event) error {
	s := &l.slots[uint32(ev.Cookie)]
	s.waits--
	if ev.Cookie>>32 == cookieReply {
		if err := l.answered(s, int(ev.Length)); err != nil {
			return l.lose(err)
		}
	}
	for l.oldest != l.next && l.slot(l.oldest).waits == 0 {
		s := l.slot(l.oldest)
		l.oldest++
		if err := l.finish(s); err != nil {
			return err
		}
	}
	return nil
}

// answered takes the reply of length n to the slot's request. Receives are
// filled in the order posted and replies come in the order of the requests, so
// anything else is the server's fault.
func (l *Link) answered(s *Slot, n int) error {
	m, err := proto.ParseReply(s.reply.bytes[:n], l.limits)
	if err != nil {
		return err
	}
	if m.Op != s.op || m.Tag != s.tag || int(m.Slot) != s.index {
		return fmt.Errorf("%w: a reply to %v %d in slot %d, where %v %d in slot %d is due",
			proto.ErrMalformed, m.Op, m.Tag, m.Slot, s.op, s.tag, s.index)
	}
	s.status = m.Status
	switch {
	case m.Status != proto.OK:
		return nil
	case m.Op == proto.OpRoot:
		s.ID = m.ID
	case m.Op == proto.OpGet:
		s.N, s.crc = int(m.Length), m.CRC
		s.waits++
		return l.ep.PostRDMARead(cookie(cookieRead, s.index), dat.Default,
			l.remote(s, s.N), l.blocks.Segment(s.index*l.limits.Block, s.N))
	}
	return nil
}

// finish ends a request: its slot is free when OnDone returns.
func (l *Link) finish(s *Slot) error {
	s.Err = s.status.Err()
	if s.op != proto.OpPut && s.op != proto.OpGet {
		return nil
	}
	if s.op == proto.OpGet && s.Err == nil && block.CRC(s.Buf[:s.N]) != s.crc {
		s.Err = proto.Damaged.Err()
	}
	if s.Err == nil {
		l.Latency.Record(time.Since(s.began))
	}
	if l.OnDone == nil {
		return nil
	}
	return l.OnDone(s)
}
