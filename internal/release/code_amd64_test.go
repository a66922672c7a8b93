//go:build amd64 && !race

package release

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// The parameters are in the registers AX and BX. The function stores BX to where AX
// points, and does nothing else: there is no other access that could be out of order,
// and no locked instruction.
func TestAStoreIsOneMove(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("capability: code without counters")
	}
	const ret = 0xc3
	for name, tc := range map[string]struct {
		function any
		move     []byte
	}{
		"32 bits": {Uint32, []byte{0x89, 0x18, ret}},
		"64 bits": {Uint64, []byte{0x48, 0x89, 0x18, ret}},
	} {
		code := unsafe.Slice((*byte)(reflect.ValueOf(tc.function).UnsafePointer()), len(tc.move))
		assert.Equal(t, tc.move, code, name)
	}
}
