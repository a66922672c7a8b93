package loop

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"godat/hw"
)

// wordLen is the size of an atomic's target.
const wordLen = 8

// atomic does a fetch-add or compare-swap. The target stays what it is unless
// the old value can be stored.
func (p *pipe) atomic(wr *hw.SendWR) verdict {
	switch {
	case p.canRead != hw.StatusSuccess:
		return p.fail(wr, p.canRead)
	case total(wr.SGL) != wordLen:
		return p.fail(wr, hw.StatusLocalLength)
	}
	// The memory is looked up once, before anything is changed: a key may die at any
	// time, and Deregister waits until the pipe has moved on.
	var into [wordLen][]byte
	pieces := 0
	for i := range wr.SGL {
		s := &wr.SGL[i]
		if s.Len == 0 {
			continue
		}
		mem := p.src.Reach(s.Addr, s.Len, s.LKey, hw.LocalWrite)
		if mem == nil {
			return p.fail(wr, hw.StatusLocalProtection)
		}
		into[pieces] = unsafe.Slice((*byte)(mem), s.Len)
		pieces++
	}
	target := p.dst.Reach(wr.RemoteAddr, wordLen, wr.RKey, hw.RemoteAtomic)
	if target == nil {
		return p.fail(wr, hw.StatusRemoteAccess)
	}
	// An offset into a zero-based window says nothing of the address.
	if uintptr(target)%wordLen != 0 {
		return p.fail(wr, hw.StatusRemoteResponder)
	}
	word := (*uint64)(target)
	var old uint64
	if wr.Op == hw.OpFetchAdd {
		old = atomic.AddUint64(word, wr.Operand) - wr.Operand
	} else {
		old = compareSwap(word, wr.Compare, wr.Operand)
	}
	binary.NativeEndian.PutUint64(p.old[:], old)
	rest := p.old[:]
	for _, mem := range into[:pieces] {
		rest = rest[copy(mem, rest):]
	}
	return p.sent(wr, wordLen)
}

// compareSwap stores v if the word equals want, and returns what it was.
func compareSwap(word *uint64, want, v uint64) uint64 {
	for {
		old := atomic.LoadUint64(word)
		if old != want || atomic.CompareAndSwapUint64(word, want, v) {
			return old
		}
	}
}
