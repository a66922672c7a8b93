package mem

import (
	"sync"
	"unsafe"

	"godat/hw"
)

// RegisterLMR makes a region of the memory of another region, which may be in
// another zone of the same adapter. The new region has contexts and privileges of
// its own. The memory lives until the last region that uses it is freed. It may
// block. Errors are those of [PZ.Register]; a region that is freed or of another
// adapter is INVALID_HANDLE/LMR.
// It answers to dat_lmr_create with DAT_MEM_TYPE_LMR.
func (p *PZ) RegisterLMR(from *LMR, priv hw.Privileges) (*LMR, error) {
	const op = "mem.RegisterLMR"
	var size int
	var wrong error
	if from == nil || p != nil && from.pz.domain != p.domain {
		wrong = deadLMR(op)
	} else {
		size = len(from.buf)
	}
	if err := p.begin(op, size, priv, wrong); err != nil {
		return nil, err
	}
	defer p.domain.gate.RUnlock()
	l := &LMR{pz: p, buf: from.buf, priv: priv, from: from, unmap: from.unmap}
	if !l.holdMemoryOf(from) {
		p.zone.Unuse()
		return nil, deadLMR(op)
	}
	return l.register(op)
}

// holdMemoryOf counts this region as a user of from's memory, or reports false if
// from has been freed.
func (l *LMR) holdMemoryOf(from *LMR) bool {
	from.mu.Lock()
	defer from.mu.Unlock()
	if from.dead.Load() {
		return false
	}
	if l.block = from.block; l.block != nil {
		l.block.users.Add(1)
	} else {
		l.pin.Pin(unsafe.SliceData(l.buf))
	}
	return true
}

// SharedID names memory that regions of this process share, on any of its adapters:
// the id of DAT_SHARED_MEMORY. All of its bytes count.
type SharedID [40]byte

// shares is the memory that each id names.
var shares struct {
	sync.Mutex
	byID map[SharedID]*share
}

type share struct {
	buf     []byte
	regions int
}

// RegisterShared is [PZ.Register] for memory that id names. The first region with
// an id determines the memory. For later ones buf is the same memory, or nil; other
// memory is INVALID_PARAMETER. Each region has contexts of its own. The id is free
// again when the last of its regions is freed.
// It answers to dat_lmr_create with DAT_MEM_TYPE_SHARED_VIRTUAL.
func (p *PZ) RegisterShared(id SharedID, buf []byte, priv hw.Privileges) (*LMR, error) {
	const op = "mem.RegisterShared"
	buf, wrong := join(op, id, buf)
	if err := p.begin(op, len(buf), priv, wrong); err != nil {
		if wrong == nil {
			leave(id)
		}
		return nil, err
	}
	defer p.domain.gate.RUnlock()
	l := &LMR{pz: p, buf: buf, priv: priv, shares: true, shared: id}
	l.pin.Pin(unsafe.SliceData(l.buf))
	return l.register(op)
}

// join counts one more region with the id, and returns the memory of the id.
func join(op string, id SharedID, buf []byte) ([]byte, error) {
	shares.Lock()
	defer shares.Unlock()
	s := shares.byID[id]
	switch {
	case s == nil && len(buf) == 0:
		return nil, hw.Errorf(op, hw.LengthError, hw.NoSubtype, "the id names no memory yet, and none is given")
	case s == nil:
		if shares.byID == nil {
			shares.byID = make(map[SharedID]*share)
		}
		s = &share{buf: buf[:len(buf):len(buf)]}
		shares.byID[id] = s
	case buf != nil && (len(buf) != len(s.buf) || unsafe.SliceData(buf) != unsafe.SliceData(s.buf)):
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "the id names other memory, of %d bytes", len(s.buf))
	}
	s.regions++
	return s.buf, nil
}

// leave undoes one join.
func leave(id SharedID) {
	shares.Lock()
	defer shares.Unlock()
	s := shares.byID[id]
	if s.regions--; s.regions == 0 {
		delete(shares.byID, id)
	}
}
