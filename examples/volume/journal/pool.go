package journal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Pool has the slots that a leader fills during one term. A slot's life:
//
//	free → filling → named by an entry → free
//	         └────────→ free, if no entry has named it
//
// A slot that an entry names is free when every replica has released the entry: has it in
// its disk for good. Neither that it is committed nor that all have acknowledged it is
// enough: a replica copies from the slot once it knows of the commit, and again after a
// crash.
//
// One goroutine owns a pool.
type Pool struct {
	base     uint32   // number of the first slot
	lives    []life   // by number, from base
	free     []uint32 // a stack
	named    []naming // a ring, in the order of the indexes
	first    int      // in the ring
	count    int      // in the ring
	freed    uint64   // the highest index of an entry whose slot was freed
	replicas []replica
	majority int // of all replicas that vote
}

type life uint8

const (
	isFree life = iota
	isFilling
	isNamed
)

// naming is an entry that names a slot.
type naming struct {
	index uint64
	slot  uint32
}

// replica is one that the leader writes to.
type replica struct {
	id       uint64
	released uint64
	joining  bool // it may not have these entries yet
}

// NewPool makes the pool of a node's slots, for a term whose first entry has an index, and
// with the replicas that the leader writes to, itself included. All slots count as named by
// that entry: an earlier term of the node may have named them in entries that a replica
// still has, up to the time when it releases this one.
func NewPool(l Layout, node int, index uint64, majority int, replicas ...uint64) *Pool {
	p := &Pool{
		base: uint32(node * l.Slots), lives: make([]life, l.Slots), free: make([]uint32, 0, l.Slots),
		named: make([]naming, l.Slots), count: l.Slots, majority: majority,
	}
	for i := range p.named {
		p.named[i], p.lives[i] = naming{index, p.base + uint32(i)}, isNamed
	}
	for _, id := range replicas {
		p.replicas = append(p.replicas, replica{id: id})
	}
	return p
}

// Take takes a free slot, to be filled; ok is false if there is none.
func (p *Pool) Take() (slot uint32, ok bool) {
	last := len(p.free) - 1
	if last < 0 {
		return 0, false
	}
	slot, p.free = p.free[last], p.free[:last]
	p.become(slot, isFree, isFilling)
	return slot, true
}

// Name notes that the entry with an index names a slot. Indexes ascend.
func (p *Pool) Name(slot uint32, index uint64) {
	p.become(slot, isFilling, isNamed)
	p.named[(p.first+p.count)%len(p.named)] = naming{index, slot}
	p.count++
}

// Drop gives back a slot that no entry has named and none will. The leader's own writes to
// it have ended, in all journals.
func (p *Pool) Drop(slot uint32) {
	p.become(slot, isFilling, isFree)
	p.free = append(p.free, slot)
}

// become is the one way from a life of a slot to the next.
func (p *Pool) become(slot uint32, from, to life) {
	l := &p.lives[slot-p.base]
	if *l != from {
		panic(fmt.Sprintf("journal: slot %d goes from %d to %d, and is in %d", slot, from, to, *l))
	}
	*l = to
}

// Join adds a replica, which the leader writes to from now on. It has all entries up to an
// index for good, or will get them without the journal, and then says so with Release. Join
// reports false, and adds none, if a slot of a later entry was freed.
func (p *Pool) Join(id, index uint64) bool {
	if index < p.freed {
		return false
	}
	p.replicas = append(p.replicas, replica{id, index, true})
	return true
}

// Has reports whether the leader writes to a replica.
func (p *Pool) Has(id uint64) bool {
	return slices.ContainsFunc(p.replicas, func(r replica) bool { return r.id == id })
}

// ReleasedBy is up to where a replica has released, as the leader knows; 0 if it does not write to it.
func (p *Pool) ReleasedBy(id uint64) uint64 {
	for _, r := range p.replicas {
		if r.id == id && !r.joining {
			return r.released
		}
	}
	return 0
}

// Leave takes out a replica that the leader does not write to any more.
func (p *Pool) Leave(id uint64) {
	p.replicas = slices.DeleteFunc(p.replicas, func(r replica) bool { return r.id == id })
	p.reuse()
}

// Release notes that a replica has released all entries up to an index.
func (p *Pool) Release(id, index uint64) {
	for i := range p.replicas {
		if r := &p.replicas[i]; r.id == id && index >= r.released {
			r.released, r.joining = index, false
		}
	}
	p.reuse()
}

// Behind is the replica that has released least, and up to where. Without replicas it is 0.
func (p *Pool) Behind() (id, released uint64) {
	if len(p.replicas) == 0 {
		return 0, 0
	}
	least := slices.MinFunc(p.replicas, func(a, b replica) int { return cmp.Compare(a.released, b.released) })
	return least.id, least.released
}

// Holds reports whether slots would be free if the leader did not write to a replica.
func (p *Pool) Holds(id uint64) bool {
	have, least := 0, uint64(math.MaxUint64)
	for _, r := range p.replicas {
		if r.id == id {
			continue
		}
		if least = min(least, r.released); !r.joining {
			have++
		}
	}
	return have >= p.majority && p.count != 0 && p.named[p.first].index <= least
}

// Released is what all replicas have released, of which a majority is needed; 0 without one.
func (p *Pool) Released() uint64 {
	have := 0
	for _, r := range p.replicas {
		if !r.joining {
			have++
		}
	}
	if have < p.majority {
		return 0
	}
	_, released := p.Behind()
	return released
}

// reuse frees the slots of entries that all replicas have released.
func (p *Pool) reuse() {
	released := p.Released()
	for p.count != 0 && p.named[p.first].index <= released {
		slot := p.named[p.first].slot
		p.freed = p.named[p.first].index
		p.become(slot, isNamed, isFree)
		p.free = append(p.free, slot)
		p.first = (p.first + 1) % len(p.named)
		p.count--
	}
}

// SetMajority says how many replicas are a majority from now on.
func (p *Pool) SetMajority(n int) {
	p.majority = n
	p.reuse()
}

// Free is how many slots are free.
func (p *Pool) Free() int { return len(p.free) }
