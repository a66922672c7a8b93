package block

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestABlockHasItsSHA256AndItsCRC32C(t *testing.T) {
	assert.Equal(t, "ba7816bf8f01", IDOf([]byte("abc")).String(), "FIPS 180-2, appendix B.1")
	assert.Equal(t, uint32(0xe3069283), CRC([]byte("123456789")), "the check value of CRC-32C")
	assert.Zero(t, CRC(nil))
}
