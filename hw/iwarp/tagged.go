package iwarp

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// beginWrite checks a segment of a peer's write.
func (r *receiver) beginWrite(h *wire.Header, n int) error {
	if n == 0 { // nothing is checked: the write may be a ready-to-receive
		r.farewell = r.farewell || h.TO == farewellTO
		return nil
	}
	if e := r.mem.remoteFault(h.TO, uint32(n), h.STag, hw.RemoteWrite); e != nil {
		return tagged(e)
	}
	r.one[0] = hw.SGE{Addr: h.TO, Len: uint32(n), LKey: h.STag}
	r.place = cursor{sgl: r.one[:], need: hw.RemoteWrite}
	r.dst = &r.place
	return nil
}

// finishWrite counts the octets that a write has placed, for immediate data that may
// follow the write.
func (r *receiver) finishWrite(h *wire.Header, n int) {
	if !r.writing {
		r.wrote = 0
	}
	r.wrote += uint64(n)
	r.writing = !h.Last
}

// failRead records that this end's oldest read fails with status.
func (r *receiver) failRead(status hw.Status) {
	r.verdict = verdict{read: r.link.reads.done.Load() + 1, status: status}
}

// beginReadResponse checks a segment against this end's oldest read.
func (r *receiver) beginReadResponse(h *wire.Header, n int) error {
	asked := r.link.reads.oldest()
	if asked == nil {
		return wire.ErrTaggedSTag
	}
	end := uint64(r.readGot) + uint64(n)
	switch {
	case asked.atomic, n > 0 && h.STag != asked.stag:
		r.failRead(hw.StatusBadResponse)
		return wire.ErrTaggedSTag
	case n > 0 && h.TO != uint64(r.readGot), end > uint64(asked.size), h.Last != (end == uint64(asked.size)):
		r.failRead(hw.StatusBadResponse)
		return wire.ErrTaggedBounds
	}
	if r.readGot == 0 {
		r.read = cursor{sgl: asked.sgl, need: hw.LocalWrite}
	}
	r.dst = &r.read
	return nil
}

func (r *receiver) finishReadResponse(h *wire.Header, n int) {
	r.readGot += uint32(n)
	if h.Last {
		r.readGot = 0
		r.read = cursor{}
		r.link.reads.retire()
		r.kickDue = true
	}
}

// storeFault is the error of a message whose memory at this end has a dead key.
func (r *receiver) storeFault(op wire.Opcode) error {
	r.own.Check()
	switch {
	case op == wire.OpWrite:
		return wire.ErrTaggedSTag
	case op == wire.OpReadResponse:
		r.failRead(hw.StatusLocalProtection)
	default:
		r.failed = hw.StatusLocalProtection
	}
	return wire.ErrRDMAPLocal
}

// readRequest enqueues the response to a peer's read.
func (r *receiver) readRequest(h *wire.Header, b []byte) error {
	if h.MSN != r.readMSN+1 {
		return wire.ErrMSN
	}
	r.readMSN++
	var req wire.ReadRequest
	if _, err := req.Parse(b); err != nil {
		return err
	}
	if req.Size > 0 {
		if e := r.mem.remoteFault(req.SrcTO, req.Size, req.SrcSTag, hw.RemoteRead); e != nil {
			return e
		}
	}
	ok := r.link.answers.push(response{
		kind: readResponse, stag: req.SinkSTag, to: req.SinkTO, size: req.Size, srcKey: req.SrcSTag, src: req.SrcTO, msn: h.MSN,
	})
	if !ok {
		return wire.ErrReadLimit
	}
	r.kickDue = true
	return nil
}

// atomicRequest executes a peer's atomic and enqueues the response.
func (r *receiver) atomicRequest(h *wire.Header, b []byte) error {
	if h.MSN != r.readMSN+1 {
		return wire.ErrMSN
	}
	r.readMSN++
	var a wire.AtomicRequest
	if _, err := a.Parse(b); err != nil {
		return err
	}
	if e := r.mem.remoteFault(a.TO, wordLen, a.STag, hw.RemoteAtomic); e != nil {
		return e
	}
	if r.link.answers.full() {
		return wire.ErrReadLimit
	}
	old, err := r.change(&a)
	if err != nil {
		return err
	}
	r.link.answers.push(response{kind: atomicResponse, stag: a.ID, value: old, msn: h.MSN})
	r.kickDue = true
	return nil
}

// change executes a peer's atomic on memory and returns the word's old value. The word's
// address must be aligned, which an offset into a zero-based window does not show.
func (r *receiver) change(a *wire.AtomicRequest) (old uint64, err error) {
	r.touch.Add(1)
	defer r.touch.Add(1)
	mem := r.mem.reach(a.TO, wordLen, a.STag, hw.RemoteAtomic)
	if mem == nil {
		return 0, wire.ErrSTag
	}
	word := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(word)%wordLen != 0 {
		return 0, wire.ErrMisaligned
	}
	return apply((*uint64)(word), a), nil
}

// apply executes an atomic on a word and returns the word's old value.
func apply(word *uint64, a *wire.AtomicRequest) uint64 {
	for {
		old := atomic.LoadUint64(word)
		if atomic.CompareAndSwapUint64(word, old, a.Apply(old)) {
			return old
		}
	}
}

// atomicResponse places the old value of this end's atomic.
func (r *receiver) atomicResponse(h *wire.Header, b []byte) error {
	if h.MSN != r.respMSN+1 {
		return wire.ErrMSN
	}
	r.respMSN++
	var a wire.AtomicResponse
	if _, err := a.Parse(b); err != nil {
		return err
	}
	asked := r.link.reads.oldest()
	if asked == nil {
		return wire.ErrCatastrophic
	}
	if !asked.atomic || a.ID != asked.stag {
		r.failRead(hw.StatusBadResponse)
		return wire.ErrCatastrophic
	}
	var value [wordLen]byte
	binary.NativeEndian.PutUint64(value[:], a.Original)
	r.read = cursor{sgl: asked.sgl, need: hw.LocalWrite}
	r.dst = &r.read
	if !r.store(value[:]) {
		return r.storeFault(wire.OpReadResponse)
	}
	r.read = cursor{}
	r.link.reads.retire()
	r.kickDue = true
	return nil
}
