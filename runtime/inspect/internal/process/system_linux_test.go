package process

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheLeastLimitOfTheGroupsAboveIsTheMemorys(t *testing.T) {
	files := map[string]string{
		"/sys/fs/cgroup/a/b/memory.max":                        "max\n",
		"/sys/fs/cgroup/a/memory.max":                          "1000000\n",
		"/sys/fs/cgroup/memory/x/memory.limit_in_bytes":        "9223372036854771712\n",
		"/sys/fs/cgroup/memory/small/memory.limit_in_bytes":    "4096\n",
		"/sys/fs/cgroup/memory/broken/memory.limit_in_bytes":   "all of it\n",
		"/sys/fs/cgroup/memory/small/in/memory.limit_in_bytes": "8192\n",
	}
	read := func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, os.ErrNotExist
		}
		return []byte(text), nil
	}
	for list, want := range map[string]uint64{
		"0::/a/b\n": 1000000, "0::/\n": 0, "4:memory:/x\n0::/\n": 0, "4:memory:/small/in\n1:cpu:/small": 4096,
		"4:memory:/broken\n": 0, "4:cpu:/a\nno group": 0, "": 0, "0::/../../a\n": 1000000,
	} {
		assert.Equal(t, want, memoryLimit(list, read), list)
	}
}

func TestDescriptorsAreCounted(t *testing.T) {
	before := Now().Descriptors
	require.Positive(t, before)
	var open []*os.File
	for range 50 {
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		open = append(open, f)
	}
	assert.InDelta(t, before+50, Now().Descriptors, 10)
	for _, f := range open {
		require.NoError(t, f.Close())
	}
	p := Now()
	assert.Greater(t, p.DescriptorsLimit, p.Descriptors)
	assert.Greater(t, p.Memory, uint64(1<<20))
}
