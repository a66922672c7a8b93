package mem

import (
	"fmt"
	"math"

	"godat/hw"
)

// region is what a post is checked against: a snapshot of an LMR that never
// changes. A freed region's is no longer in the table.
type region struct {
	base uint64
	size uint64
	pz   *PZ
	lkey uint32
	priv hw.Privileges
	mr   hw.MR
}

// Resolve checks segments as a post must and translates them for the device. It
// fills dst, which has at least as many elements, and returns how many bytes
// the segments have together. need is LocalRead for memory that is sent or
// written from, and LocalWrite for memory that is received or read into.
//
// A segment of length 0 is not checked and becomes a zero SGE. For the others a
// context that is no live region is INVALID_HANDLE/LMR, a region of another zone
// and a range outside the region are PROTECTION_VIOLATION, and a region without
// the privilege is PRIVILEGES_VIOLATION, in this order and for the first segment
// that fails; dst is then undefined.
//
// It runs on the data path: it takes no lock, and allocates only for an error.
func (p *PZ) Resolve(dst []hw.SGE, segs []Segment, need hw.Privileges) (total uint64, err *hw.Error) {
	if p == nil {
		return 0, badPZ()
	}
	table := p.table
	dst = dst[:len(segs)]
	for i := range segs {
		s := &segs[i]
		if s.Len == 0 {
			dst[i] = hw.SGE{}
			continue
		}
		r := table.Lookup(s.Context)
		if r == nil {
			return 0, p.refusal(segs, i, need)
		}
		// An address below the base wraps to an offset beyond every region.
		off, n := s.Addr-r.base, uint64(s.Len)
		if r.pz != p || off > r.size || n > r.size-off || r.priv&need != need {
			return 0, p.refusal(segs, i, need)
		}
		dst[i] = hw.SGE{Addr: s.Addr, Len: s.Len, LKey: r.lkey}
		total += n
	}
	return total, nil
}

// LKey is Resolve for one segment that is not empty, for posts that have no more.
// ok says whether the segment may be used; Resolve says why not.
func (p *PZ) LKey(s *Segment, need hw.Privileges) (lkey uint32, ok bool) {
	if p == nil {
		return 0, false
	}
	r := p.table.Lookup(s.Context)
	if r == nil {
		return 0, false
	}
	off, n := s.Addr-r.base, uint64(s.Len)
	ok = r.pz == p && off <= r.size && n <= r.size-off && r.priv&need == need
	return r.lkey, ok
}

// refusal says why segment i can't be used. It looks again, in the order that
// Resolve promises: a region that was freed since then is a freed one.
func (p *PZ) refusal(segs []Segment, i int, need hw.Privileges) *hw.Error {
	const op = "mem.Resolve"
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	s := segs[i]
	r := p.domain.table.Lookup(s.Context)
	switch {
	case closed:
		return badPZ()
	case r == nil:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR,
			"segment %d: context %#x names no region, or a freed one", i, s.Context)
	case r.pz != p:
		return hw.Errorf(op, hw.ProtectionViolation, protection(need),
			"segment %d: the region is in another protection zone", i)
	case r.priv&need != need:
		// Bounds come first.
		if off := s.Addr - r.base; off <= r.size && uint64(s.Len) <= r.size-off {
			return hw.Errorf(op, hw.PrivilegesViolation, privilege(need),
				"segment %d: the region has %v; this needs %v", i, r.priv, need)
		}
	}
	return hw.Errorf(op, hw.ProtectionViolation, protection(need),
		"segment %d: %s", i, outside(s, r.base, r.size))
}

// outside says where a segment lies that is not within its region.
func outside(s Segment, base, size uint64) string {
	if s.Addr == math.MaxUint64 {
		return fmt.Sprintf("a negative length, or one over 32 bits; the region has %d bytes", size)
	}
	return fmt.Sprintf("offset %d, length %d is not within the region of %d bytes", int64(s.Addr-base), s.Len, size)
}

func badPZ() *hw.Error {
	return hw.Errorf("mem.Resolve", hw.InvalidHandle, hw.HandlePZ, "the protection zone is nil or closed")
}

func protection(need hw.Privileges) hw.Subtype {
	switch {
	case need&hw.LocalRead != 0:
		return hw.ProtectionRead
	case need&hw.LocalWrite != 0:
		return hw.ProtectionWrite
	case need&hw.RemoteRead != 0:
		return hw.ProtectionRDMARead
	case need&(hw.RemoteWrite|hw.RemoteAtomic) != 0:
		return hw.ProtectionRDMAWrite
	}
	return hw.NoSubtype
}

func privilege(need hw.Privileges) hw.Subtype {
	if sub := protection(need); sub != hw.NoSubtype {
		return sub - hw.ProtectionRead + hw.PrivilegesRead
	}
	return hw.NoSubtype
}
