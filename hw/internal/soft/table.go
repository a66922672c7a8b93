package soft

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"godat/hw"
	"godat/internal/keys"
	"godat/internal/yield"
)

// Region describes what a key stands for: the memory, the queue pairs that may reach
// it, and the privileges. The zero Region is that of a dead key.
type Region struct {
	Base unsafe.Pointer
	Size uint64
	Addr uint64 // of the first byte, as requests name it
	Zone *Zone  // or a queue pair's scope; nil before a window is bound
	Priv hw.Privileges

	window *Window // the window that the key belongs to; nil for a region's own key
}

// Table maps keys to regions. Any goroutine may look a key up at any time; changes
// exclude each other by a lock. A bind changes the table twice and must not allocate,
// so the table reuses its places. A place may change while a goroutine reads it; the
// reader finds out from the place's word.
type Table struct {
	slots keys.Slots[place]

	mu    sync.Mutex // guards the rest, but for slots.Find
	spare []*place   // places of dead keys, to be used again
}

// place holds the region of a key.
//
// The low half of word is the key, 0 if there is none; the high half counts the
// changes. A change sets word to a count without a key first, and to a higher count
// with the key last, so no value of word returns. A reader that finds the same word
// before and after has read fields that belong together.
//
// All fields are accessed by the functions of sync/atomic and not by its types'
// methods, which are inlined and leave inline marks behind: these are instructions.
type place struct {
	_      [0]atomic.Uint64 // aligns the place to 8 bytes on any machine
	word   uint64
	size   uint64
	addr   uint64
	base   unsafe.Pointer
	zone   unsafe.Pointer
	window unsafe.Pointer
	priv   uint32
	_      [12]byte // fills a cache line
}

// init makes the table for up to max keys.
func (t *Table) init(max int) { t.slots.Init(max) }

// Lookup returns the region of a key: the zero Region if the key is dead.
func (t *Table) Lookup(key uint32) Region {
	p := t.slots.Find(key)
	if p == nil {
		return Region{}
	}
	for {
		w := atomic.LoadUint64(&p.word)
		if uint32(w) != key {
			return Region{}
		}
		r := Region{
			Base: atomic.LoadPointer(&p.base), Size: atomic.LoadUint64(&p.size), Addr: atomic.LoadUint64(&p.addr),
			Zone: (*Zone)(atomic.LoadPointer(&p.zone)), Priv: hw.Privileges(atomic.LoadUint32(&p.priv)),
			window: (*Window)(atomic.LoadPointer(&p.window)),
		}
		if atomic.LoadUint64(&p.word) == w {
			return r
		}
	}
}

// insert enters a region and returns its key.
func (t *Table) insert(r Region) (uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, err := t.slots.Draw()
	if err != nil {
		return 0, err
	}
	var p *place
	if last := len(t.spare) - 1; last >= 0 {
		p, t.spare = t.spare[last], t.spare[:last]
	} else {
		p = new(place)
	}
	p.set(key, &r)
	t.slots.Insert(key, p)
	return key, nil
}

// remove makes a key dead. A Lookup that begins later does not find it.
func (t *Table) remove(key uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.slots.Find(key); p != nil {
		p.set(0, &Region{})
		t.slots.Remove(key)
		t.spare = append(t.spare, p)
	}
}

// set gives a key another region. A look-up at that moment may find the key dead.
func (t *Table) set(key uint32, r *Region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.slots.Find(key); p != nil {
		p.set(key, r)
	}
}

// remap gives a key other memory under the same address. If the length stays, one store
// exchanges the memory, and no look-up finds the key dead meanwhile.
func (t *Table) remap(key uint32, mem []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.slots.Find(key)
	if p == nil {
		return
	}
	base, size := unsafe.Pointer(unsafe.SliceData(mem)), uint64(len(mem))
	if p.size == size {
		atomic.StorePointer(&p.base, base)
		return
	}
	p.set(key, &Region{
		Base: base, Size: size, Addr: p.addr, Zone: (*Zone)(p.zone), Priv: hw.Privileges(p.priv), window: (*Window)(p.window),
	})
}

// restrict takes privileges from a key, and reports whether the key is alive. No
// look-up finds it dead meanwhile.
func (t *Table) restrict(key uint32, from hw.Privileges) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.slots.Find(key)
	if p != nil {
		atomic.AndUint32(&p.priv, ^uint32(from))
	}
	return p != nil
}

// Len is the number of keys alive.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slots.Len()
}

// set stores a region and its key in the place. The table's lock is held.
func (p *place) set(key uint32, r *Region) {
	changes := p.word >> 32
	atomic.StoreUint64(&p.word, (changes+1)<<32)
	atomic.StorePointer(&p.base, r.Base)
	atomic.StoreUint64(&p.size, r.Size)
	atomic.StoreUint64(&p.addr, r.Addr)
	atomic.StorePointer(&p.zone, unsafe.Pointer(r.Zone))
	atomic.StorePointer(&p.window, unsafe.Pointer(r.window))
	atomic.StoreUint32(&p.priv, uint32(r.Priv))
	atomic.StoreUint64(&p.word, (changes+2)<<32|uint64(key))
}

// View is the table as a queue pair sees it. One goroutine at a time uses it.
type View struct {
	Keys  *Table
	Zone  *Zone
	Scope *Zone  // see QP.Scope
	near  *place // the one that Reach found last
}

// nowhere is the place that a View begins with. It has no key.
var nowhere place

// NewView returns the part of a table that is in a zone or a scope.
func NewView(keys *Table, zone, scope *Zone) View { return View{keys, zone, scope, &nowhere} }

// View returns the part of the device's table that the queue pair may reach.
func (q *QP) View(d *Device) View { return NewView(&d.Keys, q.Zone, &q.Scope) }

// Reach returns where the n bytes at addr begin in memory, or nil if the key is dead
// or does not allow the access. n is not 0. The caller uses the pointer only for as
// long as [Config.Grace] waits for it; after that it calls Reach again.
//
// Most requests name the same region as the request before. So Reach first compares the
// word of the place that it found then: a dead key is in no word, and two places never
// have the same key.
func (v *View) Reach(addr uint64, n, key uint32, need hw.Privileges) unsafe.Pointer {
	p := v.near
	w := atomic.LoadUint64(&p.word)
	if uint32(w) != key {
		if p = v.Keys.slots.Find(key); p == nil {
			return nil
		}
		v.near = p
		w = atomic.LoadUint64(&p.word)
	}
	zone, priv := (*Zone)(atomic.LoadPointer(&p.zone)), hw.Privileges(atomic.LoadUint32(&p.priv))
	if uint32(w) != key || priv&need != need || zone != v.Zone && zone != v.Scope {
		return nil
	}
	base, size := atomic.LoadPointer(&p.base), atomic.LoadUint64(&p.size)
	yield.Point()
	off := addr - atomic.LoadUint64(&p.addr) // wraps far out of bounds when addr is below the region
	if off > size || uint64(n) > size-off || atomic.LoadUint64(&p.word) != w {
		return nil
	}
	return unsafe.Add(base, off)
}
