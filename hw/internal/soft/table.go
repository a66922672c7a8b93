package soft

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"godat/hw"
	"godat/internal/keys"
	"godat/internal/yield"
)

// Region is what a key stands for: memory, who may reach it, and how. The zero
// Region is that of a dead key.
type Region struct {
	Base unsafe.Pointer
	Size uint64
	Addr uint64 // of the first byte, as requests name it
	Zone *Zone  // or a queue pair's scope; nil before a window is bound
	Priv hw.Privileges

	window *Window // whose key it is; nil for a region's own
}

// Table maps keys to regions. Anybody may look a key up at any time; the changes
// exclude each other. A window that is bound changes the table twice and allocates
// nothing, so a region lies in a place of the table's, which is used again, is read
// while it changes, and whoever read it looks whether it has.
type Table struct {
	slots keys.Slots[place]

	mu    sync.Mutex // guards slots, but for Find
	spare []*place   // of dead keys
}

// place is where the region of a key lies.
//
// word is the key, 0 if there is none, and above it a count of the changes. It is
// without a key while the rest changes, and never what it was before: if it is the
// same before and after, what was read in between goes together.
//
// All of it is atomic, by the functions: the methods leave marks of themselves
// where they are inlined, which are instructions.
type place struct {
	_      [0]atomic.Uint64 // aligned as such: so is what follows, on any machine
	word   uint64
	size   uint64
	addr   uint64
	base   unsafe.Pointer
	zone   unsafe.Pointer
	window unsafe.Pointer
	priv   uint32
	_      [12]byte // a line each
}

// init makes the table for up to max keys.
func (t *Table) init(max int) { t.slots.Init(max) }

// Lookup is the region of a key, zero if it is dead.
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

// set gives a key another region. Who looks it up at that moment may find it dead.
func (t *Table) set(key uint32, r *Region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.slots.Find(key); p != nil {
		p.set(key, r)
	}
}

// restrict takes privileges from a key, and reports whether it was alive. Nobody
// finds it dead meanwhile.
func (t *Table) restrict(key uint32, from hw.Privileges) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.slots.Find(key)
	if p != nil {
		atomic.AndUint32(&p.priv, ^uint32(from))
	}
	return p != nil
}

// Len is how many keys are alive.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slots.Len()
}

// set makes the place that of a region. The table's lock is held.
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

// View is the table as a queue pair sees it.
type View struct {
	Keys  *Table
	Zone  *Zone
	Scope *Zone // stands for the queue pair's own windows
}

// View is what the queue pair may reach on the device.
func (q *QP) View(d *Device) View { return View{&d.Keys, q.Zone, &q.Scope} }

// Reach returns where the n bytes at addr begin in memory, or nil if the key is dead
// or does not allow it. Whoever uses the pointer looks up again once others may have
// waited for it: see [Config.Grace]. n is not 0.
func (v *View) Reach(addr uint64, n, key uint32, need hw.Privileges) unsafe.Pointer {
	p := v.Keys.slots.Find(key)
	if p == nil {
		return nil
	}
	w := atomic.LoadUint64(&p.word)
	zone, priv := (*Zone)(atomic.LoadPointer(&p.zone)), hw.Privileges(atomic.LoadUint32(&p.priv))
	if uint32(w) != key || priv&need != need || zone != v.Zone && zone != v.Scope {
		return nil
	}
	base, size := atomic.LoadPointer(&p.base), atomic.LoadUint64(&p.size)
	yield.Point()
	off := addr - atomic.LoadUint64(&p.addr) // far out of bounds when addr is below
	if off > size || uint64(n) > size-off || atomic.LoadUint64(&p.word) != w {
		return nil
	}
	return unsafe.Add(base, off)
}
