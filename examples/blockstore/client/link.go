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
	// ErrLost says that the connection is over; the error also wraps the cause.
	ErrLost = errors.New("connection lost")
	// ErrStalled says that the server has owed an answer for too long.
	ErrStalled = errors.New("the server does not answer")

	errClosed = fmt.Errorf("%w: closed", ErrLost)
)

// Link is a connection to a server. One goroutine uses it.
type Link struct {
	// OnDone, if set, is called with each PUT and GET that has ended, in the order in
	// which they began. Its error is returned by the call during which it ran.
	OnDone func(*Slot) error
	// Latency has one entry for each PUT and GET that ended well.
	Latency *report.Latency

	stall  time.Duration
	limits proto.Limits
	window dat.RemoteSegment // where the slots are in the server's memory

	conn    *dat.Conn
	blocks  *dat.LMR
	credits *dat.Credits         // slots that are free
	rdma    *dat.Contexts[*Slot] // by cookie: the slot whose block an RDMA operation moves

	slots        []Slot
	oldest, next uint64 // requests from oldest up to next are outstanding
	replied      uint64 // the first request without a reply
	lost         error  // why the link can't be used any more
}

// Slot is a request and its block of memory. It belongs to the caller between a call of
// Link.Slot and the next Put or Get, and during OnDone.
type Slot struct {
	Buf []byte // as long as the largest block; registered memory
	N   int    // length of the block in bytes
	ID  block.ID
	Ref Ref   // the caller's own
	Err error // the server's error, or that of the check of the block

	index   int
	op      proto.Op
	tag     uint64
	status  proto.Status
	crc     uint32 // of a GET: the checksum from the server
	waits   int    // 1 for the reply, and 1 for the block
	began   time.Time
	message *dat.Buffer // for the next request: the buffer of the last reply
}

// Ref says which block of which file the caller put or asked for.
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

// Drain waits until no request is outstanding.
func (l *Link) Drain(ctx context.Context) error {
	for l.oldest != l.next {
		if err := l.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Put asks the server to store the first n bytes of the slot's memory, and returns the
// name of that block.
func (l *Link) Put(s *Slot, n int, ref Ref) (block.ID, error) {
	data := s.Buf[:n]
	s.N, s.ID, s.Ref = n, block.IDOf(data), ref
	req := proto.Message{Op: proto.OpPut, Length: uint32(n), CRC: block.CRC(data), ID: s.ID}
	return s.ID, l.begin(s, &req)
}

// Get asks the server for a block, and reads it into the slot's memory.
func (l *Link) Get(s *Slot, id block.ID, ref Ref) error {
	s.N, s.ID, s.Ref = 0, id, ref
	return l.begin(s, &proto.Message{Op: proto.OpGet, ID: id})
}

// SetRoot makes id the store's root. The server has stored everything put before by
// then.
func (l *Link) SetRoot(ctx context.Context, id block.ID) error {
	_, err := l.call(ctx, &proto.Message{Op: proto.OpSetRoot, ID: id})
	return err
}

// Root asks for the store's root.
func (l *Link) Root(ctx context.Context) (block.ID, error) {
	return l.call(ctx, &proto.Message{Op: proto.OpRoot})
}

// call makes a request without a block, and waits for the answer.
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

// begin posts a request: a PUT's RDMA write and the message, together.
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

// move queues the RDMA operation that writes or reads the slot's block. It goes out
// with the next flush.
func (l *Link) move(s *Slot, op dat.Op) error {
	cookie, _ := l.rdma.Put(s) // there is room, since each slot has at most one
	s.waits++
	at := s.index * l.limits.Block
	return l.conn.Outbox().Add(dat.DTO{
		Op: op, Cookie: cookie, Segment: l.blocks.Segment(at, s.N), Remote: l.window.Slice(at, s.N),
	})
}

// lose notes why the link can't be used any more.
func (l *Link) lose(why error) error {
	if l.lost == nil {
		l.lost = fmt.Errorf("%w: %w", ErrLost, why)
	}
	return l.lost
}
