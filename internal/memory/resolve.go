package memory

import "godat/hw"

// Resolve checks the segments of a post and translates them in place for the
// device: before the call an LKey is a region's context, after it the device's key.
// It returns the length of all segments together. need is LocalRead for memory that
// is sent or written from, and LocalWrite for memory that is received or read into.
//
// A segment of length 0 is not checked and becomes a zero SGE. Each of the others is checked
// for this, in this order: a context that names no live region is INVALID_HANDLE/LMR, a
// region of another zone and a range outside the region are PROTECTION_VIOLATION, and a
// region without the privilege is PRIVILEGES_VIOLATION. Resolve returns the first error; the
// segments are then undefined.
//
// It runs on the data path: it takes no lock, and allocates only for an error.
func (z *Zone) Resolve(sges []hw.SGE, need hw.Privileges) (total uint64, err *hw.Error) {
	if z == nil {
		return 0, ClosedZone(opResolve)
	}
	table := z.table
	for i := range sges {
		s := &sges[i]
		if s.Len == 0 {
			*s = hw.SGE{}
			continue
		}
		r := table.Lookup(s.LKey)
		if r == nil || r.Zone != z || !r.Holds(s.Addr, s.Len) || r.Priv&need != need {
			return 0, z.refusal(i, s, need)
		}
		s.LKey = r.LKey
		total += uint64(s.Len)
	}
	return total, nil
}

// LKey is Resolve for a post of one segment that is not empty. ok reports whether
// the segment may be used; if not, Resolve tells why.
func (z *Zone) LKey(s *Segment, need hw.Privileges) (lkey uint32, ok bool) {
	if z == nil {
		return 0, false
	}
	r := z.table.Lookup(s.Context)
	if r == nil {
		return 0, false
	}
	return r.LKey, r.Allows(z, s, need)
}

// Find returns the region of a context, or nil if there is none, and leaves it in n: the
// next post looks there first, and calls Find if it names another region. A segment may
// use the region if Allows says so.
func (z *Zone) Find(n *Near, context uint32) *Region {
	if z == nil {
		return nil
	}
	return z.table.LookupNear(n, context)
}

// Allows reports whether a post on an endpoint of zone z may use the segment, which is
// not empty and names the region.
func (r *Region) Allows(z *Zone, s *Segment, need hw.Privileges) bool {
	return r.Zone == z && r.Holds(s.Addr, s.Len) && r.Priv&need == need
}

const opResolve = "mem.Resolve"

// refusal returns why segment i can't be used. It looks the region up again and checks in the
// order that Resolve promises.
func (z *Zone) refusal(i int, s *hw.SGE, need hw.Privileges) *hw.Error {
	r := z.table.Lookup(s.LKey)
	switch {
	case z.Closed():
		return ClosedZone(opResolve)
	case r == nil:
		return hw.Errorf(opResolve, hw.InvalidHandle, hw.HandleLMR,
			"segment %d: context %#x names no region of this adapter, or a freed one: LMR.Segment names memory", i, s.LKey)
	case r.Zone != z:
		return hw.Errorf(opResolve, hw.ProtectionViolation, protection(need),
			"segment %d: the region is in another protection zone than the endpoint: Conn.Alloc and Conn.Register use the connection's", i)
	case r.Priv&need != need && r.Holds(s.Addr, s.Len): // bounds come first
		return hw.Errorf(opResolve, hw.PrivilegesViolation, privilege(need),
			"segment %d: the region has %v; this needs %v", i, r.Priv, need)
	}
	return hw.Errorf(opResolve, hw.ProtectionViolation, protection(need),
		"segment %d: %s", i, r.Outside(s.Addr, s.Len))
}
