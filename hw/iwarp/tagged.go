package iwarp

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// beginWrite checks a segment of a peer's write.
func (p *placer) beginWrite(h *wire.Header, n int) error {
	if n == 0 { // nothing is checked: the write may be a ready-to-receive
		p.farewell = p.farewell || h.TO == farewellTO
		return nil
	}
	if e := remoteFault(&p.mem, h.TO, uint32(n), h.STag, hw.RemoteWrite); e != nil {
		return tagged(e)
	}
	p.one[0] = hw.SGE{Addr: h.TO, Len: uint32(n), LKey: h.STag}
	p.remote = soft.Cursor{SGL: p.one[:], Need: hw.RemoteWrite}
	p.dst = &p.remote
	return nil
}

// finishWrite counts the octets that a write has placed, for immediate data that may
// follow the write.
func (p *placer) finishWrite(h *wire.Header, n int) {
	if !p.writing {
		p.wrote = 0
	}
	p.wrote += uint64(n)
	p.writing = !h.Last
}

// failRead records that this end's oldest read fails with status.
func (p *placer) failRead(status hw.Status) {
	p.verdict = verdict{read: p.link.reads.done.Load() + 1, status: status}
}

// beginReadResponse checks a segment against this end's oldest read.
func (p *placer) beginReadResponse(h *wire.Header, n int) error {
	asked := p.link.reads.oldest()
	if asked == nil {
		return wire.ErrTaggedSTag
	}
	end := uint64(p.readGot) + uint64(n)
	switch {
	case asked.atomic, n > 0 && h.STag != asked.stag:
		p.failRead(hw.StatusBadResponse)
		return wire.ErrTaggedSTag
	case n > 0 && h.TO != uint64(p.readGot), end > uint64(asked.size), h.Last != (end == uint64(asked.size)):
		p.failRead(hw.StatusBadResponse)
		return wire.ErrTaggedBounds
	}
	if p.readGot == 0 {
		p.read = soft.Cursor{SGL: asked.sgl, Need: hw.LocalWrite}
	}
	p.dst = &p.read
	return nil
}

func (p *placer) finishReadResponse(h *wire.Header, n int) {
	p.readGot += uint32(n)
	if h.Last {
		p.readGot = 0
		p.read = soft.Cursor{}
		p.link.reads.retire()
		p.kickDue = true
	}
}

// storeFault is the error of a message whose memory at this end has a dead key.
func (p *placer) storeFault(op wire.Opcode) error {
	p.own.Check()
	switch {
	case op == wire.OpWrite:
		return wire.ErrTaggedSTag
	case op == wire.OpReadResponse:
		p.failRead(hw.StatusLocalProtection)
	default:
		p.failed = hw.StatusLocalProtection
	}
	return wire.ErrRDMAPLocal
}

// readRequest enqueues the response to a peer's read.
func (p *placer) readRequest(h *wire.Header, b []byte) error {
	if h.MSN != p.readMSN+1 {
		return wire.ErrMSN
	}
	p.readMSN++
	var req wire.ReadRequest
	if _, err := req.Parse(b); err != nil {
		return err
	}
	if req.Size > 0 {
		if e := remoteFault(&p.mem, req.SrcTO, req.Size, req.SrcSTag, hw.RemoteRead); e != nil {
			return e
		}
	}
	if p.link.answers.full() {
		return wire.ErrReadLimit
	}
	p.probed = req.Size == 0
	p.link.answers.push(response{
		kind: readResponse, stag: req.SinkSTag, to: req.SinkTO, size: req.Size, srcKey: req.SrcSTag, src: req.SrcTO, msn: h.MSN,
	})
	p.kickDue = true
	return nil
}

// atomicRequest executes a peer's atomic and enqueues the response.
func (p *placer) atomicRequest(h *wire.Header, b []byte) error {
	if h.MSN != p.readMSN+1 {
		return wire.ErrMSN
	}
	p.readMSN++
	var a wire.AtomicRequest
	if _, err := a.Parse(b); err != nil {
		return err
	}
	if e := remoteFault(&p.mem, a.TO, wordLen, a.STag, hw.RemoteAtomic); e != nil {
		return e
	}
	if p.link.answers.full() {
		return wire.ErrReadLimit
	}
	old, err := p.change(&a)
	if err != nil {
		return err
	}
	p.link.answers.push(response{kind: atomicResponse, stag: a.ID, value: old, msn: h.MSN})
	p.kickDue = true
	return nil
}

// change executes a peer's atomic on memory and returns the word's old value. The word's
// address must be aligned, which an offset into a zero-based window does not show.
func (p *placer) change(a *wire.AtomicRequest) (old uint64, err error) {
	p.beginTouch()
	defer p.endTouch()
	mem := p.mem.Bytes(a.TO, wordLen, a.STag, hw.RemoteAtomic)
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
func (p *placer) atomicResponse(h *wire.Header, b []byte) error {
	if h.MSN != p.respMSN+1 {
		return wire.ErrMSN
	}
	p.respMSN++
	var a wire.AtomicResponse
	if _, err := a.Parse(b); err != nil {
		return err
	}
	asked := p.link.reads.oldest()
	if asked == nil {
		return wire.ErrCatastrophic
	}
	if !asked.atomic || a.ID != asked.stag {
		p.failRead(hw.StatusBadResponse)
		return wire.ErrCatastrophic
	}
	var value [wordLen]byte
	binary.NativeEndian.PutUint64(value[:], a.Original)
	p.read = soft.Cursor{SGL: asked.sgl, Need: hw.LocalWrite}
	p.dst = &p.read
	if !p.store(value[:]) {
		return p.storeFault(wire.OpReadResponse)
	}
	p.read = soft.Cursor{}
	p.link.reads.retire()
	p.kickDue = true
	return nil
}
