package nvme

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// NVM Express 1.4, log page 0Ch.
func TestTheANALogPageHasItsFieldsInPlace(t *testing.T) {
	page := AppendANA(nil, 0x0102030405060708, []ANAGroup{
		{ID: 3, Changes: 0x11, State: ANANonOptimized, Namespaces: []uint32{1, 0x203}},
		{ID: 0x80, Changes: 0x0102030405060708, State: ANAChange},
	})
	assert.Equal(t, strings.Join([]string{
		"0807060504030201", "0200", "000000000000", // change count, descriptors, reserved
		"03000000", "02000000", "1100000000000000", "02", "000000000000000000000000000000", "01000000", "03020000",
		"80000000", "00000000", "0807060504030201", "0f", "000000000000000000000000000000",
	}, ""), hex.EncodeToString(page))
}

func TestAnANAStateHasItsValueItsNameAndItsStatus(t *testing.T) {
	for name, want := range map[string]struct {
		state  ANAState
		status Status
	}{
		"optimized":       {0x1, 0},
		"non-optimized":   {0x2, 0},
		"inaccessible":    {0x3, 0x302},
		"persistent-loss": {0x4, 0x301},
		"change":          {0xf, 0x303},
	} {
		s, err := ParseANAState(name)
		require.NoError(t, err)
		assert.Equal(t, want.state, s)
		assert.Equal(t, name, s.String())
		assert.Equal(t, want.status, s.Status(), name)
	}
	_, err := ParseANAState("none")
	require.Error(t, err)
	assert.Equal(t, Status(0x300), ANAState(5).Status())
	assert.Equal(t, "ANA state 0x5", ANAState(5).String())
	assert.EqualValues(t, 0x0c0302, ANAChanged, "log page 0Ch, information 03h, a notice")
}
