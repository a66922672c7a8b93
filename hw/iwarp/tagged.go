package iwarp

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// beginWrite finds where a peer's write goes.
func (l *life) beginWrite(h *wire.Header, n int) error {
	x := &l.rx
	if n == 0 { // nothing is checked then: it may be the ready-to-receive
		x.farewell = x.farewell || h.TO == farewellTO
		return nil
	}
	if e := l.remoteFault(h.TO, uint32(n), h.STag, hw.RemoteWrite); e != nil {
		return tagged(e)
	}
	x.one[0] = hw.SGE{Addr: h.TO, Len: uint32(n), LKey: h.STag}
	x.place = cursor{sgl: x.one[:], need: hw.RemoteWrite}
	x.dst = &x.place
	return nil
}

// finishWrite counts what a write has placed: immediate data that follows it
// completes with that length.
func (l *life) finishWrite(h *wire.Header, n int) {
	x := &l.rx
	if !x.writing {
		x.wrote = 0
	}
	x.wrote += uint64(n)
	x.writing = !h.Last
}

// oldest is our oldest outstanding read, or nil.
func (l *life) oldest() *read {
	q := &l.reads
	done := q.done.Load()
	if done == q.pushed.Load() {
		return nil
	}
	return &q.slots[done&q.mask]
}

// misread notes that our oldest read fails with status.
func (l *life) misread(status hw.Status) {
	l.rx.verdict = verdict{read: l.reads.done.Load() + 1, status: status}
}

// beginReadResponse holds a segment against what was asked for.
func (l *life) beginReadResponse(h *wire.Header, n int) error {
	x := &l.rx
	r := l.oldest()
	if r == nil {
		return wire.ErrTaggedSTag
	}
	end := uint64(x.readGot) + uint64(n)
	switch {
	case r.atomic, n > 0 && h.STag != r.stag:
		l.misread(hw.StatusBadResponse)
		return wire.ErrTaggedSTag
	case n > 0 && h.TO != uint64(x.readGot), end > uint64(r.size), h.Last != (end == uint64(r.size)):
		l.misread(hw.StatusBadResponse)
		return wire.ErrTaggedBounds
	}
	if x.readGot == 0 {
		x.read = cursor{sgl: r.sgl, need: hw.LocalWrite}
	}
	x.dst = &x.read
	return nil
}

func (l *life) finishReadResponse(h *wire.Header, n int) {
	x := &l.rx
	x.readGot += uint32(n)
	if h.Last {
		x.readGot = 0
		x.read = cursor{}
		l.reads.done.Add(1)
		x.kick = true
	}
}

// storeFault says what it means that the memory at hand is gone.
func (l *life) storeFault(op wire.Opcode) error {
	switch {
	case op == wire.OpWrite:
		return wire.ErrTaggedSTag
	case op == wire.OpReadResponse:
		l.misread(hw.StatusLocalProtection)
	default:
		l.rx.failed = hw.StatusLocalProtection
	}
	return wire.ErrRDMAPLocal
}

// readRequest queues the response to a peer's read.
func (l *life) readRequest(h *wire.Header, b []byte) error {
	x := &l.rx
	if h.MSN != x.readMSN+1 {
		return wire.ErrMSN
	}
	x.readMSN++
	var r wire.ReadRequest
	if _, err := r.Parse(b); err != nil {
		return err
	}
	if r.Size > 0 {
		if e := l.remoteFault(r.SrcTO, r.Size, r.SrcSTag, hw.RemoteRead); e != nil {
			return e
		}
	}
	ok := l.answers.push(response{
		kind: readResponse, stag: r.SinkSTag, to: r.SinkTO, size: r.Size, srcKey: r.SrcSTag, src: r.SrcTO, msn: h.MSN,
	})
	if !ok {
		return wire.ErrReadLimit
	}
	x.kick = true
	return nil
}

// atomicRequest does a peer's atomic and queues the response.
func (l *life) atomicRequest(h *wire.Header, b []byte) error {
	x := &l.rx
	if h.MSN != x.readMSN+1 {
		return wire.ErrMSN
	}
	x.readMSN++
	var a wire.AtomicRequest
	if _, err := a.Parse(b); err != nil {
		return err
	}
	if e := l.remoteFault(a.TO, wordLen, a.STag, hw.RemoteAtomic); e != nil {
		return e
	}
	if l.answers.pushed.Load()-l.answers.freed.Load() >= l.answers.limit {
		return wire.ErrReadLimit
	}
	old, err := l.change(&a)
	if err != nil {
		return err
	}
	l.answers.push(response{kind: atomicResponse, stag: a.ID, value: old, msn: h.MSN})
	x.kick = true
	return nil
}

// change does a peer's atomic and returns what the word was. The word's address is
// what must be aligned: an offset into a zero-based window says nothing of it.
func (l *life) change(a *wire.AtomicRequest) (old uint64, err error) {
	l.touch.Add(1)
	defer l.touch.Add(1)
	mem := l.reach(a.TO, wordLen, a.STag, hw.RemoteAtomic)
	if mem == nil {
		return 0, wire.ErrSTag
	}
	word := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(word)%wordLen != 0 {
		return 0, wire.ErrMisaligned
	}
	return apply((*uint64)(word), a), nil
}

// apply does an atomic and returns what the word was.
func apply(word *uint64, a *wire.AtomicRequest) uint64 {
	for {
		old := atomic.LoadUint64(word)
		if atomic.CompareAndSwapUint64(word, old, a.Apply(old)) {
			return old
		}
	}
}

// atomicResponse puts the old value where the atomic wanted it.
func (l *life) atomicResponse(h *wire.Header, b []byte) error {
	x := &l.rx
	if h.MSN != x.respMSN+1 {
		return wire.ErrMSN
	}
	x.respMSN++
	var a wire.AtomicResponse
	if _, err := a.Parse(b); err != nil {
		return err
	}
	r := l.oldest()
	if r == nil {
		return wire.ErrCatastrophic
	}
	if !r.atomic || a.ID != r.stag {
		l.misread(hw.StatusBadResponse)
		return wire.ErrCatastrophic
	}
	var value [wordLen]byte
	binary.NativeEndian.PutUint64(value[:], a.Original)
	x.read = cursor{sgl: r.sgl, need: hw.LocalWrite}
	x.dst = &x.read
	if !l.store(value[:]) {
		return l.storeFault(wire.OpReadResponse)
	}
	x.read = cursor{}
	l.reads.done.Add(1)
	x.kick = true
	return nil
}
