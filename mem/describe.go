package mem

import "fmt"

// String names the zone. It may be called at any time, as the String of every handle.
func (p *PZ) String() string { return fmt.Sprintf("PZ(%p)", p) }

// String names the region by context and length.
func (l *LMR) String() string {
	if l == nil {
		return "LMR(nil)"
	}
	return fmt.Sprintf("LMR(%#x, %d bytes)", l.context, len(l.buf))
}

// String names the window.
func (r *RMR) String() string { return fmt.Sprintf("RMR(%p)", r) }

// String names the pool.
func (p *BufferPool) String() string { return fmt.Sprintf("BufferPool(%p)", p) }

// String names the buffer by its pool and index. It does not read the buffer's
// memory.
func (b *Buffer) String() string {
	if b == nil {
		return "Buffer(nil)"
	}
	return fmt.Sprintf("Buffer(%p, %d)", b.pool, b.index)
}
