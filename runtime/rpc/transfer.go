package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// Read reads the caller's memory from offset on into a segment of [Server.PZ]'s memory, by
// RDMA, and waits for that. A part that the caller does not have is LENGTH_ERROR. When the
// caller does not wait any more, Read moves nothing, and the error is that of Context's end.
//
// Transfers of a connection take turns, by pieces of 4 to 256 KiB. A client that stalls does not hold
// Read for ever: a read during which no piece of the connection moves for Config.Stall, or beyond the call's deadline or cancel
// nothing for Config.Patience, breaks the connection. The error is then TIMEOUT_EXPIRED, or that of Context's end. When the connection
// has ended before, the error matches [ErrEnded].
func (r *Request) Read(into mem.Segment, offset int) error {
	if !r.made() {
		return noRequest("rpc.Request.Read")
	}
	return r.from.of(r.header, "Read", r.move(hw.OpRead, into, r.source, offset))
}

// Write writes a segment of [Server.PZ]'s memory to the caller's memory from offset on, by
// RDMA, and waits for that no longer than Read does. The bytes are there before the caller has the
// answer. A part that the caller does not have is LENGTH_ERROR.
func (r *Request) Write(from mem.Segment, offset int) error {
	if !r.made() {
		return noRequest("rpc.Request.Write")
	}
	return r.from.of(r.header, "Write", r.move(hw.OpWrite, from, r.sink, offset))
}

// ReadBytes is Read into memory that is not registered: it registers into for the time of the
// read. Of an empty slice it checks the offset alone. Two requests must not read into the same memory
// at the same time.
func (r *Request) ReadBytes(into []byte, offset int) error {
	if !r.made() {
		return noRequest("rpc.Request.ReadBytes")
	}
	return r.from.of(r.header, "ReadBytes", r.from.server.loans.lend(r.from.server.PZ(), into, hw.LocalWrite, func(m *mem.LMR) error {
		return r.move(hw.OpRead, segment(m, len(into)), r.source, offset)
	}))
}

// ReadAll is ReadBytes of all of the caller's memory, into new memory. A client may name 4 GiB less a
// byte, so the handler looks at SourceLen before.
func (r *Request) ReadAll() ([]byte, error) {
	into := make([]byte, r.SourceLen())
	return into, r.ReadBytes(into, 0)
}

// WriteBytes is Write from memory that is not registered: it registers from for the time of the
// write. Any number of requests at a time may write from the same memory, which may be mapped for
// reading alone as [Call].SourceBytes. A mapped file that is cut meanwhile is a fault, which ends the
// process; WriteFile returns an error then.
func (r *Request) WriteBytes(from []byte, offset int) error {
	if !r.made() {
		return noRequest("rpc.Request.WriteBytes")
	}
	return r.from.of(r.header, "WriteBytes", r.from.server.loans.lend(r.from.server.PZ(), from, hw.LocalRead, func(m *mem.LMR) error {
		return r.move(hw.OpWrite, segment(m, len(from)), r.sink, offset)
	}))
}

func (r *Request) move(op hw.Op, mine mem.Segment, callers mem.RemoteSegment, offset int) error {
	if err := r.beginTransfer(); err != nil {
		return err
	}
	defer r.endTransfer()
	if offset < 0 || uint64(offset)+uint64(mine.Len) > uint64(callers.Len) {
		return hw.Errorf("", hw.LengthError, hw.NoSubtype, "%d bytes from %d on; the caller has %d", mine.Len, offset, callers.Len)
	}
	for done, all := 0, int(mine.Len); done < all; {
		n, err := r.movePiece(op, mem.Segment{Addr: mine.Addr + uint64(done), Len: uint32(all - done), Context: mine.Context}, callers, offset+done)
		if done += n; err != nil {
			return err
		}
	}
	return nil
}

// movePiece moves the first piece of so many bytes, in its turn.
func (r *Request) movePiece(op hw.Op, part mem.Segment, callers mem.RemoteSegment, offset int) (n int, err error) {
	turns := &r.from.turns
	size, weight := turns.piece()
	n = min(int(part.Len), size)
	if !turns.line.TryAcquire(weight) && turns.line.Acquire(r.Context(), weight) != nil {
		return 0, r.ended()
	}
	defer turns.line.Release(weight)
	if err := r.watch(); err != nil {
		return 0, err
	}
	began := time.Now()
	part.Len = uint32(n)
	if op == hw.OpWrite && !turns.room.take(n) {
		turns.room.await(r, n)
	}
	// Without Context, at whose end Do would break the connection at once.
	err = r.from.link.conn.Do(context.Background(), ep.DTO{Op: op, Segment: part, Remote: callers.Slice(offset, n)})
	written := 0
	if op == hw.OpWrite && err == nil {
		written = offset + n
	}
	if err = cmp.Or(r.unwatch(written), err); err != nil {
		if errors.Is(err, net.ErrClosed) || r.from.link.conn.Endpoint.State() != ep.Connected || errors.As(err, new(hw.StatusError)) {
			return 0, fmt.Errorf("%w: %w", ErrEnded, err) // before it, or by it
		}
		return 0, err
	}
	if took := time.Since(began); op == hw.OpRead {
		turns.took(n, took)
	} else {
		turns.wrote(r.from.link.conn, n, took)
	}
	return n, nil
}

// overlong is the error of a transfer that broke the connection. The caller holds mu.
func (r *Request) overlong() error {
	cfg := &r.from.server.cfg
	if err := r.left(); err != nil {
		return fmt.Errorf("it went on for %v behind the end of the call, and nothing moved for Config.Patience, %v, or it took Config.Stall, so it broke the connection: %w",
			time.Since(r.leaves).Round(time.Millisecond), cfg.Patience, err)
	}
	return hw.Errorf("", hw.TimeoutExpired, hw.NoSubtype, "it went on for %v, which is Config.Stall, and broke the connection", cfg.Stall)
}

// unwatch ends the transfer of a piece, which has written so far. It returns the error of one that took
// too long.
func (r *Request) unwatch(written int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = max(r.written, uint32(written))
	if r.moves--; r.moves == 0 {
		r.timer.Stop()
		r.release()
	}
	if !r.broke {
		return nil
	}
	return r.overlong()
}

// wrote is how far into the sink the server has written.
func (r *Request) wrote() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.written)
}

// beginTransfer begins what an answer waits for, until endTransfer, unless the request is not the program's
// any more.
func (r *Request) beginTransfer() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return r.misused("")
	}
	r.transfers++
	return nil
}

func (r *Request) endTransfer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.transfers--; r.transfers == 0 && r.still != nil {
		close(r.still)
		r.still = nil
	}
}

// ended is why a transfer that waited for its turn does not begin.
func (r *Request) ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.over(), r.ctx.Err())
}

// over is why nothing may move any more. The caller holds mu.
func (r *Request) over() error {
	switch err := r.left(); {
	case err != nil:
		return err
	case r.gone:
		return r.from.link.reason()
	case r.given != nil:
		return context.Cause(r.given)
	}
	return nil
}

// left is why the caller does not wait any more. The caller holds mu.
func (r *Request) left() error {
	switch {
	case r.header.timeout != 0 && !time.Now().Before(r.deadline()):
		return context.DeadlineExceeded
	case r.canceled:
		return context.Canceled
	}
	return nil
}
