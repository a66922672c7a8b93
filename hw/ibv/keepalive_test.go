package ibv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestOnlyAPeerOfThisPackageIsProbedUnasked(t *testing.T) {
	ours, stranger := hw.PairAddr{Farewell: 1}, hw.PairAddr{}
	for text, want := range map[string][2]time.Duration{
		"":   {30 * time.Second, 0},
		"0":  {0, 0},
		"2s": {2 * time.Second, 2 * time.Second},
	} {
		given := map[string]string{}
		if text != "" {
			given["keepalive"] = text
		}
		p, err := parseParams(given)
		require.NoError(t, err)
		assert.Equal(t, want, [2]time.Duration{p.probes(ours), p.probes(stranger)}, "%q", text)
	}
}

func TestANoteSurvivesAsANumber(t *testing.T) {
	for _, n := range []note{{}, {key: 1<<32 - 1, addr: 1<<16 - 1}, {key: 0x12345678, addr: 0xabc}} {
		assert.LessOrEqual(t, n.packed(), uint64(hw.MaxFarewell))
		assert.Equal(t, n, unpacked(n.packed()))
	}
}
