package mem

import (
	"fmt"
	"log/slog"
	"sync/atomic"
)

// The numbers of handles: each has the next one of its kind in this process, from 1 on. One that nothing
// made has 0.
var zoneNumbers, windowNumbers, poolNumbers atomic.Uint64

// String names the zone. It may be called at any time, as the String of every handle.
func (p *PZ) String() string {
	if p == nil {
		return "PZ(nil)"
	}
	return fmt.Sprintf("PZ(%d)", p.number)
}

// LogValue is String, for log/slog.
func (p *PZ) LogValue() slog.Value { return slog.StringValue(p.String()) }

// String names the region by context and length.
func (l *LMR) String() string {
	if l == nil {
		return "LMR(nil)"
	}
	return fmt.Sprintf("LMR(%#x, %d bytes)", l.context, len(l.buf))
}

// LogValue names the region by context and length, for log/slog. It may be called at any time,
// as the LogValue of every handle.
func (l *LMR) LogValue() slog.Value {
	if l == nil {
		return slog.StringValue(l.String())
	}
	return slog.GroupValue(slog.Uint64("context", uint64(l.context)), slog.Int("bytes", len(l.buf)))
}

// String names the window.
func (r *RMR) String() string {
	if r == nil {
		return "RMR(nil)"
	}
	return fmt.Sprintf("RMR(%d)", r.number)
}

// LogValue is String, for log/slog.
func (r *RMR) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String names the pool.
func (p *BufferPool) String() string {
	if p == nil {
		return "BufferPool(nil)"
	}
	return fmt.Sprintf("BufferPool(%d)", p.number)
}

// LogValue names the pool and says how many buffers of which size it has, for log/slog.
func (p *BufferPool) LogValue() slog.Value {
	if p == nil {
		return slog.StringValue(p.String())
	}
	return slog.GroupValue(slog.String("name", p.String()), slog.Int("buffers", len(p.buffers)), slog.Int("size", p.size))
}

// String names the buffer by its pool's number and its index. It does not read the buffer's
// memory.
func (b *Buffer) String() string {
	if b == nil || b.pool == nil {
		return "Buffer(nil)"
	}
	return fmt.Sprintf("Buffer(%d, %d)", b.pool.number, b.index)
}

// LogValue is String, for log/slog.
func (b *Buffer) LogValue() slog.Value { return slog.StringValue(b.String()) }
