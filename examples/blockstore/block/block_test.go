package block

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestABlockIsNamedByItsSHA256(t *testing.T) {
	assert.Equal(t, "ba7816bf8f01", IDOf([]byte("abc")).String(), "FIPS 180-2, appendix B.1")
}
