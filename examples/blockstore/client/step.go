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

// step waits for one event and acts on it.
func (l *Link) step(ctx context.Context) error {
	if l.lost != nil {
		return l.lost
	}
	if ctx.Err() != nil { // or an endless stream of events would hide it
		return context.Cause(ctx)
	}
	var ev dat.Event
	select {
	case ev = <-l.conn.Events(): // usually an event is queued already
	default:
		timer := time.NewTimer(l.stall)
		defer timer.Stop()
		select {
		case ev = <-l.conn.Events():
		case <-timer.C:
			return l.lose(ErrStalled)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if ev.Ended() { // after ESTABLISHED, the end is the only event of the connection itself
		if ev.Err() == nil {
			return l.lose(errors.New("the server ended it"))
		}
		return l.lose(ev.Err())
	}
	if b := l.conn.Message(ev); b != nil {
		if err := l.answered(b); err != nil {
			return l.lose(err)
		}
	} else if s, ok := l.rdma.Take(ev.Cookie); ok && ev.Err() == nil {
		s.waits--
	} // otherwise the block was not moved: the connection has ended, and its last event says why
	for l.oldest != l.next && l.slot(l.oldest).waits == 0 {
		s := l.slot(l.oldest)
		l.oldest++
		l.credits.Grant(1)
		if err := l.finish(s); err != nil {
			return err
		}
	}
	return nil
}

// answered takes a reply. Replies come in the order of the requests; any other reply is
// the server's fault.
func (l *Link) answered(b *dat.Buffer) error {
	m, err := proto.ParseReply(b.Bytes(), l.limits)
	if err != nil {
		return err
	}
	s := l.slot(l.replied)
	if l.replied == l.next || m.Op != s.op || m.Tag != s.tag || int(m.Slot) != s.index {
		return fmt.Errorf("%w: a reply to %v %d in slot %d, where %v %d in slot %d is due",
			proto.ErrMalformed, m.Op, m.Tag, m.Slot, s.op, s.tag, s.index)
	}
	l.replied++
	s.waits--
	s.status, s.message = m.Status, b
	switch {
	case m.Status != proto.OK:
		return nil
	case m.Op == proto.OpRoot:
		s.ID = m.ID
	case m.Op == proto.OpGet:
		s.N, s.crc = int(m.Length), m.CRC
		return errors.Join(l.move(s, dat.OpRead), l.conn.Flush())
	}
	return nil
}

// finish ends a request: its slot is free when OnDone has returned.
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
