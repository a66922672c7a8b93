package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/report"
	dat "godat/runtime"
)

var (
	// ErrLost says that the connection is over; its cause is wrapped beside it.
	ErrLost = errors.New("connection lost")
	// ErrStalled says that the server owes an answer for too long.
	ErrStalled = errors.New("the server does not answer")

	errClosed = fmt.Errorf("%w: closed", ErrLost)
)

// Link is a connection to a server. One goroutine uses it.
type Link struct {
	// OnDone, if set, hears of each PUT and GET that has ended, in the order in
	// which they began. An error from it ends the call that found out.
	OnDone func(*Slot) error
	// Latency has one entry for each PUT and GET that ended well.
	Latency *report.Latency

	stall  time.Duration
	limits proto.Limits
	window dat.RemoteSegment // the slots' counterparts at the server

	conn    *dat.Conn
	blocks  *dat.LMR
	credits *dat.Credits         // slots of the window that may be asked for
	rdma    *dat.Contexts[*Slot] // whose block is on its way, by cookie

	slots        []Slot
	oldest, next uint64 // requests from oldest up to next are on their way
	replied      uint64 // the first of them that has no reply yet
	lost         error  // why nothing works any more
}

// Slot is a request and its block of memory. It is the caller's from Slot to
// Put or Get, and during OnDone.
type Slot struct {
	Buf []byte // as long as the largest block; registered memory
	N   int    // the block's length: what was put or what came
	ID  block.ID
	Ref Ref   // the caller's
	Err error // what the server, or a check of what came, said

	index   int
	op      proto.Op
	tag     uint64
	status  proto.Status
	crc     uint32 // of a GET: what the server sent
	waits   int    // for the reply, and for the block
	began   time.Time
	message *dat.Buffer // for the next request: the one that the last reply came in
}

// Ref says what a block is to the caller.
type Ref struct{ File, Block int }

// Limits are what the server has agreed to.
func (l *Link) Limits() proto.Limits { return l.limits }

// Slot waits until a slot is free. The next Put or Get takes it.
func (l *Link) Slot(ctx context.Context) (*Slot, error) {
	for l.lost == nil && l.credits.Left() == 0 {
		if err := l.step(ctx); err != nil {
			return nil, err
		}
	}
	if l.lost != nil {
		return nil, l.lost
	}
	return l.slot(l.next), nil
}

// Drain waits until nothing is on its way.
func (l *Link) Drain(ctx context.Context) error {
	for l.oldest != l.next {
		if err := l.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Put asks the server to keep the first n bytes of the slot's memory, and
// returns their name.
func (l *Link) Put(s *Slot, n int, ref Ref) (block.ID, error) {
	data := s.Buf[:n]
	s.N, s.ID, s.Ref = n, block.IDOf(data), ref
	req := proto.Message{Op: proto.OpPut, Length: uint32(n), CRC: block.CRC(data), ID: s.ID}
	return s.ID, l.begin(s, &req)
}

// Get asks the server for a block, which comes into the slot's memory.
func (l *Link) Get(s *Slot, id block.ID, ref Ref) error {
	s.N, s.ID, s.Ref = 0, id, ref
	return l.begin(s, &proto.Message{Op: proto.OpGet, ID: id})
}

// SetRoot makes id the store's root. Everything put before is kept by then.
func (l *Link) SetRoot(ctx context.Context, id block.ID) error {
	_, err := l.call(ctx, &proto.Message{Op: proto.OpSetRoot, ID: id})
	return err
}

// Root asks for the store's root.
func (l *Link) Root(ctx context.Context) (block.ID, error) {
	return l.call(ctx, &proto.Message{Op: proto.OpRoot})
}

// call is a request without a block that is waited for.
func (l *Link) call(ctx context.Context, req *proto.Message) (block.ID, error) {
	s, err := l.Slot(ctx)
	if err != nil {
		return block.ID{}, err
	}
	if err := l.begin(s, req); err != nil {
		return block.ID{}, err
	}
	if err := l.Drain(ctx); err != nil {
		return block.ID{}, err
	}
	return s.ID, s.Err
}

func (l *Link) slot(n uint64) *Slot { return &l.slots[n%uint64(len(l.slots))] }

// begin posts a request: the block of a PUT and the message, together.
func (l *Link) begin(s *Slot, req *proto.Message) error {
	if l.lost != nil {
		return l.lost
	}
	l.credits.Take()
	s.op, s.tag, s.status, s.Err = req.Op, l.next, proto.OK, nil
	s.began, s.waits = time.Now(), 1
	l.next++
	var err error
	if req.Op == proto.OpPut {
		err = l.move(s, dat.OpWrite)
	}
	req.Slot, req.Tag = uint16(s.index), s.tag
	req.Put(s.message.Resize(proto.MessageLen))
	if err = errors.Join(err, l.conn.Queue(s.message), l.conn.Flush()); err != nil {
		return l.lose(err)
	}
	return nil
}

// move begins to write or read the slot's block. It goes out with the next flush.
func (l *Link) move(s *Slot, op dat.Op) error {
	cookie, _ := l.rdma.Put(s) // each slot has one at most
	s.waits++
	at := s.index * l.limits.Block
	return l.conn.Outbox().Add(dat.DTO{
		Op: op, Cookie: cookie, Segment: l.blocks.Segment(at, s.N), Remote: l.window.Slice(at, s.N),
	})
}

// lose remembers why the link is of no use any more.
func (l *Link) lose(why error) error {
	if l.lost == nil {
		l.lost = fmt.Errorf("%w: %w", ErrLost, why)
	}
	return l.lost
}
