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
// exchanges the memory, and no look-up finds the key dead meanwhile. mark is added to the
// key's privileges.
func (t *Table) remap(key uint32, mem []byte, mark hw.Privileges) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.slots.Find(key)
	if p == nil {
		return
	}
	atomic.OrUint32(&p.priv, uint32(mark))
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

// Steady reports whether nobody changes the n bytes at addr while requests read them. n is
// not 0.
func (v *View) Steady(addr uint64, n, key uint32) bool {
	return v.Reach(addr, n, key, hw.LocalRead|steady) != nil
}

// Scratch returns the memory behind addr, up to the end of its region, if that may hold
// anything behind what is written to it; otherwise nil. The queue pair may write there on
// a peer's behalf. The caller uses the memory as long as that of Reach.
func (v *View) Scratch(addr uint64, key uint32) []byte {
	r := v.Keys.Lookup(key)
	const need = scratch | hw.RemoteWrite
	off := addr - r.Addr
	if r.Priv&need != need || !v.Within(r.Zone) || off >= r.Size {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(r.Base, off)), r.Size-off)
}

// View is the table as a queue pair sees it. One goroutine at a time uses it.
type View struct {
	Keys *Table
	of   *QP
	near *place // the one that Reach found last
	word uint64 // near's word at that time
}

// nowhere is the place that a View begins with. It has no key.
var nowhere place

// NewView returns the part of a table that a queue pair may reach.
func NewView(keys *Table, of *QP) View { return View{Keys: keys, of: of, near: &nowhere} }

// Within reports whether a region's zone is the queue pair's zone or scope.
func (v *View) Within(zone *Zone) bool { return zone == v.of.Zone || zone == &v.of.Scope }

// Reach returns where the n bytes at addr begin in memory, or nil if the key is dead
// or does not allow the access. n is not 0. The caller uses the pointer only for as
// long as [Zone.Await] waits for it; after that it calls Reach again.
//
// Most requests name the same region as the request before. So Reach first looks at the
// place that it found then: a dead key is in no word, and two places never have the same
// key.
func (v *View) Reach(addr uint64, n, key uint32, need hw.Privileges) unsafe.Pointer {
	p := v.near
	w := atomic.LoadUint64(&p.word)
	if uint32(w) != key {
		if p = v.Keys.slots.Find(key); p == nil {
			return nil
		}
		w = atomic.LoadUint64(&p.word)
	}
	if uint32(w) != key || !v.Within((*Zone)(atomic.LoadPointer(&p.zone))) {
		return nil
	}
	yield.Point()
	v.near, v.word = p, w
	return v.Again(addr, n, key, need)
}

// Again is Reach of the key that the last Reach has found, and nil for any other. It is to
// be inlined, before a call of Reach. As long as the place has the word that it had then, the
// region is the same one, and so is its zone. Words only grow, so if the word is the same
// after the other fields were read, these belong together. Memory and privileges are read
// each time, since they may change under the same word.
func (v *View) Again(addr uint64, n, key uint32, need hw.Privileges) unsafe.Pointer {
	p := v.near
	base := atomic.LoadPointer(&p.base)
	yield.Point()
	addr -= atomic.LoadUint64(&p.addr) // an offset: far out of bounds if the address is below the region
	size := atomic.LoadUint64(&p.size)
	if uint32(v.word) != key || uint32(need)&^atomic.LoadUint32(&p.priv) != 0 || addr > size || uint64(n) > size-addr ||
		atomic.LoadUint64(&p.word) != v.word {
		return nil
	}
	return unsafe.Add(base, addr)
}
