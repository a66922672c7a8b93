package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// user is a client of memory, and what it expects.
type user struct {
	party
	w    *World
	draw *rand.Rand

	c      *dat.Conn
	remote mem.RemoteSegment
	own    *mem.LMR
	window *mem.RMR
	mirror []byte        // what the region at the server has
	came   []event.Event // of a batch
	turn   int           // of two sets of slots
	after  []expected    // suppressed, and none behind them has completed
	cookie uint64        // of the last operation
	id     uint64        // of the last message
}

// expected is an operation that is under way.
type expected struct {
	cookie uint64
	op     hw.Op
	silent bool   // it has an event only if it fails
	into   []byte // of a read, and what must be there
	want   []byte
	at     int // in the region
	length int
}

// overtakes reports whether an operation must wait for one before it: it changes what that reads.
func (e *expected) overtakes(before *expected) bool {
	return e.op != hw.OpRead && before.op != hw.OpWrite && e.at < before.at+len(before.into) && before.at < e.at+e.length
}

// round makes a connection if there is none, and posts operations and messages. It reports whether the user
// goes on.
func (u *user) round(ctx context.Context) bool {
	if u.c == nil && !u.connect(ctx) {
		return false
	}
	if u.c == nil { // it ended while its memory was made
		return true
	}
	batch, list := u.operations()
	texts, binds := u.messages(), u.draw.IntN(2) == 0
	sent := make(chan [][]byte, 1)
	if !binds {
		go func() { sent <- u.send(texts) }()
	}
	n, err := u.c.Endpoint.PostBatch(batch)
	list = list[:n]
	if binds {
		list = u.bind(list, texts)
		sent <- u.send(texts)
	}
	messages := <-sent
	if err != nil && u.up() {
		u.w.Wrong("%s: a connection that is up took %d of %d operations: %v", u.host, n, len(batch), err)
	}
	if !u.collect(append(u.after, list...), messages) {
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
	addr, batches := u.addrs[u.draw.IntN(len(u.addrs))], u.draw.IntN(2) == 0
	for {
		c, err := u.ia.Dial(bounded, addr, shape(batches, nil))
		if err == nil {
			u.c, u.came, u.after = c, nil, nil
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
	if u.own, err = u.c.Alloc((2*slots+1)*slotSize, hw.LocalRead|hw.LocalWrite|hw.RemoteRead); err != nil {
		u.w.Step(u.host, "no memory of its own: %v", err)
		u.leave("its end")
		return true
	}
	if u.ia.Attr().MaxWindows == 0 {
		u.window = nil
	} else if u.window, err = u.c.Endpoint.NewRMR(); err != nil {
		u.w.Step(u.host, "no window: %v", err)
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
func (u *user) operations() (batch []ep.DTO, list []expected) {
	if u.own == nil || u.c == nil {
		return nil, nil
	}
	kinds := []hw.Op{hw.OpWrite, hw.OpWrite, hw.OpRead, hw.OpRead, hw.OpFetchAdd}
	if !u.ia.Attr().Ops.Has(hw.OpFetchAdd) {
		kinds = kinds[:4]
	}
	count := u.draw.IntN(most + 1)
	if count > 0 {
		u.turn = 1 - u.turn
	}
	for i := range count {
		u.cookie++
		e := expected{cookie: u.cookie, op: kinds[u.draw.IntN(len(kinds))]}
		length := u.length()
		at := u.draw.IntN(regionSize - length)
		if e.op == hw.OpFetchAdd {
			length, at = 8, at&^7
		}
		from := (u.turn*slots + i) * slotSize
		memory := u.own.Bytes()[from : from+length]
		d := ep.DTO{Op: e.op, Cookie: u.cookie, Segment: u.own.Segment(from, length), Remote: u.remote.Slice(at, length)}
		if e.at, e.length = at, length; slices.ContainsFunc(append(u.after, list...), func(before expected) bool { return e.overtakes(&before) }) {
			d.Flags = hw.BarrierFence
		}
		switch {
		case e.op == hw.OpWrite:
			copy(memory, content(u.number<<32|u.cookie, length))
			copy(u.mirror[at:], memory)
		case e.op == hw.OpRead:
			e.into, e.want = memory, bytes.Clone(u.mirror[at:at+length])
		default:
			d.Operand = u.draw.Uint64()
			old := binary.NativeEndian.Uint64(u.mirror[at:])
			e.into, e.want = memory, binary.NativeEndian.AppendUint64(nil, old)
			binary.NativeEndian.PutUint64(u.mirror[at:], old+d.Operand)
		}
		last := i == count-1 && (i == 0 || len(u.after) > 0)
		if e.silent = !last && u.draw.IntN(3) == 0; e.silent {
			d.Flags |= hw.Suppress
		}
		batch, list = append(batch, d), append(list, e)
	}
	return batch, list
}

// length draws that of an operation: most are short, and a long one is more than is delivered at a time.
func (u *user) length() int {
	return 1 + u.draw.IntN([]int{100, 2 << 10, 2 << 10, slotSize}[u.draw.IntN(4)])
}

// messages draws some.
func (u *user) messages() (all [][]byte) {
	for range u.draw.IntN(most + 1) {
		u.id++
		id := u.number<<32 | u.id
		text := binary.BigEndian.AppendUint64([]byte{echoes}, id)
		switch {
		case len(all) == 0 && u.draw.IntN(2) == 0 && u.own != nil:
			text[0] = pulls
			length := u.length()
			copy(u.own.Bytes()[2*slots*slotSize:], content(id, length))
			text, _ = u.own.Remote(2*slots*slotSize, length).AppendBinary(text)
		case u.draw.IntN(2) == 0:
			text[0] = notes
			text = append(text, content(id, u.draw.IntN(200))...)
		default:
			text = append(text, make([]byte, u.draw.IntN(200))...)
		}
		all = append(all, text)
	}
	return all
}

// send sends messages, and returns those that have answers.
func (u *user) send(texts [][]byte) (answered [][]byte) {
	for i, text := range texts {
		if err := u.c.SendBytes(text); err != nil {
			if u.up() {
				u.w.Wrong("%s: a connection that is up takes no message %d: %v", u.host, i, err)
			}
			break
		}
		if text[0] != notes {
			answered = append(answered, text)
		}
	}
	return answered
}

// collect takes events until all operations have completed, in their order, and all messages are answered: true;
// or until the connection ends.
func (u *user) collect(list []expected, messages [][]byte) bool {
	deadline := time.NewTimer(10 * time.Minute) // nothing here takes so long
	defer deadline.Stop()
	for slices.ContainsFunc(list, func(e expected) bool { return !e.silent }) || len(messages) > 0 {
		ev, ok := u.next(deadline.C)
		if !ok {
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
		case ev.Number == event.Established:
		case ev.Op == hw.OpRecv && ev.Err() != nil: // its end is next
		case ev.Op == hw.OpRecv:
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
	u.after = list
	u.w.Step(u.host, "operations up to %d, messages up to %d", u.cookie, u.id)
	return true
}

// next is the next event of the connection; false if none comes in time.
func (u *user) next(late <-chan time.Time) (ev event.Event, ok bool) {
	if len(u.came) == 0 {
		select {
		case ev := <-u.c.Events():
			return ev, true
		case batch := <-u.c.Batches():
			u.came = append(u.came, batch.Events()...)
			batch.Release()
		case <-late:
			return ev, false
		}
	}
	ev, u.came = u.came[0], u.came[1:]
	return ev, true
}

// bind binds the window to what a message lets the server read, which gets the window's name in place of the
// region's; or to nothing.
func (u *user) bind(list []expected, texts [][]byte) []expected {
	if u.window == nil || u.own == nil {
		return list
	}
	u.cookie++
	e := expected{cookie: u.cookie, op: hw.OpBind, silent: u.draw.IntN(2) == 0}
	var flags hw.Flags
	if e.silent {
		flags = hw.Suppress
	}
	var to mem.Binding
	var name []byte // of the region
	for _, text := range texts {
		if text[0] == pulls {
			name = text[9:]
			of, _ := mem.ParseRemoteSegment(name)
			to = mem.Binding{Segment: u.own.Segment(2*slots*slotSize, int(of.Len)), Privileges: hw.RemoteRead}
		}
	}
	remote, err := u.c.Endpoint.PostBind(u.cookie, flags, u.window, to)
	if err != nil {
		if u.up() {
			u.w.Wrong("%s: a connection that is up takes no bind: %v", u.host, err)
		}
		return list
	}
	if name != nil {
		_, _ = remote.AppendBinary(name[:0])
	}
	return append(list, e)
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
func (u *user) completed(list []expected, ev event.Event) []expected {
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
