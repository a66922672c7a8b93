package line

import (
	"godat/hw"
	"godat/internal/memory"
	"godat/mem"
)

// work is a DTO on its way into a slot, without its one-shot. It stays on the
// poster's stack, and what it points to may, too.
type work struct {
	op     hw.Op
	flags  hw.Flags
	cookie uint64
	segs   []mem.Segment
	remote mem.RemoteSegment
	ext    *extra // nil for the plain operations
	own    bool   // a connection's, whose cookie is reserved
}

// extra is what the operations of DAT 2.0 and of its InfiniBand extension have beyond the plain
// ones. Posting one that the device can't execute is MODEL_NOT_SUPPORTED, which matches
// errors.ErrUnsupported.
type extra struct {
	imm uint32 // immediate data, or the key to invalidate
	operands
}

const atomicSize = 8

// single reports whether there is exactly one segment with something in it.
func (w *work) single() bool { return len(w.segs) == 1 && w.segs[0].Len != 0 }

// translate writes a slot's segments. They were checked; a region that was freed
// since gives a key that every provider refuses, with LOCAL_PROTECTION.
func (w *work) translate(sges []hw.SGE, zone *memory.Zone) {
	for i := range w.segs {
		seg := &w.segs[i]
		sges[i] = hw.SGE{}
		if seg.Len != 0 {
			lkey, _ := zone.LKey((*memory.Segment)(seg), hw.NoPrivileges)
			sges[i] = hw.SGE{Addr: seg.Addr, Len: seg.Len, LKey: lkey}
		}
	}
}

// SGEsOf writes the segments to sges, as [memory.Zone.Resolve] takes them.
func SGEsOf(sges []hw.SGE, segs []mem.Segment) []hw.SGE {
	for i, s := range segs {
		sges[i] = hw.SGE{Addr: s.Addr, Len: s.Len, LKey: s.Context}
	}
	return sges[:len(segs)]
}

// trim cuts the sink of an RDMA read to the length of its source.
func (w *work) trim(sges []hw.SGE) {
	left := w.remote.Len
	for i := range sges {
		sges[i].Len = min(sges[i].Len, left)
		left -= sges[i].Len
	}
}
