package mem

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestAnExhaustedLockedMemoryLimitSaysWhatToRaise(t *testing.T) {
	cause := fmt.Errorf("ibv_reg_mr: %w", syscall.ENOMEM)
	for name, c := range map[string]struct {
		size  int
		limit uint64
		known bool
		want  string
	}{
		"a region above the limit": {
			64 << 20, 8 << 20, true,
			"locked-memory limit is 8 MiB; this region needs 64 MiB: raise RLIMIT_MEMLOCK (ulimit -l)",
		},
		"one more region": {
			4 << 20, 8 << 20, true,
			"locked-memory limit is 8 MiB; this region needs 4 MiB on top of what is locked already: raise RLIMIT_MEMLOCK",
		},
		"an odd size":    {1000, 65536, true, "locked-memory limit is 64 KiB; this region needs 1000 bytes on top"},
		"limit 0":        {4096, 0, true, "locked-memory limit is 0 bytes; this region needs 4 KiB: raise"},
		"no known limit": {64 << 20, 0, false, "the device can't lock 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			err := lockedOut("mem.Alloc", c.size, c.limit, c.known, cause)
			requireCode(t, err, hw.InsufficientResources, hw.ResourceMemory)
			require.ErrorIs(t, err, syscall.ENOMEM)
			assert.Contains(t, err.Error(), c.want)
			assert.Contains(t, err.Error(), "ibv_reg_mr")
		})
	}
}
