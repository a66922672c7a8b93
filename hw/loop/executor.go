package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
)

// executor executes the requests of a pipe: it moves the bytes between source and
// target, and completes both. It does not break the connection: it returns a failure as
// a verdict, on which the pipe acts. The pipe's holder owns it.
type executor struct {
	// Owned by the holder. A plain request needs the end of src, the beginning of dst,
	// and nothing else.
	src         source
	dst         target
	bytes       int64 // how many the holder may still move before it hands over, or steps
	byWorker    bool  // the holder is a worker
	invalidated bool  // the first request has invalidated its key already
	failed      failed
	old         [wordLen]byte // the result of an atomic
	others      []soft.Access // scratch of quiesce

	// Immutable.
	canRead hw.Status // the status that reads and atomics fail with, or success
	pipe    *pipe     // for its token and its attention, between two chunks
}

// verdict is the outcome of an attempt to execute a request.
type verdict uint8

const (
	done      verdict = iota
	noReceive         // the target has no receive for it; nothing was done
	tooLong           // more bytes than a poster may still move; nothing was done
	failure           // completed with an error; the connection is to be broken
	cut               // the connection was broken in the middle; flush it
)

// failed is an operation that failed, with the receive that it took, if any.
type failed struct {
	op       hw.Op
	status   hw.Status
	received hw.Status // of the receive; success if it took none
}

// execute executes one request.
func (x *executor) execute(wr *hw.SendWR) verdict {
	if x.fast(wr) {
		return done
	}
	if x.full() {
		x.makeRoom()
	}
	switch wr.Op {
	case hw.OpSend, hw.OpSendInvalidate:
		return x.send(wr)
	case hw.OpWrite:
		return x.move(wr, hw.LocalRead, hw.RemoteWrite)
	case hw.OpRead:
		return x.move(wr, hw.LocalWrite, hw.RemoteRead)
	case hw.OpReadToRMR:
		return x.readToRMR(wr)
	case hw.OpWriteImm:
		return x.writeImm(wr)
	case hw.OpBind:
		return x.bind(wr)
	default:
		return x.atomic(wr)
	}
}

// sent completes a request that succeeded.
func (x *executor) sent(wr *hw.SendWR, n uint32) verdict {
	x.src.sent(wr, n)
	return done
}

// fail completes a request with an error.
func (x *executor) fail(wr *hw.SendWR, status hw.Status) verdict {
	x.src.wcs[x.src.n] = hw.WC{ID: wr.ID, Status: status, Op: wr.Op}
	x.src.n++
	x.failed = failed{op: wr.Op, status: status}
	return failure
}

// failBoth fails a request together with the receive that it takes.
func (x *executor) failBoth(wr *hw.SendWR, status, atReceiver hw.Status) verdict {
	x.dst.fail(atReceiver)
	v := x.fail(wr, status)
	x.failed.received = atReceiver
	return v
}

// affords reports whether the holder may move n bytes.
func (x *executor) affords(n uint64) bool { return int64(n) <= x.bytes || x.byWorker }

// full reports whether an operation might find no room for its completions.
func (x *executor) full() bool { return int(x.src.n) == len(x.src.wcs) || x.dst.n == len(x.dst.wcs) }

// emit hands out the completions gathered. It gives slots back first, because the owner
// may post as soon as it sees a completion.
func (x *executor) emit() {
	if x.src.head != x.src.queue.Freed.Load() || x.dst.head >= x.dst.freeAt {
		x.giveBack()
	}
	if n := x.dst.n; n > 0 {
		x.dst.n = 0
		x.dst.sink.Complete(x.dst.wcs[:n])
	}
	if n := x.src.n; n > 0 {
		x.src.n = 0
		x.src.sink.Complete(x.src.wcs[:n])
	}
}

// makeRoom makes room for the completions of an operation. The room itself is made when
// the first request comes that is not executed by the post of a plain one.
func (x *executor) makeRoom() {
	if x.src.wcs == nil {
		p := x.pipe
		x.src.wcs = make([]hw.WC, max(1, min(maxScratch, p.from.qp.Cfg.SendDepth)))
		depth := p.to.qp.Cfg.RecvDepth
		if x.dst.srq != nil {
			depth = maxScratch
		}
		x.dst.wcs = make([]hw.WC, max(1, min(maxScratch, depth)))
	}
	x.emit()
}

// giveBack gives back the slots before the heads of both queues.
func (x *executor) giveBack() {
	x.src.queue.Freed.Store(x.src.head)
	x.dst.freeAt = x.dst.queue.free(x.dst.head)
}
