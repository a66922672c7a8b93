package journal

import "slices"

// Fence says into which slots a replica may read what others send it. One goroutine at a time uses it.
type Fence struct {
	term  uint64
	holds []hold
}

// hold is a slot that is copied from until an entry is released, also once more after a crash.
type hold struct {
	slot  uint32
	index uint64
}

// NewFence makes the fence of a replica that has voted in a term. Hold has then to be called for the
// entries of its log that it has not released.
func NewFence(term uint64) *Fence { return &Fence{term: term} }

// Pass reports whether a replica reads for a leader of a term. It reads for none of a lower term than
// that of one before: its successor's entries may name the same slots by now.
func (f *Fence) Pass(term uint64) bool {
	ok := term >= f.term
	f.term = max(f.term, term)
	return ok
}

// Hold notes that the replica has the data of an entry that names a slot.
func (f *Fence) Hold(slot uint32, index uint64) { f.holds = append(f.holds, hold{slot, index}) }

// Has reports whether the replica may have the data of an entry in its slot: Hold was called for that. It has not otherwise.
func (f *Fence) Has(slot uint32, index uint64) bool {
	return slices.Contains(f.holds, hold{slot, index})
}

// Held reports whether an entry before the one of an index needs a slot, given what is released. A
// leader that took the replica out may have freed it, and its successor offers the entry that names it next.
func (f *Fence) Held(slot uint32, index, released uint64) bool {
	f.holds = slices.DeleteFunc(f.holds, func(h hold) bool { return h.index <= released })
	return slices.ContainsFunc(f.holds, func(h hold) bool { return h.slot == slot && h.index < index })
}
