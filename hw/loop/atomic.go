package loop

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"godat/hw"
	"godat/hw/internal/soft"
)

// wordLen is the size of an atomic's target.
const wordLen = 8

// atomic executes a fetch-add or compare-swap. It leaves the target unchanged unless
// it can store the old value.
func (x *executor) atomic(wr *hw.SendWR) verdict {
	switch {
	case x.canRead != hw.StatusSuccess:
		return x.fail(wr, x.canRead)
	case soft.Total(wr.SGL) != wordLen:
		return x.fail(wr, hw.StatusLocalLength)
	}
	// Each key is looked up once, before anything changes. A key may die at any time, but
	// Deregister waits until the pipe has moved on, so the memory stays until then.
	var into [wordLen][]byte
	pieces := 0
	for i := range wr.SGL {
		s := &wr.SGL[i]
		if s.Len == 0 {
			continue
		}
		mem := x.src.Reach(s.Addr, s.Len, s.LKey, hw.LocalWrite)
		if mem == nil {
			return x.fail(wr, hw.StatusLocalProtection)
		}
		into[pieces] = unsafe.Slice((*byte)(mem), s.Len)
		pieces++
	}
	target := x.dst.Reach(wr.RemoteAddr, wordLen, wr.RKey, hw.RemoteAtomic)
	if target == nil {
		return x.fail(wr, hw.StatusRemoteAccess)
	}
	// The address in memory counts: in a zero-based window RemoteAddr is an offset.
	if uintptr(target)%wordLen != 0 {
		return x.fail(wr, hw.StatusRemoteResponder)
	}
	word := (*uint64)(target)
	var old uint64
	if wr.Op == hw.OpFetchAdd {
		old = atomic.AddUint64(word, wr.Operand) - wr.Operand
	} else {
		old = compareSwap(word, wr.Compare, wr.Operand)
	}
	binary.NativeEndian.PutUint64(x.old[:], old)
	rest := x.old[:]
	for _, mem := range into[:pieces] {
		rest = rest[copy(mem, rest):]
	}
	return x.sent(wr, wordLen)
}

// compareSwap stores v if the word equals want, and returns the word's old value.
func compareSwap(word *uint64, want, v uint64) uint64 {
	for {
		old := atomic.LoadUint64(word)
		if old != want || atomic.CompareAndSwapUint64(word, want, v) {
			return old
		}
	}
}
