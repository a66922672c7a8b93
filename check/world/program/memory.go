package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// Memory is a program of connections with operations of all kinds: each client has a region at its server, which
// it writes, reads and adds to by batches, sends messages that the server answers, and lets the server read from
// regions and windows of its own.
type Memory struct{ Size }

const (
	regionSize = 256 << 10 // at the server, of each connection
	slotSize   = 96 << 10  // of the client's memory, for each operation
	slots      = most
	depth      = 16
	most       = 5 // operations, and messages, of a round: with those messages of the round before whose sends are not over yet there is room
)

// The messages of a client, by their first octet.
const (
	echoes = 1 + iota // the answer is the message
	pulls             // the server reads a segment, whose octets content tells, and answers with the message
	notes             // no answer
)

// shape is what connections of both ends are made of. Events come one by one, or in batches.
func shape(batches bool, setup func(*dat.Conn) ([]byte, error)) dat.ConnConfig {
	return dat.ConnConfig{Depth: depth, Message: 256, Setup: setup, Conns: 64, Batches: batches}
}

// Run runs the program.
func (p Memory) Run(w *World) error {
	return p.play(w, func(ctx context.Context, s *service) error {
		first, err := listenMemory(ctx, s, w.Listens(s.host))
		if err != nil {
			return err
		}
		s.address = first.Addr()
		s.running.Go(func() { serveMemory(ctx, w, s, first) })
		return nil
	}, func(ctx context.Context, is party) {
		c := &user{party: is, w: w, draw: w.Draw(300 + is.number)}
		for range p.Rounds {
			if sleep(ctx, time.Duration(c.draw.Int64N(int64(mostPause)))); !c.round(ctx) {
				break
			}
		}
		c.leave("the last round")
	})
}

func listenMemory(ctx context.Context, s *service, address string) (*dat.Listener, error) {
	return s.ia.Listen(ctx, address, shape(s.number%2 == 0, func(c *dat.Conn) ([]byte, error) {
		region, err := c.Alloc(regionSize, hw.LocalRead|hw.LocalWrite|hw.RemoteRead|hw.RemoteWrite|hw.RemoteAtomic)
		if err != nil {
			return nil, err
		}
		c.Context = new(uint64) // the last message's id
		return region.Remote(0, regionSize).MarshalBinary()
	}))
}

// serveMemory serves until ctx ends, by one listener after the other.
func serveMemory(ctx context.Context, w *World, s *service, now *dat.Listener) {
	for {
		again := answerMemory(ctx, w, s, now)
		bounded, cancel := context.WithTimeout(context.Background(), time.Second)
		err := now.Shutdown(bounded)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			w.Wrong("%s: Shutdown: %v", s.host, err)
		}
		if !again {
			return
		}
		w.Step(s.host, "a further listener: %v", err)
		now, err = listenMemory(ctx, s, s.address)
		if ctx.Err() != nil && err != nil { // all clients have left
			return
		}
		if err != nil {
			w.Wrong("%s: no further listener: %v", s.host, err)
			return
		}
	}
}

// answerMemory serves one listener's connections until the script wants another, or ctx ends.
func answerMemory(ctx context.Context, w *World, s *service, ln *dat.Listener) (again bool) {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.restart:
			return true
		case ev := <-ln.Requests():
			if _, err := ln.Accept(ep.RequestOf(ev), nil); err != nil {
				w.Step(s.host, "no connection: %v", err)
			}
		case ev := <-ln.Events():
			s.happens(ctx, w, ev)
		case batch := <-ln.Batches():
			for _, ev := range batch.Events() {
				s.happens(ctx, w, ev)
			}
			batch.Release()
		}
	}
}

// happens takes an event of a connection of the server.
func (s *service) happens(ctx context.Context, w *World, ev event.Event) {
	switch c := dat.ConnOf(ev); {
	case ev.Ended():
		w.Step(s.host, "%v", ev.Err())
		if err := c.Close(); err != nil {
			w.Wrong("%s: Close: %v", s.host, err)
		}
	case ev.Op == hw.OpRecv && ev.Err() == nil:
		if b := c.Message(ev); b != nil { // or the end is under way
			s.hear(ctx, w, c, b)
		}
	}
}

// hear judges a message, and does what it asks for.
func (s *service) hear(ctx context.Context, w *World, c *dat.Conn, b *mem.Buffer) {
	id, last := binary.BigEndian.Uint64(b.Bytes()[1:]), c.Context.(*uint64)
	if *last != 0 && id != *last+1 {
		w.Wrong("%s: message %x came behind %x", s.host, id, *last)
	}
	*last = id
	switch b.Bytes()[0] {
	case pulls:
		s.running.Go(func() { pull(ctx, w, c, b) })
	case notes:
		if text := b.Bytes()[9:]; !bytes.Equal(text, content(id, len(text))) {
			w.Wrong("%s: note %x has other octets than were sent", s.host, id)
		}
		c.Release(b)
	default:
		_ = c.Send(b) // fails when c has ended
	}
}

// pull reads what a message names from its sender's memory, and answers.
func pull(ctx context.Context, w *World, c *dat.Conn, b *mem.Buffer) {
	id := binary.BigEndian.Uint64(b.Bytes()[1:])
	from, err := mem.ParseRemoteSegment(b.Bytes()[9:])
	if err != nil {
		w.Wrong("pull %x: %v", id, err)
		c.Release(b)
		return
	}
	into, err := c.Alloc(int(from.Len), hw.LocalWrite)
	if err != nil {
		c.Release(b)
		return
	}
	err = c.Do(ctx, ep.DTO{Op: hw.OpRead, Segment: into.Segment(0, int(from.Len)), Remote: from})
	if err == nil && !bytes.Equal(into.Bytes(), content(id, int(from.Len))) {
		w.Wrong("pull %x: the server read other octets than its client has", id)
	}
	if free := into.Free(); free != nil {
		w.Step("server", "pull %x: Free: %v", id, free)
	}
	_ = c.Send(b) // fails when c has ended
}
