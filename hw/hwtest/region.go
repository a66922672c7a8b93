package hwtest

import (
	"runtime"
	"unsafe"

	"godat/hw"
)

// region is pinned and registered Go memory.
type region struct {
	mr     hw.MR
	buf    []byte
	base   uint64
	pin    runtime.Pinner
	freed  bool
	pinned bool
}

// mem registers n bytes in the host's zone.
func (h *host) mem(n int, priv hw.Privileges) *region {
	return h.memIn(h.zone, make([]byte, n), priv)
}

// memIn registers buf.
func (h *host) memIn(zone hw.Zone, buf []byte, priv hw.Privileges) *region {
	g := &region{buf: buf, base: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))), pinned: true}
	g.pin.Pin(unsafe.SliceData(buf))
	h.mu.Lock()
	h.regions = append(h.regions, g)
	h.mu.Unlock()
	mr, err := h.dev.Register(zone, buf, priv)
	if err != nil {
		g.freed = true
		h.rig.must.NoError(err)
	}
	g.mr = mr
	return g
}

// free deregisters the memory, which stays pinned until the case ends.
func (g *region) free() error {
	g.freed = true
	return g.mr.Deregister()
}

// free deregisters the regions that are not deregistered yet.
func (r *rig) free(gs ...*region) {
	for _, g := range gs {
		if !g.freed {
			r.must.NoError(g.free())
		}
	}
}

// sge is a local segment of the region.
func (g *region) sge(off, n int) hw.SGE {
	return hw.SGE{Addr: g.base + uint64(off), Len: uint32(n), LKey: g.mr.LKey()}
}

// all is the whole region as a segment.
func (g *region) all() hw.SGE { return g.sge(0, len(g.buf)) }
