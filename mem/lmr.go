package mem

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"godat/hw"
	"godat/internal/memory"
	"godat/internal/yield"
)

// LMR is a local memory region: memory that work requests of endpoints of its zone
// may name, and that peers may access as far as its privileges allow. Its methods
// may be called from any goroutine. It answers to DAT_LMR_HANDLE.
//
// [PZ.Alloc] makes one of memory outside the Go heap, [PZ.Register] of the caller's. Once Free has
// returned, no byte of the memory changes.
type LMR struct {
	// Immutable once the region is made.
	pz      *PZ
	buf     []byte
	size    int // of buf, or of what a loan may be lent
	base    uint64
	context uint32
	remote  uint32
	priv    hw.Privileges
	from    *LMR     // the region whose memory it is; nil for none
	shares  bool     // it is one of the regions of an id
	shared  SharedID // that one
	unmap   bool
	loan    bool // its memory is what callers lend

	owner regionOwner // nil: the program alone

	dead  atomic.Bool // no post finds the region: set by the first end that is not refused, before it does anything else
	freed atomic.Bool // the program has freed the region

	mu    sync.Mutex // stop holds it from beginning to end
	ended bool       // the device does not use the memory any more
	given bool       // the memory was given back
	mr    hw.MR
	block *block         // the memory, if it is outside the Go heap
	pin   runtime.Pinner // pins the memory, if it is of the Go heap, or the caller's
}

// regionOwner is what a region belongs to, and what hears of its life: a [BufferPool] or
// [Regions].
type regionOwner interface {
	begun(l *LMR)       // the region is complete
	dying()             // no post finds the region from now on; may be called more than once
	ended(l *LMR) error // the device does not use the region any more
}

// Alloc makes a region of size bytes outside the Go heap: zeroed, and aligned to a
// page. The memory is the program's until it calls Free, whatever closes before: the
// adapter's close ends the region, so no operation and no peer reaches it any more, and
// leaves the memory as it is. It may block.
//
// A nil or closed zone is INVALID_HANDLE/PZ, whatever else is wrong, and a closed
// adapter INVALID_HANDLE/IA. A size below 1 or above the device's limit is
// LENGTH_ERROR. A nil or invalid option, or an unknown privilege, is
// INVALID_PARAMETER. Lack of memory, of regions, or of memory that may be locked is
// INSUFFICIENT_RESOURCES.
// It answers to dat_lmr_create.
func (p *PZ) Alloc(size int, priv hw.Privileges, opts ...Option) (*LMR, error) {
	const op = "mem.Alloc"
	cfg, wrong := configure(op, opts)
	if err := p.begin(op, size, priv, wrong); err != nil {
		return nil, err
	}
	defer p.domain.gate.RUnlock()
	return p.alloc(op, size, priv, cfg, nil)
}

// alloc is Alloc behind begin, for an owner.
func (p *PZ) alloc(op string, size int, priv hw.Privileges, cfg config, owner regionOwner) (*LMR, error) {
	b, err := newBlock(size, cfg)
	if err != nil && p.domain.giveBackRetired(0, 0) > 0 {
		b, err = newBlock(size, cfg)
	}
	if err != nil {
		p.zone.Unuse()
		return nil, hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemory, "%d bytes: %w", size, err)
	}
	p.domain.blocks.add(b, len(b.whole))
	l := &LMR{pz: p, buf: b.buf, priv: priv, block: b, unmap: cfg.unmap, owner: owner}
	return l.register(op)
}

// Register makes a region of the caller's memory, without copying it. The memory is
// pinned for the life of the region; until Free has returned the caller must not
// use it for anything but the region. Registering the same memory twice gives two
// regions. It may block. Errors are those of Alloc; a nil or empty buf is
// LENGTH_ERROR, and any option INVALID_PARAMETER.
//
// Memory that can't be read or written, as priv lets the device do, is INVALID_PARAMETER,
// which matches [syscall.EFAULT]. So on Linux; another system does not tell, and an access
// to such memory by a post or a peer is a fault there, which ends the process. So it is
// everywhere with memory that is unmapped, protected, or the end of a file that is made
// shorter, while the region lives: the program sees to it that the memory stays.
// It answers to dat_lmr_create.
func (p *PZ) Register(buf []byte, priv hw.Privileges, opts ...Option) (*LMR, error) {
	const op = "mem.Register"
	var wrong error
	if len(opts) > 0 {
		wrong = hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "options are for memory that Alloc makes")
	}
	if err := p.begin(op, len(buf), priv, wrong); err != nil {
		return nil, err
	}
	defer p.domain.gate.RUnlock()
	return p.register(op, buf, priv, nil)
}

// register is Register behind begin, for an owner.
func (p *PZ) register(op string, buf []byte, priv hw.Privileges, owner regionOwner) (*LMR, error) {
	l := &LMR{pz: p, buf: buf[:len(buf):len(buf)], priv: priv, owner: owner}
	l.pin.Pin(unsafe.SliceData(l.buf))
	return l.register(op)
}

// begin makes the checks that all ways to make a region share: the zone first, then
// wrong, which is the error that the caller has found, then the rest. If it returns
// nil the zone counts one more use, for the region, and the caller holds the gate
// shared.
func (p *PZ) begin(op string, size int, priv hw.Privileges, wrong error) error {
	if p == nil {
		return memory.ClosedZone(op)
	}
	d := p.domain
	if err := d.enter(op); err != nil {
		return err
	}
	if err := p.zone.Use(op); err != nil {
		d.gate.RUnlock()
		return err
	}
	switch limit := d.attr.MaxMR; {
	case wrong != nil:
	case size < 1:
		wrong = hw.Errorf(op, hw.LengthError, hw.NoSubtype, "a region of %d bytes; it needs 1 at least", size)
	case limit > 0 && uint64(size) > limit:
		wrong = hw.Errorf(op, hw.LengthError, hw.NoSubtype, "%d bytes, and the device takes %d", size, limit)
	case priv&^(hw.AllPrivileges|hw.RemoteAtomic) != 0:
		wrong = hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "privileges %v", priv)
	}
	if wrong != nil {
		p.zone.Unuse()
		d.gate.RUnlock()
	}
	return wrong
}

// register enters the region in the device and in the table of contexts. If it
// fails, nothing of the region is left.
func (l *LMR) register(op string) (*LMR, error) {
	d := l.pz.domain
	mr, err := l.registerWithDevice(op)
	if err != nil {
		l.pz.zone.Unuse()
		l.unpin()
		return nil, errors.Join(err, l.giveBack(l.unmap || l.owns()))
	}
	l.mr = mr
	if l.priv&^(hw.LocalRead|hw.LocalWrite) != 0 {
		l.remote = mr.RKey()
	}
	l.size = max(l.size, len(l.buf))
	l.base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(l.buf))))
	anchored.add(l, 0)
	d.lmrs.add(l, len(l.buf))
	_, _, err = d.table.Insert(func(key uint32) memory.Region {
		l.context = key
		return memory.Region{Base: l.base, Size: uint64(l.size), Zone: l.pz.zone, LKey: mr.LKey(), Priv: l.priv, MR: mr}
	})
	if err != nil {
		l.unmap = l.unmap || l.owns() // no program has seen the memory
		err = hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemoryRegion, "%w", err)
		return nil, errors.Join(err, l.free())
	}
	if l.owner != nil {
		l.owner.begun(l) // last, since others may end the region from then on
	}
	return l, nil
}

// Free ends the region, and gives back the memory if [PZ.Alloc] made it: the program must
// not use a slice of it any more, which may fault. That is for the program to see to, as
// with every memory that it frees by itself. From the moment Free is called no post finds
// the region. When it returns, nothing reads or writes the memory any more, and memory of
// the caller belongs to the caller alone again. It waits for a transfer in progress, for a
// chunk at most, and never for a peer. Work that had not begun fails with
// LOCAL_PROTECTION, a peer's access with REMOTE_ACCESS; both break connections.
//
// The close of an adapter, and of a connection of package runtime, ends the regions that
// belong to it and leaves their memory to the program. Free gives back the memory of such
// a region, too.
//
// If a window is bound to the region the error is INVALID_STATE/LMR_IN_USE, and
// nothing happens. Freeing a freed region does nothing, except that it waits for a
// Free that is under way. If the device can't end the region, Free returns the
// device's error, the memory stays registered and is not reused, and the program
// may call Free again.
// It answers to dat_lmr_free.
func (l *LMR) Free() error {
	if l == nil || l.pz == nil {
		return deadLMR("mem.LMR.Free")
	}
	return l.free()
}

func (l *LMR) free() error { return l.stop(true) }

// end ends the region on the device. The memory stays as it is.
func (l *LMR) end() error { return l.stop(false) }

// stop ends the region on the device, unless that was done before. free says whether the
// program gives the memory back.
func (l *LMR) stop(free bool) error {
	const op = "mem.LMR.Free"
	if !l.dead.Load() && l.mr.Bound() {
		return hw.Errorf(op, hw.InvalidState, hw.StateLMRInUse, "a window is bound to the region")
	}
	if free {
		l.freed.Store(true)
	}
	if l.dead.CompareAndSwap(false, true) {
		// Once only: a later call might remove another region that got the context.
		l.pz.domain.table.Remove(l.context)
	}
	if l.owner != nil {
		l.owner.dying()
	}
	yield.Point()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.ended
	if !before {
		// A post that found the region before it left the table is with the device or
		// will be. Deregister ends it there: it waits for a transfer in progress, and
		// work that has not begun fails.
		if err := l.mr.Deregister(); err != nil {
			return memory.Refused(op, hw.ResourceMemoryRegion, err)
		}
		l.ended = true
		l.unpin()
	}
	var err error
	if l.freed.Load() { // now, or by a call that failed
		// Behind the domain's close nothing would unmap a range that is retired.
		err = l.giveBack(l.unmap || before)
	}
	if !before {
		err = errors.Join(err, l.unlist())
	}
	return err
}

// unlist takes a region that has ended out of the books. That is the last step: a
// Domain.Close that no longer sees a freed region must find its memory given back.
func (l *LMR) unlist() (err error) {
	if l.owner != nil {
		err = l.owner.ended(l)
	}
	l.pz.domain.lmrs.drop(l, len(l.buf))
	l.pz.zone.Unuse()
	anchored.drop(l, 0)
	return err
}

// owns reports whether no other region has the memory.
func (l *LMR) owns() bool { return l.from == nil && !l.shares }

// unpin lets go of memory that the device does not use any more, and that is not the
// region's own.
func (l *LMR) unpin() {
	if l.shares {
		leave(l.shared)
	}
	if l.block == nil {
		l.pin.Unpin()
	}
}

// giveBack gives up memory of the region's own, once. The device does not use it any more.
func (l *LMR) giveBack(unmap bool) error {
	switch {
	case l.given || l.block == nil:
		return nil
	case l.block.users.Add(-1) > 0: // another region uses the block, too
		l.given = true
		return nil
	}
	l.given = true
	if unmap {
		return l.pz.domain.unmap(l.block)
	}
	return l.pz.domain.retire(l.block)
}

// Bytes returns the region's memory; nil for a region that is nil or freed. A slice
// taken before must not be used after Free; [WithUnmapOnFree] says what happens to
// one that is.
func (l *LMR) Bytes() []byte {
	if l == nil || l.freed.Load() {
		return nil
	}
	return l.buf
}

// Context returns the name of the region in local segments. For a nil region it is
// 0, which names none.
func (l *LMR) Context() uint32 {
	if l == nil {
		return 0
	}
	return l.context
}

// RemoteContext returns the name of the region for peers; 0 for a nil region, and
// for one without a remote privilege.
func (l *LMR) RemoteContext() uint32 {
	if l == nil {
		return 0
	}
	return l.remote
}

// PZ returns the zone of the region; nil for a nil region.
func (l *LMR) PZ() *PZ {
	if l == nil {
		return nil
	}
	return l.pz
}

// Segment names n bytes of the region from offset off on. For a range that is not
// within the region, and for a region that is nil or freed, it returns a segment
// that every post refuses, so that the post returns the error.
func (l *LMR) Segment(off, n int) Segment {
	if l != nil && n > 0 && off >= 0 && off <= l.size-n && uint64(n) < math.MaxUint32 {
		return Segment{Addr: l.base + uint64(off), Len: uint32(n), Context: l.context}
	}
	return l.oddSegment(off, n)
}

// oddSegment is Segment for a range that is empty, very long or out of bounds. It
// keeps an offset and a length out of bounds if they can be represented, so that
// the error of the post can name them.
func (l *LMR) oddSegment(off, n int) Segment {
	addr, size := l.span(off, n)
	if size == math.MaxUint32 && l != nil && n >= 0 && uint64(n) < math.MaxUint32 {
		addr, size = l.base+uint64(off), uint32(n)
	}
	return Segment{Addr: addr, Len: size, Context: l.Context()}
}

// Remote names n bytes of the region from offset off on for a peer, which may
// access them as far as the region's privileges allow. For a range that is not
// within the region, and for a nil region, it returns a segment that every RDMA
// post refuses with LENGTH_ERROR, and that the region's device refuses to access.
func (l *LMR) Remote(off, n int) RemoteSegment {
	addr, size := l.span(off, n)
	return RemoteSegment{Addr: addr, Len: size, Context: l.RemoteContext()}
}

// span converts a range to an address and a length. A range out of bounds becomes
// one that no region has: the last byte of the address space and beyond.
func (l *LMR) span(off, n int) (addr uint64, size uint32) {
	if n == 0 {
		return 0, 0
	}
	if l == nil || off < 0 || n < 0 || off > l.size-n || uint64(n) > math.MaxUint32 {
		return math.MaxUint64, math.MaxUint32
	}
	return l.base + uint64(off), uint32(n)
}

func deadLMR(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "the region is nil or freed")
}
