package loop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestQualifiersThatLoopChoosesAreFinite(t *testing.T) {
	dev := open(t, uniqueName())
	cfg := hw.ListenConfig{OnRequest: func(hw.Request) bool { return false }}
	var all []hw.Listener
	defer func() {
		for _, ln := range all {
			require.NoError(t, ln.Close())
		}
	}()
	for range hw.MaxQual - firstQual + 1 {
		ln, err := dev.Listen(cfg)
		require.NoError(t, err)
		require.LessOrEqual(t, ln.Qual(), uint64(hw.MaxQual))
		all = append(all, ln)
	}
	_, err := dev.Listen(cfg)
	require.ErrorIs(t, err, hw.ErrConnQualUnavailable)
	free := all[7].Qual()
	require.NoError(t, all[7].Close())
	all[7], err = dev.Listen(cfg)
	require.NoError(t, err)
	assert.Equal(t, free, all[7].Qual())
}
