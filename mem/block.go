package mem

import (
	"errors"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"godat/hw"
)

// hugePage is the size in bytes of the huge pages that a program may ask for.
const hugePage = 2 << 20

var errTooLarge = errors.New("more than the address space")

// block is a mapped range of memory, outside the Go heap.
type block struct {
	whole []byte       // as mapped, in whole pages
	buf   []byte       // the part in use, aligned
	users atomic.Int32 // regions that use the block
}

// newBlock maps zeroed memory of size bytes.
func newBlock(size int, cfg config) (*block, error) {
	page := os.Getpagesize()
	align := max(cfg.align, 1)
	if cfg.huge {
		align = max(align, hugePage)
		page = max(page, hugePage)
	}
	// The system aligns a range to its pages; for a larger alignment, map more.
	slack := 0
	if align > os.Getpagesize() {
		slack = align
	}
	if size > math.MaxInt-slack-page {
		return nil, errTooLarge
	}
	whole, err := mapPages(roundUp(size, page)+slack, cfg.huge)
	if err != nil {
		return nil, err
	}
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	off := int(-addr & uintptr(align-1))
	b := &block{whole: whole, buf: whole[off : off+size : off+size]}
	b.users.Store(1)
	return b, nil
}

// empty gives the pages back to the system. The range stays mapped and reads as
// zeros.
func (b *block) empty() error {
	if err := dropPages(b.whole); err != nil {
		return hw.Errorf("mem", hw.InternalError, hw.NoSubtype, "can't empty %d bytes: %w", len(b.whole), err)
	}
	return nil
}

// unmap gives the address range back to the system.
func (b *block) unmap() error { return unmapPages(b.whole) }

func roundUp(n, to int) int { return (n + to - 1) / to * to }
