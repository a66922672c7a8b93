package mem

import (
	"errors"

	"godat/hw"
	"godat/internal/memory"
)

// NewLoan makes a region to which callers lend their memory by [LMR.Lend], one after the other, up
// to size bytes at a time. So a call may have its argument read or written by the device without
// a registration for each call, which costs as much as copying some tens of kilobytes. Until Lend is
// called the region has a byte of its own. Segment and Remote name parts of what it was lent; Bytes
// has no meaning. Free ends it as any region.
//
// Errors are those of [PZ.Alloc]; it is NOT_IMPLEMENTED, which matches [errors.ErrUnsupported], if
// the device can't exchange the memory of a region, as verbs devices can't without pinning
// it. DAT has no such call.
func (p *PZ) NewLoan(size int, priv hw.Privileges) (*LMR, error) {
	const op = "mem.NewLoan"
	if err := p.begin(op, size, priv, nil); err != nil {
		return nil, err
	}
	defer p.domain.gate.RUnlock()
	l := &LMR{pz: p, buf: make([]byte, 1), size: size, priv: priv, loan: true}
	l.pin.Pin(&l.buf[0])
	if _, err := l.register(op); err != nil {
		return nil, err
	}
	if _, ok := l.mr.(hw.Remapper); !ok {
		return nil, errors.Join(hw.Errorf(op, hw.NotImplemented, hw.NoSubtype, "%w", errors.ErrUnsupported), l.free())
	}
	return l, nil
}

// Lend gives a region of [PZ.NewLoan] the caller's memory, in the place of what it was lent
// before, on which no operation is outstanding. The device holds a reference to buf, so
// the garbage collector keeps it; the caller keeps it from being unmapped, and does not use it as
// long as operations do. Any goroutine may call it. It takes a lock, and allocates nothing.
//
// buf has between 1 and the loan's size bytes, or the error is LENGTH_ERROR. A nil or freed
// region, and one that has ended with its adapter, is INVALID_HANDLE/LMR, and one that NewLoan
// has not made INVALID_STATE.
func (l *LMR) Lend(buf []byte) error {
	const op = "mem.LMR.Lend"
	if err := l.mayLend(op); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remap(op, buf)
}

// mayLend returns why a region can't be lent memory at all.
func (l *LMR) mayLend(op string) error {
	switch {
	case l == nil || l.pz == nil || !l.loan && l.dead.Load():
		return deadLMR(op)
	case !l.loan:
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the region has memory of its own; PZ.NewLoan makes one that is lent some")
	}
	return nil
}

// TakeBack takes back what was lent, for a caller that can't wait for the operations on
// it: they go on with instead. So instead has the length that was lent and the bytes that they are to
// read; it may be shorter if none is outstanding. When TakeBack returns the device neither
// reads nor changes the memory that was lent, also if it returns INVALID_HANDLE because the region
// was freed. It waits for an access in progress, and never for a peer. Errors are those of Lend.
func (l *LMR) TakeBack(instead []byte) error {
	const op = "mem.LMR.TakeBack"
	if err := l.mayLend(op); err != nil {
		return err
	}
	l.mu.Lock() // a Free that is under way has ended then
	defer l.mu.Unlock()
	err := l.remap(op, instead)
	if err == nil {
		l.mr.(hw.Remapper).Settle()
	}
	return err
}

// remap exchanges the memory. The caller holds mu.
func (l *LMR) remap(op string, buf []byte) error {
	switch {
	case l.ended:
		return deadLMR(op)
	case len(buf) > l.size:
		return hw.Errorf(op, hw.LengthError, hw.NoSubtype, "%d bytes; the loan takes %d", len(buf), l.size)
	}
	if err := l.mr.(hw.Remapper).Remap(buf); err != nil {
		return memory.Refused(op, hw.ResourceMemoryRegion, err)
	}
	return nil
}
