package mem

import "fmt"

// String names the zone. It may be called at any time, as the String of every handle.
func (p *PZ) String() string { return fmt.Sprintf("PZ(%p)", p) }

// String names the region, by context and length.
func (l *LMR) String() string {
	if l == nil {
		return "LMR(nil)"
	}
	return fmt.Sprintf("LMR(%#x, %d bytes)", l.context, len(l.buf))
}

// String names the window.
func (r *RMR) String() string { return fmt.Sprintf("RMR(%p)", r) }
