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

// LMR is a local memory region: memory that work requests of its zone's
// endpoints may name, and that peers may reach as far as its privileges say. Its
// methods may be called from any goroutine. It answers to DAT_LMR_HANDLE.
type LMR struct {
	// Immutable once made.
	pz      *PZ
	buf     []byte
	base    uint64
	context uint32
	remote  uint32
	priv    hw.Privileges
	kind    MemType
	from    *LMR     // of MemLMR
	shared  SharedID // of MemSharedVirtual
	unmap   bool

	dead atomic.Bool // set by the Free that wins, before anything else

	mu    sync.Mutex // held by Free from beginning to end
	freed bool       // written under mu and memory
	mr    hw.MR
	block *block         // memory of ours
	pin   runtime.Pinner // memory of the caller's

	memory sync.RWMutex // held alone while the memory is given back, and shared by touch
}

// Alloc makes a region of size bytes from outside the Go heap: zeroed, aligned
// to a page, mapped until the region is freed and, unless [WithUnmapOnFree] is
// given, for some time after that. It may block.
//
// A size below 1 or above the device's limit is LENGTH_ERROR, an unknown
// privilege or option INVALID_PARAMETER, as is a nil option, a nil or closed zone
// INVALID_HANDLE/PZ whatever else is wrong, a closed adapter INVALID_HANDLE/IA, and want
// of memory, of regions or of memory that may be locked INSUFFICIENT_RESOURCES.
// It answers to dat_lmr_create.
func (p *PZ) Alloc(size int, priv hw.Privileges, opts ...Option) (*LMR, error) {
	const op = "mem.Alloc"
	cfg, wrong := configure(op, opts)
	if err := p.begin(op, size, priv, wrong); err != nil {
		return nil, err
	}
	defer p.domain.gate.RUnlock()
	b, err := newBlock(size, cfg)
	if err != nil && p.domain.giveBackRetired(0, 0) > 0 {
		b, err = newBlock(size, cfg)
	}
	if err != nil {
		p.zone.Unuse()
		return nil, hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemory, "%d bytes: %w", size, err)
	}
	p.domain.addBlock(b)
	l := &LMR{pz: p, buf: b.buf, priv: priv, block: b, unmap: cfg.unmap}
	return l.register(op)
}

// Register makes a region of the caller's memory, without copying it. The memory
// is pinned for the life of the region and must not be used again before Free
// has returned, except as the region. Registering the same memory twice gives
// two regions. It may block. Errors are those of Alloc, for a nil or empty buf
// too. It answers to dat_lmr_create.
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
	l := &LMR{pz: p, buf: buf[:len(buf):len(buf)], priv: priv}
	l.pin.Pin(unsafe.SliceData(l.buf))
	return l.register(op)
}

// begin checks what all ways to make a region have in common: the zone first, then
// what the caller has found wrong, then the rest. With a nil error the zone has one
// more use, which is the region's, and the gate is held shared.
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
		wrong = hw.Errorf(op, hw.LengthError, hw.NoSubtype, "a region of %d bytes", size)
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

// register makes the region known to the device and to the table of contexts.
// If it fails, nothing of the region is left.
func (l *LMR) register(op string) (*LMR, error) {
	d := l.pz.domain
	mr, err := d.dev.Register(l.pz.zone.Device(), l.buf, l.priv)
	if err != nil {
		l.pz.zone.Unuse()
		return nil, errors.Join(lockedMemory(op, len(l.buf), err), l.giveBack(l.unmap || l.kind == MemVirtual))
	}
	l.mr = mr
	if l.priv&^(hw.LocalRead|hw.LocalWrite) != 0 {
		l.remote = mr.RKey()
	}
	l.base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(l.buf))))
	keep(l)
	d.addRegion(l)
	_, _, err = d.table.Insert(func(key uint32) memory.Region {
		l.context = key
		return memory.Region{Base: l.base, Size: uint64(len(l.buf)), Zone: l.pz.zone, LKey: mr.LKey(), Priv: l.priv, MR: mr}
	})
	if err != nil {
		l.unmap = l.unmap || l.kind == MemVirtual // nobody has seen the memory
		err = hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemoryRegion, "%w", err)
		return nil, errors.Join(err, l.free())
	}
	return l, nil
}

// Free ends the region. From the moment it is called no post finds the region;
// when it returns, no byte of the memory changes any more and none is read, and
// caller's memory is the caller's again. It waits for a transfer in progress, a
// chunk at most, and never for a peer. Work that had not begun fails with
// LOCAL_PROTECTION, a peer's access with REMOTE_ACCESS; both break connections.
//
// A region that a window is bound to is INVALID_STATE/LMR_IN_USE, and nothing
// happens. Freeing it again does nothing, and returns when the first call has. If the
// device can't end the region, Free says so, the memory stays registered and
// kept from reuse, and Free may be tried again. It answers to dat_lmr_free.
func (l *LMR) Free() error {
	if l == nil {
		return deadLMR("mem.LMR.Free")
	}
	return l.free()
}

func (l *LMR) free() error {
	const op = "mem.LMR.Free"
	if l.isBound() {
		return hw.Errorf(op, hw.InvalidState, hw.StateLMRInUse, "a window is bound to the region")
	}
	if l.dead.CompareAndSwap(false, true) {
		// Once only: the context may be another region's by the next time.
		l.pz.domain.table.Remove(l.context)
	}
	yield.Point()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.freed {
		return nil
	}
	// A post that found the region before it left the table is in the device's
	// hands or will be: Deregister is what it meets there.
	if err := l.mr.Deregister(); err != nil {
		return memory.Refused(op, hw.ResourceMemoryRegion, err)
	}
	l.memory.Lock()
	l.freed = true
	err := l.giveBack(l.unmap)
	l.memory.Unlock()
	// Last, so that a Domain.Close that no longer sees the region finds its
	// memory given back.
	l.pz.domain.dropRegion(l)
	l.pz.zone.Unuse()
	unkeep(l)
	return err
}

// isBound reports whether the device says that a window is bound to the region.
func (l *LMR) isBound() bool { return !l.dead.Load() && l.mr.Bound() }

// touch runs f if the region has its memory still, and keeps it until f returns: for
// looks at the memory that the program did not ask for, so that it need not keep them
// apart from Free.
func (l *LMR) touch(f func()) {
	l.memory.RLock()
	defer l.memory.RUnlock()
	if !l.freed {
		yield.Point()
		f()
	}
}

// giveBack ends the hold on the memory, which the device no longer knows.
func (l *LMR) giveBack(unmap bool) error {
	if l.kind == MemSharedVirtual {
		leave(l.shared)
	}
	switch {
	case l.block == nil:
		l.pin.Unpin()
		return nil
	case l.block.users.Add(-1) > 0: // another region's too
		return nil
	case unmap:
		return l.pz.domain.unmap(l.block)
	default:
		return l.pz.domain.retire(l.block)
	}
}

// Bytes is the region's memory; nil when it is nil or freed. A slice taken
// before must not be used after Free; how that ends is told at [WithUnmapOnFree].
func (l *LMR) Bytes() []byte {
	if l == nil || l.dead.Load() {
		return nil
	}
	return l.buf
}

// Context names the region in local segments; 0, which names none, for a nil one.
func (l *LMR) Context() uint32 {
	if l == nil {
		return 0
	}
	return l.context
}

// RemoteContext names the region to peers; 0 for a nil one, and for one made
// without a remote privilege.
func (l *LMR) RemoteContext() uint32 {
	if l == nil {
		return 0
	}
	return l.remote
}

// PZ is the zone the region is in; nil for a nil region.
func (l *LMR) PZ() *PZ {
	if l == nil {
		return nil
	}
	return l.pz
}

// Segment names n bytes of the region from offset off on. A range that is not
// within the region gives a segment that every post refuses, as does one of a
// nil or freed region: the error appears where it can be returned.
func (l *LMR) Segment(off, n int) Segment {
	if l != nil && n > 0 && off >= 0 && off <= len(l.buf)-n && uint64(n) < math.MaxUint32 {
		return Segment{Addr: l.base + uint64(off), Len: uint32(n), Context: l.context}
	}
	return l.oddSegment(off, n)
}

// oddSegment is Segment for what is empty, very long or out of bounds. An offset and
// a length out of bounds stay as they were given where there is a word for them, so
// that the refusal can say them.
func (l *LMR) oddSegment(off, n int) Segment {
	addr, size := l.span(off, n)
	if size == math.MaxUint32 && l != nil && n >= 0 && uint64(n) < math.MaxUint32 {
		addr, size = l.base+uint64(off), uint32(n)
	}
	return Segment{Addr: addr, Len: size, Context: l.Context()}
}

// Remote names n bytes of the region from offset off on to a peer, which may use
// it as far as the region's privileges go. A range that is not within the region
// gives one that every post of RDMA refuses with LENGTH_ERROR, as does one of a nil
// region, and that the region's device refuses to touch.
func (l *LMR) Remote(off, n int) RemoteSegment {
	addr, size := l.span(off, n)
	return RemoteSegment{Addr: addr, Len: size, Context: l.RemoteContext()}
}

// span turns a range into an address and a length. One out of bounds becomes one
// that no region has: the last byte of the address space and beyond.
func (l *LMR) span(off, n int) (addr uint64, size uint32) {
	if n == 0 {
		return 0, 0
	}
	if l == nil || off < 0 || n < 0 || off > len(l.buf)-n || uint64(n) > math.MaxUint32 {
		return math.MaxUint64, math.MaxUint32
	}
	return l.base + uint64(off), uint32(n)
}

func deadLMR(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "the region is nil or freed")
}
