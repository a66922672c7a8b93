package mem

import (
	"errors"

	"godat/hw"
	"godat/internal/door"
	"godat/internal/memory"
)

// NewLoan makes a region to which callers lend their memory, one after the other, up to
// size bytes at a time. So a call may have its argument read or written by the device
// without a registration for each call. Until Lend is called it has a byte of its own.
// Segment and Remote name parts of what it was lent; Bytes has no meaning. It matches
// errors.ErrUnsupported if the device can't exchange the memory of a region. Free ends it
// as any region.
func (p *PZ) NewLoan(_ door.Key, size int, priv hw.Privileges) (*LMR, error) {
	const op = "mem.NewLoan"
	if err := p.begin(op, size, priv, nil); err != nil {
		return nil, err
	}
	defer p.domain.gate.RUnlock()
	l := &LMR{pz: p, buf: make([]byte, 1), size: size, priv: priv}
	l.pin.Pin(&l.buf[0])
	if _, err := l.register(op); err != nil {
		return nil, err
	}
	if _, ok := l.mr.(hw.Remapper); !ok {
		return nil, errors.Join(hw.Errorf(op, hw.NotImplemented, hw.NoSubtype, "%w", errors.ErrUnsupported), l.free())
	}
	return l, nil
}

// Lend gives a region of NewLoan the caller's memory, in the place of what it was lent
// before, on which no operation is outstanding. The device holds a reference to buf, so
// the garbage collector keeps it; the caller keeps it from being unmapped. buf has
// between 1 and the loan's size bytes.
func (l *LMR) Lend(_ door.Key, buf []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remap(buf)
}

// TakeBack takes back what was lent. Operations outstanding go on with instead, which has
// the same length, and the bytes that they read. When TakeBack returns the device neither
// reads nor changes the memory that was lent, also if the region was freed.
func (l *LMR) TakeBack(_ door.Key, instead []byte) error {
	l.mu.Lock() // a Free that is under way has ended then
	defer l.mu.Unlock()
	err := l.remap(instead)
	if err == nil {
		l.mr.(hw.Remapper).Settle()
	}
	return err
}

// remap exchanges the memory. The caller holds mu.
func (l *LMR) remap(buf []byte) error {
	const op = "mem.LMR.Lend"
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
