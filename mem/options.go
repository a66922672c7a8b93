package mem

import (
	"math/bits"

	"godat/hw"
)

// Option changes how a region gets its memory. All options are for [PZ.Alloc];
// [PZ.Register] refuses them.
type Option func(*config)

type config struct {
	align int // in bytes; 0 means a page
	huge  bool
	unmap bool
}

// WithHugePages asks for 2 MiB pages: the processor needs fewer translations, and a
// device fewer entries in its tables. On Linux the pages come from the reserved
// pool (vm.nr_hugepages) if it has enough; otherwise Alloc asks for them with
// madvise(MADV_HUGEPAGE) on memory aligned to 2 MiB. The range is rounded up to 2
// MiB in both cases. Other systems choose the page size themselves.
func WithHugePages() Option { return func(c *config) { c.huge = true } }

// WithAlignment makes the memory begin at a multiple of n bytes, a power of two up
// to 1 GiB. Without it memory begins at a page.
func WithAlignment(n int) Option { return func(c *config) { c.align = n } }

// WithUnmapOnFree unmaps the address range as soon as the region is freed. Without
// it Free gives the pages back to the system, but the range stays mapped and reads
// as zeros for some time, because an access to a slice of unmapped memory kills the
// program. The range is unmapped when 64 MiB or 1024 ranges of the adapter have
// been freed after it, when the system has no room for another region, or when the
// adapter is closed. A range of more than 64 MiB, and one that is freed behind the close of
// its adapter, is unmapped at once. No program
// may rely on what it reads there; no other region uses a range before it is
// unmapped.
func WithUnmapOnFree() Option { return func(c *config) { c.unmap = true } }

const maxAlign = 1 << 30

func configure(op string, opts []Option) (c config, err error) {
	for i, o := range opts {
		if o == nil {
			return c, hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "option %d is nil", i)
		}
		o(&c)
	}
	if c.align < 0 || c.align > maxAlign || bits.OnesCount(uint(c.align)) > 1 {
		return c, hw.Errorf(op, hw.InvalidParameter, hw.Arg3,
			"alignment %d is not a power of two up to %d", c.align, maxAlign)
	}
	return c, nil
}
