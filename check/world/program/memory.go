package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"godat/mem"
	dat "godat/runtime"
)

// Memory is a program of connections with operations of all kinds: each client has a region at its server, which
// it writes, reads and adds to by batches, sends messages that the server answers, and lets the server read from
// regions and windows of its own.
type Memory struct{ Size }

const (
	regionSize = 64 << 10 // at the server, of each connection
	slotSize   = 2 << 10  // of the client's memory, for each operation
	slots      = most
	depth      = 8
	most       = 5 // operations, and messages, of a round: with those messages of the round before whose sends are not over yet there is room
)

// The messages of a client, by their first octet.
const (
	echoes = 1 + iota // the answer is the message
	pulls             // the server reads a segment, whose octets content tells, and answers with the message
)

// shape is what connections of both ends are made of.
func shape(setup func(*dat.Conn) ([]byte, error)) dat.ConnConfig {
	return dat.ConnConfig{Depth: depth, Message: 256, Setup: setup, Conns: 64}
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
	return s.ia.Listen(ctx, address, shape(func(c *dat.Conn) ([]byte, error) {
		region, err := c.Alloc(regionSize, dat.LocalRead|dat.LocalWrite|dat.RemoteRead|dat.RemoteWrite|dat.RemoteAtomic)
		if err != nil {
			return nil, err
		}
		scratch, err := c.Alloc(slotSize, dat.LocalRead|dat.LocalWrite)
		if err != nil {
			return nil, err
		}
		c.Context = scratch
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
		if now, err = listenMemory(ctx, s, s.address); err != nil {
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
			if _, err := ln.Accept(dat.RequestOf(ev), nil); err != nil {
				w.Step(s.host, "no connection: %v", err)
			}
		case ev := <-ln.Events():
			switch c := dat.ConnOf(ev); {
			case ev.Ended():
				w.Step(s.host, "%v", ev.Err())
				if err := c.Close(); err != nil {
					w.Wrong("%s: Close: %v", s.host, err)
				}
			case ev.Op == dat.OpRecv && ev.Err() == nil:
				b := c.Message(ev)
				if b == nil { // the end is under way
					continue
				}
				if b.Bytes()[0] == pulls {
					s.running.Go(func() { pull(ctx, w, c, b) })
					continue
				}
				_ = c.Send(b) // fails when c has ended
			}
		}
	}
}

// pull reads what a message names from its sender's memory, and answers.
func pull(ctx context.Context, w *World, c *dat.Conn, b *dat.Buffer) {
	id := binary.BigEndian.Uint64(b.Bytes()[1:])
	from, err := mem.ParseRemoteSegment(b.Bytes()[9:])
	if err != nil {
		w.Wrong("pull %x: %v", id, err)
		c.Release(b)
		return
	}
	into, err := c.Alloc(int(from.Len), dat.LocalWrite)
	if err != nil {
		c.Release(b)
		return
	}
	err = c.Do(ctx, dat.DTO{Op: dat.OpRead, Segment: into.Segment(0, int(from.Len)), Remote: from})
	if err == nil && !bytes.Equal(into.Bytes(), content(id, int(from.Len))) {
		w.Wrong("pull %x: the server read other octets than its client has", id)
	}
	if free := into.Free(); free != nil {
		w.Step("server", "pull %x: Free: %v", id, free)
	}
	_ = c.Send(b) // fails when c has ended
}

// user is a client of memory, and what it expects.
type user struct {
	party
	w    *World
	draw *rand.Rand

	c      *dat.Conn
	remote dat.RemoteSegment
	own    *dat.LMR
	mirror []byte // what the region at the server has
	cookie uint64 // of the last operation
	id     uint64 // of the last message
}

// expected is an operation that is under way.
type expected struct {
	cookie uint64
	op     dat.Op
	silent bool   // it has an event only if it fails
	into   []byte // of a read, and what must be there
	want   []byte
}

// round makes a connection if there is none, and posts operations and messages. It reports whether the user
// goes on.
func (u *user) round(ctx context.Context) bool {
	if u.c == nil && !u.connect(ctx) {
		return false
	}
	batch, list := u.operations()
	messages := u.messages()
	n, err := u.c.Endpoint.PostBatch(batch)
	list = list[:n]
	if err != nil && u.up() {
		u.w.Wrong("%s: a connection that is up took %d of %d operations: %v", u.host, n, len(batch), err)
	}
	if !u.collect(list, messages) {
		u.leave("its end")
		return true
	}
	if u.draw.IntN(12) == 0 {
		u.leave("will")
	}
	return true
}

// up reports whether the connection is.
func (u *user) up() bool { return u.c.Endpoint.State().String() == "CONNECTED" }

// connect dials, for a minute.
func (u *user) connect(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	addr := u.addrs[u.draw.IntN(len(u.addrs))]
	for {
		c, err := u.ia.Dial(bounded, addr, shape(nil))
		if err == nil {
			u.c = c
			break
		}
		u.w.Step(u.host, "no connection to %s: %v", addr, err)
		if !sleep(bounded, 100*time.Millisecond) {
			u.w.Wrong("%s: no server in a minute: %v", u.host, err)
			return false
		}
	}
	var err error
	if u.remote, err = mem.ParseRemoteSegment(u.c.Private()); err != nil {
		u.w.Wrong("%s: the region's name: %v", u.host, err)
		return false
	}
	if u.own, err = u.c.Alloc((slots+1)*slotSize, dat.LocalRead|dat.LocalWrite|dat.RemoteRead); err != nil {
		u.w.Step(u.host, "no memory of its own: %v", err)
		u.leave("its end")
		return true
	}
	u.mirror = make([]byte, regionSize)
	return true
}

// leave closes the connection.
func (u *user) leave(why string) {
	if u.c == nil {
		return
	}
	if err := u.c.Close(); err != nil {
		u.w.Wrong("%s: Close: %v", u.host, err)
	}
	u.w.Step(u.host, "left by %s", why)
	u.c = nil
}

// operations draws a batch.
func (u *user) operations() (batch []dat.DTO, list []expected) {
	if u.own == nil || u.c == nil {
		return nil, nil
	}
	kinds := []dat.Op{dat.OpWrite, dat.OpWrite, dat.OpRead, dat.OpRead, dat.OpFetchAdd}
	count := u.draw.IntN(most + 1)
	for i := range count {
		u.cookie++
		e := expected{cookie: u.cookie, op: kinds[u.draw.IntN(len(kinds))]}
		length := 1 + u.draw.IntN(slotSize)
		at := u.draw.IntN(regionSize - length)
		if e.op == dat.OpFetchAdd {
			length, at = 8, at&^7
		}
		memory := u.own.Bytes()[i*slotSize : i*slotSize+length]
		d := dat.DTO{
			Op: e.op, Cookie: u.cookie, Segment: u.own.Segment(i*slotSize, length), Remote: u.remote.Slice(at, length),
			Flags: dat.BarrierFence, // a write may overtake a read otherwise
		}
		switch {
		case e.op == dat.OpWrite:
			copy(memory, content(u.number<<32|u.cookie, length))
			copy(u.mirror[at:], memory)
		case e.op == dat.OpRead:
			e.into, e.want = memory, bytes.Clone(u.mirror[at:at+length])
		default:
			d.Operand = u.draw.Uint64()
			old := binary.NativeEndian.Uint64(u.mirror[at:])
			e.into, e.want = memory, binary.NativeEndian.AppendUint64(nil, old)
			binary.NativeEndian.PutUint64(u.mirror[at:], old+d.Operand)
		}
		if e.silent = i < count-1 && u.draw.IntN(3) == 0; e.silent {
			d.Flags |= dat.Suppress
		}
		batch, list = append(batch, d), append(list, e)
	}
	return batch, list
}

// messages sends some, and returns them.
func (u *user) messages() (all [][]byte) {
	for range u.draw.IntN(most + 1) {
		u.id++
		id := u.number<<32 | u.id
		text := binary.BigEndian.AppendUint64([]byte{echoes}, id)
		if len(all) == 0 && u.draw.IntN(2) == 0 && u.own != nil {
			text[0] = pulls
			length := 1 + u.draw.IntN(slotSize)
			copy(u.own.Bytes()[slots*slotSize:], content(id, length))
			text, _ = u.own.Remote(slots*slotSize, length).AppendBinary(text)
		} else {
			text = append(text, make([]byte, u.draw.IntN(200))...)
		}
		if err := u.c.SendBytes(text); err != nil {
			if u.up() {
				u.w.Wrong("%s: a connection that is up takes no message %d: %v", u.host, len(all), err)
			}
			return all
		}
		all = append(all, text)
	}
	return all
}

// collect takes events until all operations have completed, in their order, and all messages are answered: true;
// or until the connection ends.
func (u *user) collect(list []expected, messages [][]byte) bool {
	deadline := time.NewTimer(10 * time.Minute) // nothing here takes so long
	defer deadline.Stop()
	for len(list)+len(messages) > 0 {
		var ev dat.Event
		select {
		case ev = <-u.c.Events():
		case <-deadline.C:
			u.w.Wrong("%s: %d operations have not completed, and %d messages have no answer", u.host, len(list), len(messages))
			return false
		}
		switch {
		case ev.Ended():
			u.w.Step(u.host, "%v", ev.Err())
			for _, e := range list {
				if !e.silent {
					u.w.Wrong("%s: the connection ended before operation %d completed", u.host, e.cookie)
				}
			}
			return false
		case ev.Number == dat.Established:
		case ev.Op == dat.OpRecv && ev.Err() != nil: // its end is next
		case ev.Op == dat.OpRecv:
			b := u.c.Message(ev)
			if b == nil {
				continue
			}
			if messages = u.answered(messages, b.Bytes()); messages == nil {
				u.c.Release(b)
				return false
			}
			u.c.Release(b)
		default:
			list = u.completed(list, ev)
		}
	}
	u.w.Step(u.host, "operations up to %d, messages up to %d", u.cookie, u.id)
	return true
}

// answered takes a message's answer from the list. A pull is answered when the server has read.
func (u *user) answered(messages [][]byte, text []byte) [][]byte {
	for i, m := range messages {
		if bytes.Equal(m, text) {
			return append(messages[:i:i], messages[i+1:]...)
		}
		if m[0] == echoes {
			break
		}
	}
	u.w.Wrong("%s: a message is %x, and the next answer should be to %s", u.host, text, fmt.Sprintf("%x", messages))
	return nil
}

// completed judges a completion: those before it in the list have completed without an event, if they may.
func (u *user) completed(list []expected, ev dat.Event) []expected {
	for len(list) > 0 {
		e := list[0]
		list = list[1:]
		switch {
		case e.cookie != ev.Cookie && e.silent:
			if ev.Err() == nil {
				u.arrived(e)
			}
			continue
		case e.cookie != ev.Cookie:
			u.w.Wrong("%s: operation %x completed, and the next was %x", u.host, ev.Cookie, e.cookie)
		case ev.Err() == nil && e.silent:
			u.w.Wrong("%s: operation %x has a completion that was suppressed", u.host, e.cookie)
		case ev.Err() == nil:
			u.arrived(e)
		case u.up():
			u.w.Wrong("%s: operation %x failed on a connection that is up: %v", u.host, e.cookie, ev.Err())
		}
		return list
	}
	u.w.Wrong("%s: operation %x completed, and none was under way", u.host, ev.Cookie)
	return nil
}

// arrived judges what a read has brought.
func (u *user) arrived(e expected) {
	if !bytes.Equal(e.into, e.want) {
		u.w.Wrong("%s: operation %x, %v, brought other octets than were written", u.host, e.cookie, e.op)
	}
}
