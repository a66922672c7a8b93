package mem

import (
	"math/bits"

	"godat/hw"
)

// Option modifies how a region gets its memory. All options belong to
// [PZ.Alloc]; [PZ.Register] refuses them.
type Option func(*config)

type config struct {
	align int // 0 is a page
	huge  bool
	unmap bool
}

// WithHugePages asks for 2 MiB pages: fewer translations for the processor, and
// for a device fewer entries in its tables. On Linux they come from the reserved
// pool (vm.nr_hugepages) if it has enough, and are asked for with
// madvise(MADV_HUGEPAGE) on memory aligned to 2 MiB otherwise. The range is
// rounded up to 2 MiB in both cases. Other systems give what they give.
func WithHugePages() Option { return func(c *config) { c.huge = true } }

// WithAlignment asks for an address that is a multiple of n, a power of two up
// to 1 GiB. Without it memory begins at a page.
func WithAlignment(n int) Option { return func(c *config) { c.align = n } }

// WithUnmapOnFree gives the address range back as soon as the region is freed.
// Without it the pages go back to the system but the range stays mapped and
// reads as zeros for some time, because a slice of unmapped memory that somebody
// still holds kills the program: until 64 MiB or 1024 ranges of an adapter have been
// freed after it, until the system has no room for another region, or until the
// adapter is closed. A range of more than 64 MiB is given back at once. No program
// may rely on what it reads there; a range is never used for another region before
// it was given back.
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
