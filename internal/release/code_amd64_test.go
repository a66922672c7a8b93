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
// and no locked instruction. Uint64If has one load before it, of the same word.
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
		"64 bits, if": {Uint64If, []byte{
			0x90,             // NOP
			0x48, 0x8b, 0x10, // MOVQ (AX), DX
			0x48, 0x39, 0xda, // CMPQ DX, BX
			0x74, 0x03, // JE over the next two
			0x31, 0xc0, ret, // XORL AX, AX
			0x48, 0x89, 0x08, // MOVQ CX, (AX)
			0xb8, 1, 0, 0, 0, ret, // MOVL $1, AX
		}},
	} {
		code := unsafe.Slice((*byte)(reflect.ValueOf(tc.function).UnsafePointer()), len(tc.move))
		assert.Equal(t, tc.move, code, name)
	}
}
